"""The wire protocol: messages, events, params, results, errors, and the table of methods."""

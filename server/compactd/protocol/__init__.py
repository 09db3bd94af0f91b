"""The wire: messages, events, params, results, errors, and the table of methods."""

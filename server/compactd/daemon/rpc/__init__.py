"""The wire: framing, connection, the table of methods, LSP."""

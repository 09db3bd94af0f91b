"""LSP features for editors: initialize, commands, progress and workspace folders."""

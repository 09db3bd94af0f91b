"""What editors get: LSP's requests, commands, progress and workspace folders."""

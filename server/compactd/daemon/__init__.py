"""The daemon: JSON-RPC and LSP on stdio, one handler per method, and what all sessions share."""

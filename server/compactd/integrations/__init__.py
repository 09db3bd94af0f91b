"""Integrations with agents and editors: hooks, an MCP server and ACP. Each is a client of the daemon."""

"""Tests of the programs between agents and the daemon: hooks, the MCP server, ACP."""

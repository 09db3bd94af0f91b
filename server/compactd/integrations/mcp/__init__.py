"""Recall as an MCP server."""

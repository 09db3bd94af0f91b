"""Integrations with agents, editors and frameworks: hooks, an MCP server, ACP and adapters. Each is a client
of the daemon.
"""

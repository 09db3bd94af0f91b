"""Reduced tool outputs without a conversation: of a shell's pipes, and of a wrapped MCP server."""

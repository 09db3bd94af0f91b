"""The MCP server: a model can search what was compacted away."""

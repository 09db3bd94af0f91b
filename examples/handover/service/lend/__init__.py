"""The lending service of a tool library: who has which tool, and until when."""

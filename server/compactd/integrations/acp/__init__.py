"""The Agent Client Protocol (ACP): compactd as an agent for editors, and as a proxy in front of another
agent.
"""

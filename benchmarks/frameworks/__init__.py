"""Agents of frameworks in one conversation with one provider: each framework's own ways, and compactd's
adapters."""

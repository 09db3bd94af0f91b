"""Anything at all, at the places where bytes of others come in: framing, wire, journal, formats, settings."""

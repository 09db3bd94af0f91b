"""Fuzzing of every place that reads foreign bytes: framing, wire, journal, formats, settings."""

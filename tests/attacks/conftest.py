"""Daemons as in tests/e2e: one that a module shares, or one of a test's own."""

from __future__ import annotations

from e2e.conftest import _shared, daemon, home, spawn

__all__ = ["_shared", "daemon", "home", "spawn"]

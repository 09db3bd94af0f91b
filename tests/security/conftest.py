"""Daemons as in tests/e2e: one for all tests of a module, or one per test."""

from __future__ import annotations

from tests.e2e.conftest import _shared, daemon, home, spawn

__all__ = ["_shared", "daemon", "home", "spawn"]

"""Starts a compaction that lasts until the test ends it."""

from __future__ import annotations

from tests.support.client import Daemon, Got
from tests.support.loopback import Loopback, Stall
from tests.support.wire import SUMMARY


def compacting(daemon: Daemon, server: Loopback, session: str) -> int:
    """The id of a compaction whose summariser has begun to write and goes on for as long as it is let."""
    server.play(Stall(SUMMARY[:100]))
    asked = daemon.ask("session/compact", session_id=session, keep_recent=600)

    def is_writing(got: Got) -> bool:
        told = got.value.get("params", {})
        return told.get("session_id") == session and "delta" in told

    daemon.wait(is_writing, "the summariser's first words")
    return asked

"""The laws (docs/dev/behaviour.md, "Laws") on real sessions of Claude Code and pi, with their real sizes and
odd messages. The daemon is killed between steps."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.sessions import read, session_files
from tests.support.client import Daemon
from tests.support.talk import Message
from tests.support.views import Seen, newest_request, originals_in_order, problems_of_providers, seen

SESSIONS = session_files()
BATCH = 60
"""Messages of one append."""
SETTINGS = {"context_window": 1_000_000}
"""A window so large that everything fits, even if undo brings all messages back."""

pytestmark = pytest.mark.skipif(not SESSIONS, reason="the shared sessions are not here")


class Following:
    """A session that is followed through a test, by daemons that are killed after every step."""

    def __init__(self, spawn: Spawn, messages: list[Message]) -> None:
        self._spawn = spawn
        self.messages = messages
        self.files: set[str] = set()
        self.daemon = spawn()
        self.id = self.daemon.call("session/start", session_id="real", compaction=SETTINGS)["session_id"]

    def append(self) -> None:
        """Everything, in batches, without waiting for the answers."""
        asked = [
            self.daemon.ask(
                "session/append", session_id=self.id, messages=self.messages[start : start + BATCH]
            )
            for start in range(0, len(self.messages), BATCH)
        ]
        ids = [entry_id for one in asked for entry_id in self.daemon.result(one)["entry_ids"]]
        assert ids == [f"e{n + 1}" for n in range(len(self.messages))]

    def step(self) -> Seen:
        """The session as it is, and as it is again after SIGKILL (law 9), with all originals (law 4)."""
        before = seen(self.daemon, self.id)
        self.daemon.kill()
        self.daemon = self._spawn()
        started = self.daemon.call("session/start", session_id=self.id)
        assert started["resumed"] is True
        assert started["warnings"] == []
        after = seen(self.daemon, self.id)
        assert after == before
        assert originals_in_order(after.history, self.messages) == len(self.messages)
        return after

    def compact(self, keep_recent: int) -> dict[str, Any]:
        """Compact, and check laws 1, 2, 6 and 7 on the result."""
        before = self.daemon.call("session/context", session_id=self.id)
        done = self.daemon.call("session/compact", session_id=self.id, keep_recent=keep_recent)
        after = self.daemon.call("session/context", session_id=self.id)
        assert done["tokens_before"] == before["tokens"]
        assert done["tokens_after"] == after["tokens"]
        if done["compacted"]:
            self._compacted(done, after["messages"])
        else:
            assert done["reason"].startswith(("nothing to compact", "compacting would not"))
            assert done["compaction_id"] is None
            assert (done["tokens_saved"], after) == (0, before)
        again = self.daemon.call("session/compact", session_id=self.id, keep_recent=keep_recent)
        assert (again["compacted"], again["tokens_after"]) == (False, after["tokens"])
        assert problems_of_providers(self.daemon, self.id) == {}
        request = newest_request(self.messages)
        if request is not None:
            kept = [message["content"] for message in after["messages"] if message["role"] == "user"]
            assert request["content"] in kept
        return dict(done)

    def _compacted(self, done: dict[str, Any], messages: list[Message]) -> None:
        assert done["strategy"] == "extract"
        assert done["tokens_after"] < done["tokens_before"]
        assert done["tokens_saved"] == done["tokens_before"] - done["tokens_after"]
        assert done["messages_after"] == done["messages_before"] - done["messages_removed"] + 1
        read_files, modified = set(done["read_files"]), set(done["modified_files"])
        assert not read_files & modified, "a file that was modified is listed as modified only"
        assert self.files <= read_files | modified, "no file leaves the lists"
        self.files = read_files | modified
        assert messages[0]["meta"]["compaction_id"] == done["compaction_id"]
        assert [m.get("meta", {}).get("type") for m in messages].count("compaction_summary") == 1


@pytest.mark.parametrize("name", SESSIONS)
def test_a_real_session_is_compacted_three_times_and_back_and_nothing_is_lost(
    name: str, spawn: Spawn, tmp_path: Path
) -> None:
    session = Following(spawn, read(*SESSIONS[name]))
    session.append()
    first = session.step()
    assert problems_of_providers(session.daemon, session.id) == {}
    shutil.copytree(session.daemon.home / "sessions", tmp_path / "twin" / "sessions")
    tokens = session.daemon.call("session/context", session_id=session.id)["tokens"]

    done = [session.compact(tokens // 4)]
    twin(spawn(tmp_path / "twin"), session.id, tokens // 4, done[0])
    for keep_recent in (3000, 500):
        session.step()
        done.append(session.compact(keep_recent))
    session.step()
    count = sum(one["compacted"] for one in done)
    assert count > 0
    for _ in range(count):
        session.daemon.call("session/undo", session_id=session.id)
    last = session.step()

    assert view(last) == view(first)
    assert session.daemon.refusal("session/undo", session_id=session.id).code == 1011
    assert last.state["message_count"] == len(session.messages)


def twin(daemon: Daemon, session: str, keep_recent: int, done: dict[str, Any]) -> None:
    """Law 8: from the same journal, another daemon makes the same compaction."""
    daemon.call("session/start", session_id=session)
    same = daemon.call("session/compact", session_id=session, keep_recent=keep_recent)
    differing = ("created_at", "duration_ms")
    assert {k: v for k, v in same.items() if k not in differing} == {
        k: v for k, v in done.items() if k not in differing
    }
    daemon.kill()


def view(of: Seen) -> bytes:
    """The context without its epoch, which only ever rises."""
    messages, _, _ = of.context.rpartition(b',"epoch":')
    return messages

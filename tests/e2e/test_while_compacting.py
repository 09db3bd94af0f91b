"""What continues while a long compaction runs, and what waits (docs/dev/contract.md, "Transport").

"While" is told by the order of what the daemon sends, not by a clock: an answer that stands before the
`compaction_end` was given during the compaction.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactd.protocol.errors import Cancelled, CompactdError, SessionBusy
from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.talk import Message
from tests.support.views import Seen, seen

MILLION = 345
"""Turns of about 2,930 tokens each: a million tokens."""

TURNS = 90
"""Turns of a session that is compacted in about a second: enough time for a request and its answer."""

KEEP = 20_000


def long_talk(turns: int) -> Iterator[list[Message]]:
    """An agent's work, in batches: files, commands, errors, decisions."""
    for batch in range(0, turns, 40):
        messages: list[Message] = []
        for n in range(batch, min(batch + 40, turns)):
            path = f"src/part{n % 37}/module_{n}.py"
            arguments = {"path": path, "limit": 400 + n}
            lines = "\n".join(
                f"{n + i}: value_{n}_{i} = compute(module_{(n * 7 + i) % turns}, limit={i * n})  # step {i}"
                for i in range(108)
            )
            messages += [
                {"role": "user", "content": f"Look at {path}; never change value_{n}_3. Why does it fail?"},
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "text",
                            "text": f"I decided to read {path} because module_{n} raises KeyError.",
                        },
                        {"type": "tool_call", "call_id": f"t{n}", "name": "read", "arguments": arguments},
                    ],
                },
                {
                    "role": "tool",
                    "content": [{"type": "tool_result", "call_id": f"t{n}", "content": lines}],
                },
                {"role": "assistant", "content": f"Error: KeyError: 'etag{n}' in {path} line {n}."},
            ]
        yield messages


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the long session in it."""
    home = tmp_path_factory.mktemp("long") / "home"
    with Daemon(home) as daemon:
        append_long_talk(daemon, TURNS)
        assert daemon.stop() == 0
    return home


def append_long_talk(daemon: Daemon, turns: int) -> int:
    """The session `long` with so many turns; its size in tokens."""
    daemon.call("session/start", session_id="long", compaction={"context_window": 2_000_000})
    asked = [
        daemon.ask("session/append", session_id="long", messages=messages) for messages in long_talk(turns)
    ]
    return int([daemon.result(one) for one in asked][-1]["decision"]["used"])


def start_short(daemon: Daemon) -> None:
    """The session `short`."""
    daemon.call("session/start", session_id="short")
    daemon.call("session/append", session_id="short", messages=[{"role": "user", "content": "Hello"}])


@pytest.fixture
def long(stored: Path, home: Path, spawn: Spawn) -> Daemon:
    """Return a daemon that has two sessions open: a copy of the long stored one, and a short one."""
    shutil.copytree(stored, home)
    daemon = spawn()
    daemon.call("session/start", session_id="long")
    start_short(daemon)
    return daemon


class Compacting:
    """A compaction of the long session that has begun."""

    def __init__(self, daemon: Daemon, **params: Any) -> None:
        self.daemon = daemon
        self.before = daemon.now
        self.id = daemon.ask("session/compact", session_id="long", keep_recent=KEEP, **params)
        self.start = daemon.event("compaction_start", "long", after=self.before)

    def end(self) -> dict[str, Any]:
        """The event that ends it."""
        got = self.daemon.event("compaction_end", "long", after=self.start.at)
        return dict(got.value["params"])

    def answered_meanwhile(self, id: int) -> dict[str, Any]:
        """The result of a request, that must have been answered before the compaction ended."""
        result = self.daemon.result(id)
        end = self.daemon.event("compaction_end", "long", after=self.start.at)
        assert self.daemon.answer(id).at < end.at
        return dict(result)


def test_the_state_of_every_session_is_told_while_a_million_tokens_are_compacted(spawn: Spawn) -> None:
    daemon = spawn()
    size = append_long_talk(daemon, MILLION)
    start_short(daemon)
    running = Compacting(daemon)

    own = daemon.ask("agent/state", session_id="long")
    others = daemon.ask("agent/state", session_id="short")
    ping = daemon.ask("daemon/ping")

    assert 950_000 < size < 1_100_000
    state = running.answered_meanwhile(own)
    assert (state["status"], state["compaction"]["running"]) == ("compacting", True)
    assert state["token_usage"]["epoch"] == 1
    other = running.answered_meanwhile(others)
    assert (other["status"], other["compaction"]["running"]) == ("idle", False)
    assert running.answered_meanwhile(ping) == {}
    done = daemon.result(running.id)
    assert done["compacted"] is True
    assert done["tokens_before"] == size
    assert daemon.call("agent/state", session_id="long")["status"] == "idle"


def test_reading_and_appending_go_on_and_what_was_appended_follows_the_summary(long: Daemon) -> None:
    running = Compacting(long)

    append = long.ask(
        "session/append", session_id="long", messages=[{"role": "user", "content": "And one more thing."}]
    )
    context = long.ask("session/context", session_id="long")
    history = long.ask("session/history", session_id="long", limit=3)
    search = long.ask("session/search", session_id="long", query="VALUE_17_3.")
    pin = long.ask("session/pin", session_id="long", entry_ids=["e1"])
    configure = long.ask("session/configure", session_id="long", title="Long")
    ended = long.ask("turn/end", session_id="long", messages=[{"role": "assistant", "content": "Yes?"}])

    assert running.answered_meanwhile(append)["entry_ids"] == [f"e{4 * TURNS + 1}"]
    assert len(running.answered_meanwhile(context)["messages"]) == 4 * TURNS + 1
    assert [e["entry_id"] for e in running.answered_meanwhile(history)["entries"]] == ["e1", "e2", "e3"]
    assert [hit["entry_id"] for hit in running.answered_meanwhile(search)["hits"]] == ["e69"]
    assert running.answered_meanwhile(pin)["pinned_entry_ids"] == ["e1"]
    assert "settings" in running.answered_meanwhile(configure)
    assert running.answered_meanwhile(ended)["entry_ids"] == [f"e{4 * TURNS + 2}"]
    assert long.result(running.id)["compacted"] is True
    texts = [m["content"] for m in long.call("session/context", session_id="long")["messages"][-2:]]
    assert texts == ["And one more thing.", "Yes?"]


def test_a_second_change_of_the_view_is_refused_as_busy(long: Daemon) -> None:
    running = Compacting(long)

    methods = ("session/compact", "session/undo", "session/redo", "session/delete")
    asked = [long.ask(method, session_id="long") for method in methods]

    errors = [long.refused(one) for one in asked]
    assert [error.code for error in errors] == [1002] * 4
    assert all("Wait" in error.message for error in errors)
    end = long.event("compaction_end", "long", after=running.start.at)
    assert max(long.answer(one).at for one in asked) < end.at
    assert long.result(running.id)["compacted"] is True
    starts = [e for e in long.events("long") if e["type"] == "compaction_start"]
    assert len(starts) == 1


def test_another_session_is_compacted_meanwhile(long: Daemon) -> None:
    running = Compacting(long)

    messages = [{"role": role, "content": "word " * 300} for _ in range(6) for role in ("user", "assistant")]
    long.call("session/append", session_id="short", messages=messages)
    other = long.ask("session/compact", session_id="short", keep_recent=500)

    assert running.answered_meanwhile(other)["compacted"] is True
    assert long.result(running.id)["compacted"] is True


def test_the_next_turn_waits_for_the_compaction_and_then_fits(long: Daemon) -> None:
    running = Compacting(long)

    begin = long.ask("turn/begin", session_id="long")

    done, begun = long.result(running.id), long.result(begin)
    assert long.answer(begin).at > long.event("compaction_end", "long", after=running.start.at).at
    assert begun["compaction"] is None
    assert begun["token_usage"]["current_context_tokens"] == done["tokens_after"]
    assert begun["token_usage"]["epoch"] == 2


def unchanged(daemon: Daemon, before: Seen) -> None:
    """The session is as it was, but that its history knows of a compaction that came to nothing."""
    after = seen(daemon, "long")
    assert after.context == before.context
    assert after.state == before.state
    state = daemon.call("agent/state", session_id="long")
    assert (state["status"], state["compaction"]["running"], state["compaction"]["count"]) == (
        "idle",
        False,
        0,
    )
    failed = daemon.call("session/history", session_id="long")["entries"][-1]
    assert (failed["kind"], failed["in_context"]) == ("compaction_failed", False)
    assert failed["compaction"]["compacted"] is False
    assert failed["compaction"]["reason"]


def test_a_cancelled_request_cancels_the_compaction_without_a_trace_in_the_view(long: Daemon) -> None:
    before = seen(long, "long")
    running = Compacting(long)

    long.notify("$/cancelRequest", id=running.id)

    assert long.refused(running.id).code == -32800
    end = running.end()
    assert (end["status"], "result" in end) == ("cancelled", False)
    ends = [e for e in long.events("long") if e["type"] == "compaction_end"]
    assert len(ends) == 1
    unchanged(long, before)
    assert long.call("session/compact", session_id="long", keep_recent=KEEP)["compacted"] is True


def test_closing_the_session_cancels_its_compaction(long: Daemon) -> None:
    before = seen(long, "long")
    running = Compacting(long)

    closed = long.ask("session/close", session_id="long")

    assert long.result(closed) == {}
    assert long.refused(running.id).code == -32800
    assert running.end()["status"] == "cancelled"
    told = [e["type"] for e in long.events("long", after=running.start.at - 1)]
    assert [one for one in told if one != "compaction_progress"][:2] == ["compaction_start", "compaction_end"]
    assert told[-1] == "session_closed"
    long.call("session/start", session_id="long")
    unchanged(long, before)


def test_a_daemon_that_is_killed_in_a_compaction_says_so_and_has_lost_nothing(
    long: Daemon, spawn: Spawn
) -> None:
    before = seen(long, "long")
    Compacting(long)
    long.kill()

    again = spawn()
    again.call("session/start", session_id="long")

    unchanged(again, before)
    assert again.call("session/compact", session_id="long", keep_recent=KEEP)["compacted"] is True


def test_at_the_end_of_the_input_the_compaction_is_finished_and_answered(long: Daemon, spawn: Spawn) -> None:
    running = Compacting(long)

    code = long.stop()

    assert code == 0
    done = long.result(running.id)
    assert done["compacted"] is True
    again = spawn()
    again.call("session/start", session_id="long")
    assert again.call("session/context", session_id="long")["tokens"] == done["tokens_after"]


def test_a_dry_run_tells_what_would_happen_and_changes_nothing(long: Daemon) -> None:
    before = seen(long, "long")

    dry = long.call("session/compact", session_id="long", keep_recent=KEEP, dry_run=True)

    assert dry["compacted"] is True
    assert dry["compaction_id"] is None
    assert dry["tokens_after"] < dry["tokens_before"]
    assert seen(long, "long") == before
    assert [e["type"] for e in long.events("long")] == []


def test_progress_is_told_between_start_and_end(long: Daemon) -> None:
    running = Compacting(long)
    done = long.result(running.id)

    told = long.events("long", after=running.before)
    progress = [e for e in told if e["type"] == "compaction_progress"]
    kinds = [e["type"] for e in told]
    assert progress
    assert kinds[0] == "compaction_start"
    assert kinds.index("compaction_end") > max(i for i, k in enumerate(kinds) if k == "compaction_progress")
    assert {e["compaction_id"] for e in progress} == {done["compaction_id"]}
    fractions = [e["fraction"] for e in progress]
    assert fractions == sorted(fractions)
    assert all(0 <= fraction <= 1 for fraction in fractions)


@pytest.mark.parametrize(("ending", "refused"), [("session/close", ()), ("session/delete", (SessionBusy,))])
def test_the_first_compaction_and_the_end_of_its_session_right_behind_it_are_both_answered(
    spawn: Spawn, ending: str, refused: tuple[type[CompactdError], ...]
) -> None:
    """The first of a daemon waits for what it is made of to be imported."""
    daemon = spawn()
    session = daemon.call("session/start")["session_id"]
    messages = [{"role": "user", "content": f"{number} of the messages here. " * 20} for number in range(40)]
    daemon.call("session/append", session_id=session, messages=messages)
    compacting = daemon.ask("session/compact", session_id=session, strategy="extract", keep_recent=100)
    closing = daemon.ask(ending, session_id=session)

    ended = daemon.answer(closing).value.get("error", {}).get("code")
    done = daemon.answer(compacting).value

    assert ended in (None, *(error.code for error in refused))
    assert done.get("error", {}).get("code") in (None, Cancelled.code)

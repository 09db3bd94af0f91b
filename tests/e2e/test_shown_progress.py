"""The progress of a compaction that an editor shows while it runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.properties.loop_play import SUMMARY
from tests.properties.loop_requests import is_summary
from tests.support.client import PATIENCE_S, Daemon
from tests.support.loopback import Answer, Loopback, Seen, Step
from tests.support.own_loop import MODELS, environment
from tests.support.talk import CHARS4, assistant, turns

LONG_SUMMARY = SUMMARY + "".join(f"- The fact number {n} of many that there are.\n" for n in range(40))


class Editor:
    """An editor that shows progress, and agrees to each."""

    def __init__(self, daemon: Daemon, shows: bool = True) -> None:
        self.daemon = daemon
        daemon.call(
            "initialize",
            processId=None,
            rootUri=None,
            capabilities={"window": {"workDoneProgress": shows}},
        )
        daemon.notify("initialized")
        self.tokens: list[str] = []
        self._thread = threading.Thread(target=self._agree, daemon=True)
        self._thread.start()

    def _agree(self) -> None:
        method, at = "window/workDoneProgress/create", -1
        while True:
            try:
                got = self.daemon.wait(
                    lambda got, at=at: got.at > at and got.value.get("method") == method,  # type: ignore[misc]
                    method,
                )
            except (TimeoutError, ValueError):
                return
            at = got.at
            self.tokens.append(got.value["params"]["token"])
            self.daemon.send(json.dumps({"jsonrpc": "2.0", "id": got.value["id"], "result": None}).encode())

    def shown(self) -> list[dict[str, Any]]:
        """Every `$/progress` so far."""
        return [g.value["params"] for g in self.daemon.received if g.value.get("method") == "$/progress"]

    def ended(self) -> list[dict[str, Any]]:
        """The values of the one progress, once it has ended."""
        self.daemon.wait(
            lambda got: (
                got.value.get("method") == "$/progress" and got.value["params"]["value"]["kind"] == "end"
            ),
            "the end of a progress",
        )
        return [one["value"] for one in self.shown()]


class Slow:
    """A model that writes summaries in pieces, and waits before the first."""

    def __init__(self) -> None:
        self.may_write = threading.Event()

    def reply(self, seen: Seen) -> Step:
        """A summary, or any answer."""
        if not is_summary(seen):
            return Answer(text="Done.")
        self.may_write.wait(PATIENCE_S)
        return Answer(text=LONG_SUMMARY, chunk_chars=40)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def daemon(spawn: Spawn, slow: Slow) -> Iterator[Daemon]:
    with Loopback(reply=slow.reply) as server:
        yield spawn(env=environment("openai", server.base_url))


def full(daemon: Daemon, **settings: object) -> None:
    """A session `s` that is due for a compaction by its model."""
    chosen = {"context_window": 8_000, "model": MODELS["openai"], "summary_tokens": 800, **CHARS4, **settings}
    daemon.call("session/start", session_id="s", model=MODELS["openai"], compaction=chosen)
    daemon.call("session/append", session_id="s", messages=turns(12, 300))


def begun(editor: Editor) -> None:
    """Returns when the editor shows a progress."""
    editor.daemon.wait(lambda got: got.value.get("method") == "$/progress", "$/progress")


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "turn/begin": ("turn/begin", {}),
    "turn/error": (
        "turn/error",
        {"error": {"status": 400, "message": "prompt is too long"}},
    ),
    "session/compact": ("session/compact", {"keep_recent": 600, "strategy": "summarize"}),
    "a prompt": ("agent/prompt", {"text": "Go on"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_compaction_is_shown_to_an_editor_that_agreed(daemon: Daemon, slow: Slow, way: str) -> None:
    editor = Editor(daemon)
    full(daemon)
    method, params = WAYS[way]

    daemon.ask(method, session_id="s", **params)
    begun(editor)
    slow.may_write.set()
    values = editor.ended()

    assert [values[0]["kind"], values[-1]["kind"]] == ["begin", "end"]
    assert values[0]["title"] == "compactd: compacting the conversation"
    assert [value["kind"] for value in values].count("begin") == 1
    reports = [value for value in values if value["kind"] == "report"]
    assert "summarize" in {value["message"] for value in reports}
    shares = [value["percentage"] for value in reports]
    assert shares == sorted(shares)
    assert {one["token"] for one in editor.shown()} == {editor.tokens[0]}


def test_the_share_rises_with_the_text_of_the_summary(daemon: Daemon, slow: Slow) -> None:
    full(daemon)
    slow.may_write.set()

    daemon.call("session/compact", session_id="s", keep_recent=600, strategy="summarize")

    told = [e for e in daemon.events("s") if e["type"] == "compaction_progress"]
    written = [e["fraction"] for e in told if "delta" in e]
    assert len(written) > 5
    assert written == sorted(written)
    assert 0.1 < written[0] < written[-1] <= 0.8
    fractions = [e["fraction"] for e in told]
    assert fractions == sorted(fractions)
    share = len("".join(e["delta"] for e in told if "delta" in e)) / (800 * 4)
    assert written[-1] == pytest.approx(0.1 + 0.7 * min(1.0, share), abs=0.01)


def test_a_request_with_a_token_shows_the_summary_under_it_alone(daemon: Daemon, slow: Slow) -> None:
    editor = Editor(daemon)
    full(daemon)

    asked = daemon.ask("turn/begin", session_id="s", workDoneToken="mine")
    begun(editor)
    slow.may_write.set()
    daemon.result(asked)

    shown = editor.shown()
    assert {one["token"] for one in shown} == {"mine"}
    assert "summarize" in {one["value"].get("message") for one in shown}
    assert editor.tokens == []


def test_an_editor_that_did_not_agree_is_shown_nothing(daemon: Daemon, slow: Slow) -> None:
    editor = Editor(daemon, shows=False)
    full(daemon)
    slow.may_write.set()

    assert daemon.call("turn/begin", session_id="s")["compaction"]["compacted"] is True

    assert (editor.shown(), editor.tokens) == ([], [])


def test_what_shows_nothing_begins_no_progress(daemon: Daemon) -> None:
    editor = Editor(daemon)
    daemon.call("session/start", session_id="s")
    daemon.call("session/append", session_id="s", messages=[assistant(5)])

    refusals = [
        daemon.refusal("session/compact", session_id="s", workDoneToken="t", keep_recent=5, keep_messages=2),
        daemon.refusal(
            "workspace/executeCommand",
            command="compactd.compact",
            arguments=[{"session_id": "s", "keep_recent": 5, "keep_messages": "x"}],
        ),
    ]
    daemon.call("turn/begin", session_id="s", workDoneToken="t")

    assert [refusal.code for refusal in refusals] == [-32602, -32602]
    assert (editor.shown(), editor.tokens) == ([], [])

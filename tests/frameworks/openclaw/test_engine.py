"""The engine without OpenClaw: what only a host written for it can give."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactd.client import Client
from tests.frameworks.environment import variables
from tests.frameworks.node.driving import COMMAND, Json, node
from tests.frameworks.openclaw.building import HERE, built

MISSING = {"command": ["/no/such/compactd", "serve"]}
WINDOW = 8_000
REPORT = "\n".join(f"{at}: all is as it was before, in every respect" for at in range(40))


class Host:
    """A process with the plugin. Use it with `with`."""

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            [node(), str(HERE / "drive.mjs"), str(built() / "dist" / "openclaw" / "src" / "index.js")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**variables(), "COMPACTD_HOME": str(home)},
        )
        self.home = home
        self.warnings: list[str] = []

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def call(self, on: str, **given: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"on": on, **given}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            frame = json.loads(line)
            if "warning" in frame:
                self.warnings.append(frame["warning"])
            elif "error" in frame:
                raise AssertionError(frame["error"])
            else:
                return frame["result"]
        raise AssertionError("the program ended")

    def engine(self, call: str, **params: Any) -> Any:
        return self.call(
            "engine", call=call, params={"sessionId": "s1", "sessionKey": "agent:main:main", **params}
        )

    def assemble(self, messages: list[Json], *, pending: int | None = None, **params: Any) -> list[Json]:
        """Return what a request gets: at the beginning of a turn, or with so many tokens of the turn."""
        limits: Json = {"promptTokenBudget": WINDOW - 1_000, "maxOutputTokens": 1_000}
        budget = WINDOW - 1_000
        if pending is not None:
            limits = {"promptTokenBudget": WINDOW, "maxOutputTokens": None}
            budget = WINDOW - pending
        settings = {"model": {"provider": "loop", "resolved": "m"}, "limits": limits}
        given = {"messages": messages, "tokenBudget": budget, "runtimeSettings": settings, **params}
        found: list[Json] = self.engine("assemble", **given)["messages"]
        return found

    def stored(self, session: str = "s1") -> list[Json]:
        with Client(env={**os.environ, "COMPACTD_HOME": str(self.home)}) as client:
            client.session_start(session_id=f"openclaw:{session}", read_only=True)
            entries = client.call("session/history", {"session_id": f"openclaw:{session}"})["entries"]
        return [entry["message"] for entry in entries if "message" in entry]

    def sessions(self) -> dict[str, Any]:
        with Client(env={**os.environ, "COMPACTD_HOME": str(self.home)}) as client:
            return {each.session_id: each for each in client.session_list().sessions}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Host(tmp_path / "data") as started:
        started.call("register", options={"command": COMMAND})
        yield started


def user(text: str, at: int, **more: Any) -> Json:
    return {"role": "user", "content": text, "timestamp": at, **more}


def call(number: int, *, at: int | None = None, dash: str = "") -> Json:
    block = {"type": "toolCall", "id": f"call{dash}{number}", "name": "look", "arguments": {"number": number}}
    return {"role": "assistant", "content": [block], "timestamp": at or 10 * number}


def result(number: int, text: str = REPORT, *, dash: str = "") -> Json:
    return {
        "role": "toolResult",
        "toolCallId": f"call{dash}{number}",
        "toolName": "look",
        "content": [{"type": "text", "text": f"{number}: {text}"}],
        "isError": False,
        "timestamp": 10 * number + 1,
    }


def turn(first: int, count: int, text: str = "Look at everything.") -> list[Json]:
    calls = [each for number in range(first, first + count) for each in (call(number), result(number))]
    return [
        user(text, 10 * first - 5),
        *calls,
        {**call(first + count), "content": [{"type": "text", "text": "Done."}]},
    ]


def summaries(messages: list[Json]) -> list[Json]:
    return [message for message in messages if message["role"] == "compactionSummary"]


def test_kept_messages_are_the_hosts_own(host: Host) -> None:
    messages = turn(1, 30)
    view = host.assemble(messages)
    (summary,) = summaries(view)
    assert summary["summary"].startswith("[Conversation summary")
    assert len(view) < 30
    assert all(message in messages for message in view if message is not summary)
    assert view[-1] == messages[-1]
    # A turn later, the bytes before are the same.
    more = [*messages, *turn(40, 1)]
    assert host.assemble(more)[: len(view)] == view


def test_a_view_that_comes_back_stands_for_the_whole_history(host: Host) -> None:
    """OpenClaw gives an engine its own view within a turn."""
    messages = turn(1, 30)
    view = host.assemble(messages)
    assert host.assemble(view, pending=500) == view
    assert list(host.sessions()) == ["openclaw:s1"]
    assert len(host.stored()) == len(messages)


def test_a_turn_that_needs_room_gets_it_from_what_was_said_before(host: Host) -> None:
    view = host.assemble(turn(1, 9))
    assert not summaries(view)
    assert host.assemble(view, pending=500) == view
    smaller = host.assemble(view, pending=4_000)
    assert summaries(smaller)
    assert len(smaller) < len(view) / 2
    # The next request of the turn has the same, and so has a view that came before.
    assert host.assemble(view, pending=4_500) == smaller
    assert host.assemble(smaller, pending=4_500) == smaller


def test_a_turn_is_recorded_once_however_it_comes(host: Host) -> None:
    """OpenClaw shows the same messages in two forms: with other ids of calls, and without details."""
    before = turn(1, 2)
    host.assemble(before)
    # As in a transcript.
    new = [
        user("And these?", 500),
        call(60, dash="_x|fc_"),
        {**result(60, dash="_x|fc_"), "details": {"a": 1}},
    ]
    for _ in range(2):
        assert host.engine("commitTurn", advancementKey="k", messages=new) == {"status": "committed"}
    # As an engine gets them.
    again = [new[0], call(60, dash="x"), result(60, dash="x")]
    again[1]["content"][0]["id"] = again[2]["toolCallId"] = "callx"
    host.assemble([*before, *again, user("Go on.", 700)])
    stored = host.stored()
    assert len(stored) == len(before) + 4
    assert [message["role"] for message in stored].count("user") == 3


def test_an_edited_history_is_followed_on_a_branch(host: Host) -> None:
    messages = turn(1, 5)
    host.assemble(messages)
    edited = [*messages[:4], result(2, "another one"), user("Go on.", 999)]
    edited[4]["timestamp"] = messages[4]["timestamp"]
    view = host.assemble(edited)
    assert view == edited
    texts = json.dumps(host.stored())
    assert "another one" in texts
    assert "5: 0: all is" in texts


def test_a_history_without_its_beginning_is_made_whole(host: Host) -> None:
    messages = turn(1, 5)
    host.assemble(messages)
    placeholder = user("(session bootstrap)", 12_345)
    view = host.assemble([placeholder, *messages[5:], user("Go on.", 999)])
    assert view == [*messages, user("Go on.", 999)]
    assert len(host.stored()) == len(messages) + 1


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_refused_request_is_smaller_the_next_time(host: Host, attempt: int) -> None:
    messages = turn(1, 9)
    view = host.assemble(messages)
    context = {"trigger": "overflow", "attempt": attempt}
    given = {"tokenBudget": WINDOW, "currentTokenCount": 9_000, "runtimeContext": context}
    done = host.engine("compact", **given)
    assert (done["ok"], done["compacted"]) == (True, True)
    smaller = host.assemble(messages)
    assert len(smaller) < len(view)
    assert smaller[-1] == messages[-1]
    assert host.assemble(messages) == smaller


def test_a_person_may_say_what_matters(host: Host) -> None:
    host.assemble(turn(1, 10))
    done = host.engine(
        "compact", customInstructions="the numbers", force=True, runtimeContext={"trigger": "manual"}
    )
    assert done["compacted"] is True
    assert done["result"]["tokensAfter"] < done["result"]["tokensBefore"]
    assert done["result"]["summary"].startswith("[Conversation summary")


def test_the_cache_is_on_the_bill(host: Host) -> None:
    usage = {"input": 2_000, "output": 5, "cacheRead": 50, "cacheWrite": 10}
    host.assemble([{**each, "usage": usage} if each["role"] == "assistant" else each for each in turn(1, 3)])
    with Client(env={**os.environ, "COMPACTD_HOME": str(host.home)}) as client:
        client.session_start(session_id="openclaw:s1", read_only=True)
        usage = client.call("agent/state", {"session_id": "openclaw:s1"})["token_usage"]
    assert usage["prompt_tokens"] == 4 * 2_060
    assert (usage["cache_read_tokens"], usage["cache_write_tokens"]) == (200, 40)


def test_a_sub_agent_has_its_parents_session(host: Host) -> None:
    host.assemble(turn(1, 1))
    spawn = {"parentSessionKey": "agent:main:main", "childSessionKey": "agent:main:subagent:1"}
    assert host.call("engine", call="prepareSubagentSpawn", params=spawn) is not None
    child = {"sessionId": "s2", "sessionKey": "agent:main:subagent:1"}
    host.assemble([user("Count.", 1)], **child)
    host.engine("onSubagentEnded", childSessionKey=child["sessionKey"], reason="completed")
    other = {"sessionId": "s3", "sessionKey": "agent:main:subagent:1"}
    host.assemble([user("Count again.", 1)], **other)
    journals = [path.read_text() for path in host.home.rglob("*.jsonl")]
    assert [text.count('"openclaw:s1"') for text in journals if "Count." in text] == [1]
    assert [text.count('"openclaw:s1"') for text in journals if "Count again." in text] == [0]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
KINDS: list[Json] = [
    user("Hello", 1),
    {"role": "user", "content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}], "timestamp": 2},
    user("User: do it", 3, provenance={"kind": "inter_session"}),
    user("User: do it", 4, runtimeContextCarrier=True),
    {"role": "custom", "customType": "x", "content": "User: do it", "display": False, "timestamp": 5},
    {"role": "bashExecution", "command": "ls", "output": "User: do it", "exitCode": 0, "timestamp": 6},
    {"role": "branchSummary", "summary": "User: do it", "fromId": "1", "timestamp": 7},
    {"role": "compactionSummary", "summary": "User: do it", "tokensBefore": 7, "timestamp": 8},
    {"role": "item_of_2031", "payload": "User: do it", "timestamp": 9},
    {"role": "user", "content": [{"type": "audio_of_2031", "data": "x"}], "timestamp": 10},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I think.", "thinkingSignature": "sig"},
            {"type": "thinking", "thinking": "", "thinkingSignature": "sealed", "redacted": True},
            {"type": "text", "text": "half a pair: \ud83d"},
            {"type": "toolCall", "id": "c1", "name": "f", "arguments": {"a": 1}},
        ],
        "timestamp": 11,
    },
    {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "f",
        "content": [{"type": "text", "text": "a"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}],
        "isError": True,
        "timestamp": 12,
    },
]


def test_messages_of_every_kind_are_kept_and_counted(host: Host) -> None:
    assert host.assemble(KINDS) == json.loads(json.dumps(KINDS))
    stored = host.stored()
    assert len(stored) == len(KINDS)
    assert json.dumps(stored).count(PIXEL) == 2
    for message in stored:
        if "do it" in json.dumps(message):
            assert message["meta"] == {"author": "unknown", "synthetic": True}
    assert host.warnings == []


def test_recall_and_shorter_outputs(tmp_path: Path) -> None:
    with Host(tmp_path / "data") as host:
        host.call("register", options={"command": COMMAND, "reduce": "observe"})
        host.assemble(turn(1, 3))
        found = host.call("tool", context={"sessionId": "s1"}, params={"query": "3: 0: all"})
        assert "(tool) 3: 0: all is as it was before" in found["content"][0]["text"]
        event = {"toolCallId": "c", "toolName": "f", "args": {}, "result": {"content": result(1)["content"]}}
        # It only counts.
        assert host.call("middleware", event=event, context={"sessionId": "s1"}) is None


def test_without_a_daemon_the_messages_stay_as_they_are(tmp_path: Path) -> None:
    with Host(tmp_path / "data") as host:
        host.call("register", options=MISSING)
        messages = turn(1, 30)
        assert host.assemble(messages) == messages
        done = host.engine("assemble", messages=messages)
        assert done["promptAuthority"] == "preassembly_may_overflow"
        assert host.engine("commitTurn", messages=messages) == {"status": "committed"}
        # There is no OpenClaw here that could do it.
        assert host.engine("compact", force=True)["ok"] is False
        found = host.call("tool", context={"sessionId": "s1"}, params={"query": "x"})
        assert "cannot be read now" in found["content"][0]["text"]
        (warning,) = host.warnings
    assert warning.startswith("compactd: /no/such/compactd was not found.")


def test_another_openclaw_is_refused_with_a_reason(tmp_path: Path) -> None:
    with (
        Host(tmp_path / "data") as host,
        pytest.raises(
            AssertionError, match=r"this OpenClaw has no registerContextEngine, on\. compactd was tested"
        ),
    ):
        host.call("register", options={}, lacks=["on", "registerContextEngine"])

"""Uses every method and event of the protocol once with the real daemon, and records all messages.

`python tests/unit/protocol/record_examples.py` writes `tools/codegen/examples.json`, the
examples in protocol.md and the OpenRPC document. A test records them again and compares.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.child import line, request
from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Fail, Loopback, Stall
from tests.support.own_loop import environment
from tests.support.sharing import Shared

FILE = Path(__file__).parents[3] / "tools/codegen/examples.json"

CLOCK = 1_763_750_000.0
HOME = "/home/me"

TIMES = ("created_at", "updated_at", "trusted_at", "at", "time")
MEASURED = ("duration_ms", "pid", "uptime_s", "delay_s", "bytes")
NAMED = ("demo", "loop")
"""Sessions with a given id. Others get a random id, which is replaced in the examples."""

READ_FILE = {
    "name": "read_file",
    "description": "Reads a file of the project.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
INSTALL = "".join(
    f"Requirement already satisfied: package-{number}>=1.0 in ./.venv/lib/site-packages (1.0.{number})\n"
    for number in range(1, 13)
)
"""What `pip install` prints if there is nothing to do."""
LOADER = "def load(path):\n    return CACHE.get(path) or read(path)\n" * 8

MESSAGES = [
    {
        "id": "m1",
        "role": "user",
        "content": "Fix the stale cache in src/loader.py. Never touch the public API.",
    },
    {
        "id": "m2",
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look at the loader first."},
            {
                "type": "tool_call",
                "call_id": "call_1",
                "name": "read_file",
                "arguments": {"path": "src/loader.py"},
            },
        ],
    },
    {
        "id": "m3",
        "role": "tool",
        "content": [{"type": "tool_result", "call_id": "call_1", "content": LOADER}],
    },
]
ANSWER = {
    "role": "assistant",
    "content": "CACHE.get answers None for an empty file, so it is read anew. I compare with a sentinel.",
}
USAGE = {"input_tokens": 1180, "output_tokens": 42, "cache_read_input_tokens": 900}
OVERFLOW = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 213462 tokens > 200000 maximum",
    },
}


class Recorder:
    """A daemon, and all messages to and from it."""

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self.daemon = daemon
        self._folder = folder
        self._asked = -1
        self.calls: dict[str, dict[str, Any]] = {}
        self.more: dict[str, Any] = {}
        """Events that another client got."""

    def call(self, method: str, /, **params: Any) -> Any:
        """Asks, and keeps the first request and answer of each method."""
        result = self.daemon.call(method, **params)
        self.calls.setdefault(method, {"params": params, "result": result})
        return result

    def call_hooked(self, method: str, /, **params: Any) -> None:
        """Do the same as `call`, for a method that asks the client before it compacts."""
        request = self.daemon.ask(method, **params)
        self.answer("session/compacting", {"instructions": "the cache"})
        self.calls.setdefault(method, {"params": params, "result": self.daemon.result(request)})

    def answer(self, method: str, result: dict[str, Any]) -> None:
        """Waits for what the daemon asks next, and answers it."""
        got = self.daemon.wait(lambda got: got.value.get("method") == method and got.at > self._asked, method)
        self._asked = got.at
        self.calls.setdefault(method, {"params": got.value["params"], "result": result})
        self.daemon.send(json.dumps({"jsonrpc": "2.0", "id": got.value["id"], "result": result}).encode())

    def examples(self) -> dict[str, Any]:
        """Calls by method and events by type, without what differs from run to run."""
        events: dict[str, Any] = {}
        for event in self.daemon.events():
            if event["type"] == "message_end" and event["message"] is None:
                continue  # of a request that failed: one with a message shows more
            events.setdefault(event["type"], {**event, "seq": len(events) + 1})
        for name, event in self.more.items():
            events[name] = {**event, "seq": len(events) + 1}
        return _steady({"calls": self.calls, "events": events}, self._folder)


def record(folder: Path) -> dict[str, Any]:
    """Record all examples, with `folder` for the daemon's files. Return them."""
    home, work = folder / "data", folder / "work"
    work.mkdir()
    with Loopback() as server:
        env = environment("anthropic", server.base_url)
        with Daemon(home, env=env) as daemon:
            told = Recorder(daemon, folder)
            _conversation(told, work)
            _time_travel(told, work)
            _facts(told)
            _trust(told, work)
            _own_loop(told, server)
            _sharing(told, folder)
            told.call("session/close", session_id="demo")
            for read_only in (True, False):
                daemon.call("session/start", session_id="demo", read_only=read_only)
            told.call("session/delete", session_id="demo")
            return told.examples()


def _conversation(told: Recorder, work: Path) -> None:
    told.call(
        "session/start",
        session_id="demo",
        model="anthropic/claude-sonnet-4-5",
        system_prompt="You are a careful engineer.",
        tools=[READ_FILE],
        working_dir=str(work),
        client={"name": "example", "version": "1", "compaction_hook": True},
    )
    told.call("session/append", session_id="demo", messages=MESSAGES)
    told.call("turn/begin", session_id="demo")
    told.call("session/context", session_id="demo", format="anthropic")
    told.call("turn/end", session_id="demo", messages=[ANSWER], usage=USAGE)
    told.call("agent/state", session_id="demo")
    told.call("session/pin", session_id="demo", entry_ids=["e1"])
    told.call("tokens/count", model="openai/gpt-4o", text="How many tokens is this?")
    told.call_hooked("session/compact", session_id="demo", keep_messages=1)


def _time_travel(told: Recorder, work: Path) -> None:
    told.call("session/cost", session_id="demo")
    told.call("session/history", session_id="demo", limit=2)
    told.call("session/search", session_id="demo", query="sentinel")
    told.call("session/expand", session_id="demo", entry_ids=["e2"])
    told.call("session/undo", session_id="demo")
    told.call("session/redo", session_id="demo")
    told.daemon.call("session/undo", session_id="demo")
    told.call("session/configure", session_id="demo", compaction={"prune_protect": 0, "prune_minimum": 0})
    told.daemon.call(
        "session/append", session_id="demo", messages=[{"role": "user", "content": "Go on."}] * 2
    )
    told.daemon.call("session/append", session_id="demo", messages=[ANSWER])
    told.daemon.call(
        "session/append", session_id="demo", messages=[{"role": "user", "content": "And a test."}]
    )
    told.call("session/prune", session_id="demo")
    told.call("session/branch", session_id="demo", entry_id="e4")
    told.call("session/redact", session_id="demo", entry_ids=["e3"])
    told.call("session/diff", session_id="demo")
    told.call("session/export", session_id="demo", format="compactd", path=str(work / "demo.jsonl"))
    told.call("session/import", path=str(work / "demo.jsonl"))
    told.call_hooked("turn/error", session_id="demo", error={"status": 400, "body": OVERFLOW})
    told.call("model/set", session_id="demo", model="openai/gpt-4o")
    told.call(
        "session/reduce",
        session_id="demo",
        name="bash",
        arguments={"command": "pip install -r requirements.txt"},
        call_id="call_2",
        content=INSTALL,
    )
    told.call("session/list")


def _steady(value: Any, folder: Path) -> Any:
    """Return `value` with constants for what differs between runs: paths, times, ids, durations."""
    ids: dict[str, str] = {}

    def steady(key: str, value: Any) -> Any:
        match value:
            case dict():
                return {name: steady(name, one) for name, one in value.items()}
            case list():
                return [steady(key, one) for one in value]
            case float() if key in TIMES:
                return CLOCK
            case int() | float() if key in MEASURED:
                return 0
            case str() if key in ("compaction_id", "turn_id") or (key == "session_id" and value not in NAMED):
                return ids.setdefault(value, f"{key[0]}{sum(i[0] == key[0] for i in ids.values()) + 1}")
            case str():
                value = value.replace(str(folder), HOME)
                return re.sub(r"127\.0\.0\.1:[0-9]+", "127.0.0.1:8080", value)
            case _:
                return value

    return steady("", value)


def _facts(told: Recorder) -> None:
    told.call("models/lookup", model="us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    told.call("models/list", provider="longcat")
    told.call("models/forget", model="anthropic/claude-sonnet-4-5")
    told.call("overflow/classify", status=400, body=OVERFLOW)
    told.call("daemon/ping")
    told.call("daemon/info")


def _trust(told: Recorder, work: Path) -> None:
    (work / ".compactd.toml").write_text('[compaction]\nkeep_messages = 8\nstrategy = "summarize"\n')
    told.call("trust/set", path=str(work), trusted=True)
    told.call("trust/list")


def _own_loop(told: Recorder, server: Loopback) -> None:
    daemon = told.daemon
    daemon.call("session/start", session_id="loop", model="anthropic/claude-sonnet-4-5", tools=[READ_FILE])
    server.play(
        Fail(status=529),
        Answer(
            text="I look.",
            thinking="Where is it read?",
            calls=(Call("read_file", '{"path":"src/loader.py"}'),),
        ),
        Answer(text="It is mended."),
        Stall("Let me think about it once more."),
        Fail(status=401),
    )
    told.call("agent/prompt", session_id="loop", text="Fix the stale cache in src/loader.py.")
    told.answer("tool/execute", {"content": LOADER[:58]})
    daemon.event("agent_end", "loop")
    turn = daemon.call("agent/prompt", session_id="loop", text="Is there more?")["turn_id"]
    daemon.event("message_delta", "loop", after=daemon.event("turn_start", "loop", turn_id=turn).at)
    waits = daemon.call("agent/prompt", session_id="loop", text="And the tests?")["turn_id"]
    daemon.event("message_queued", "loop")
    told.call("agent/abort", session_id="loop")
    daemon.event("agent_end", "loop", turn_id=turn)
    told.call("prompt/drop", session_id="loop", prompt_id=waits)
    daemon.call("agent/prompt", session_id="loop", text="What now?")
    daemon.event("error", "loop")
    daemon.call("session/close", session_id="loop")


def _sharing(told: Recorder, folder: Path) -> None:
    told.daemon.call("session/start", session_id="shared")
    told.daemon.call("session/append", session_id="shared", messages=MESSAGES[:1])
    told.call("session/subscribe", session_id="shared", since_seq=0)
    told.call("session/unsubscribe", session_id="shared")
    told.call("daemon/retire")
    with Shared(folder / "other") as shared:
        writer, sleeper = shared.attach(), shared.connect()
        writer.call("session/start", session_id="shared")
        writer.call("session/append", session_id="shared", messages=MESSAGES[:1])
        sleeper.sendall(line(request(1, "session/subscribe", {"session_id": "shared"})))
        # It does not read, and one event of these takes 700 kB.
        for _ in range(24):
            writer.call("session/pin", session_id="shared", entry_ids=["e1"] * 100_000)
        with sleeper.makefile("rb") as output:
            for body in output:
                event = json.loads(body).get("params", {})
                if event.get("type") == "events_dropped":
                    told.more["events_dropped"] = {**event, "resume_after": 0}
                    return
        raise AssertionError("a client that did not read was told nothing")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FILE.write_text(json.dumps(record(Path(folder)), indent=1, ensure_ascii=False) + "\n", "utf-8")

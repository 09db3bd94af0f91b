"""The `data` of each error, provoked over the wire, matches the published schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from compactd.daemon.rpc.outgoing import error_object
from compactd.protocol.errors import ProviderFailed
from compactd.storage.hook_files import HookFiles
from tests.e2e.conftest import Spawn
from tests.e2e.test_disk import limited_to, stored
from tests.support.client import SERVE, Daemon, Refused
from tests.support.loopback import Answer, Call, Loopback
from tests.support.talk import CHARS4, turns, user
from tools.codegen.json_schema import json_schema, open_rpc

SCHEMA: dict[str, Any] = json.loads(json_schema())
BY_CODE = {one["properties"]["code"]["const"]: one for one in SCHEMA["properties"]["error"]["anyOf"]}
NO_KEYS = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": "", "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


def check(code: int, data: Any) -> None:
    """Raises for data that the schema does not describe: a wrong value, or a field that is not in it."""
    shape = SCHEMA["$defs"][BY_CODE[code]["properties"]["data"]["$ref"].rpartition("/")[2]]
    strict = {**shape, "additionalProperties": False, "$defs": SCHEMA["$defs"]}
    jsonschema.validate(data, strict)


def data_of(error: Refused, code: int) -> dict[str, Any]:
    """The data of an error with this code, as the schema has it, without what is null."""
    assert error.code == code, error
    check(code, error.data)
    return {name: value for name, value in error.data.items() if value not in (None, [])}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def test_every_error_of_the_daemon_has_a_schema_of_its_data() -> None:
    without = {code for code, one in BY_CODE.items() if "data" not in one["properties"]}

    assert without == {-32800}
    assert set(BY_CODE) == {-32800, -32603, -32602, *range(1001, 1012)}
    documented = json.loads(open_rpc())["components"]["errors"]
    assert {one["code"] for one in documented.values() if "data" not in one} == {-32800}


@pytest.mark.parametrize(
    "ask",
    [
        lambda daemon: daemon.refusal("session/context", session_id="nobody"),
        lambda daemon: daemon.refusal("session/delete", session_id="nobody"),
        lambda daemon: daemon.refusal("agent/state", session_id="nobody"),
        lambda daemon: daemon.refusal(
            "workspace/executeCommand", command="compactd.state", arguments=[{"session_id": "nobody"}]
        ),
    ],
    ids=["context", "delete", "state", "command"],
)
def test_an_unknown_session_is_named(daemon: Daemon, ask: Callable[[Daemon], Refused]) -> None:
    assert data_of(ask(daemon), 1001) == {"session_id": "nobody", "exists": False}


def test_a_command_without_any_session_names_none(spawn: Spawn) -> None:
    error = spawn().refusal("workspace/executeCommand", command="compactd.state", arguments=[])

    assert data_of(error, 1001) == {"exists": False}


def test_a_session_that_is_stored_and_not_open_exists(daemon: Daemon, session: str) -> None:
    daemon.call("session/close", session_id=session)

    error = daemon.refusal("session/context", session_id=session)

    assert data_of(error, 1001) == {"session_id": session, "exists": True}


def test_a_failed_request_without_a_session_is_classified_all_the_same(daemon: Daemon) -> None:
    failure = {"status": 400, "message": "prompt is too long: 213462 tokens > 200000 maximum"}

    error = daemon.refusal("turn/error", session_id="nobody", error=failure)

    assert data_of(error, 1001) == {
        "session_id": "nobody",
        "exists": False,
        "overflow": True,
        "kind": "overflow",
        "fix": "compact",
    }


def test_a_session_that_is_being_compacted_names_the_compaction(spawn: Spawn) -> None:
    daemon = spawn()
    daemon.call("session/start", session_id="s", client={"compaction_hook": True}, compaction=CHARS4)
    daemon.call("session/append", session_id="s", messages=turns(10, 100))
    running = daemon.ask("session/compact", session_id="s", keep_recent=300)
    asked = daemon.wait(lambda got: got.value.get("method") == "session/compacting", "the hook")

    error = daemon.refusal("session/undo", session_id="s")

    daemon.send(json.dumps({"jsonrpc": "2.0", "id": asked.value["id"], "result": {}}).encode())
    done = daemon.result(running)["compaction_id"]
    assert data_of(error, 1002) == {"holder": "compaction", "compaction_id": done}


def test_a_session_that_answers_a_prompt_names_the_prompt(spawn: Spawn, server: Loopback) -> None:
    server.play(Answer(calls=(Call(name="read"),)))
    daemon = spawn(env={"ANTHROPIC_BASE_URL": server.base_url, "ANTHROPIC_API_KEY": "key-of-the-test"})
    tool = {"name": "read", "input_schema": {"type": "object"}}
    daemon.call("session/start", session_id="s", model="anthropic/claude-sonnet-4-5", tools=[tool])
    prompt = daemon.call("agent/prompt", session_id="s", text="Read it.")
    daemon.wait(lambda got: got.value.get("method") == "tool/execute", "the tool")

    undo = daemon.refusal("session/undo", session_id="s")
    end = daemon.refusal("turn/end", session_id="s", messages=[{"role": "assistant", "content": "No."}])

    assert data_of(undo, 1002) == {"holder": "prompt", "turn_id": prompt["turn_id"]}
    assert data_of(end, 1002) == data_of(undo, 1002)


def test_a_damaged_session_names_its_file_and_line(spawn: Spawn) -> None:
    path = stored(spawn)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[5] = lines[5].replace(b"went", b"want", 1)
    path.write_bytes(b"".join(lines))

    error = spawn().refusal("session/start", session_id="s")

    assert data_of(error, 1003) == {
        "session_id": "s",
        "path": str(path),
        "line": 6,
        "readable_before": 5,
        "readable_after": len(lines) - 6,
    }


def test_a_session_of_another_process_names_that_process(spawn: Spawn) -> None:
    owner, reader = spawn(), spawn()
    owner.call("session/start", session_id="s")
    reader.call("session/start", session_id="s")

    append = data_of(reader.refusal("session/append", session_id="s", messages=[user(5)]), 1004)
    delete = data_of(spawn().refusal("session/delete", session_id="s"), 1004)

    assert append.pop("session_id") == "s"
    assert append["pid"] == delete["pid"] == owner.process.pid
    if Path("/proc/self/comm").exists():
        comm = Path(f"/proc/{owner.process.pid}/comm").read_text().strip()
        assert append["name"] == delete["name"] == comm


def test_a_full_disk_is_named(spawn: Spawn) -> None:
    daemon = spawn(command=limited_to(20_000))
    daemon.call("session/start", session_id="s")

    error = daemon.refusal("session/append", session_id="s", messages=[user(6000)])

    assert data_of(error, 1005)["reason"] in ("EFBIG", "ENOSPC")


def test_a_model_without_a_key_is_named_with_the_variable_that_is_missing(spawn: Spawn) -> None:
    daemon = spawn(env=NO_KEYS)
    daemon.call("session/start", session_id="s", model="anthropic/claude-sonnet-4-5")
    daemon.call("session/start", session_id="none")

    error = daemon.refusal("agent/prompt", session_id="s", text="Hello")
    unnamed = daemon.refusal("agent/prompt", session_id="none", text="Hello")

    assert data_of(error, 1007) == {
        "provider": "anthropic",
        "model": "anthropic/claude-sonnet-4-5",
        "env": ["ANTHROPIC_API_KEY"],
    }
    assert data_of(unnamed, 1007) == {}


def test_what_cannot_fit_has_one_shape_from_whoever_says_it(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction={"context_window": 1000, **CHARS4})["session_id"]
    daemon.call("session/append", session_id=session, messages=[*turns(2, 20), user(1200)])

    begin = data_of(daemon.refusal("turn/begin", session_id=session), 1008)
    target = data_of(daemon.refusal("session/compact", session_id=session, target_tokens=20), 1008)

    assert set(begin) == {"used", "window", "limit", "floor"}
    assert set(target) == {*begin, "least_target"}
    assert (begin["used"], begin["window"], target["limit"]) == (1280, 1000, 20)
    assert target["least_target"] > 20


def test_an_undo_that_cannot_fit_and_a_model_that_is_too_small_have_that_shape(daemon: Daemon) -> None:
    session = daemon.call("session/start", compaction={"context_window": 2000, **CHARS4})["session_id"]
    daemon.call("session/append", session_id=session, messages=turns(10, 120))
    daemon.call("session/compact", session_id=session, keep_recent=300)

    undo = data_of(daemon.refusal("session/undo", session_id=session), 1008)

    assert undo["used"] > undo["window"] == 2000


def test_a_frame_and_a_nesting_above_the_limit_have_one_shape(spawn: Spawn) -> None:
    daemon = spawn(command=(*SERVE, "--frame-limit", "4096"))
    deep = b'{"session_id":"s","messages":%s}' % (b"[" * 1000 + b"]" * 1000)

    frame = daemon.refusal("session/search", query="x" * 8192)
    nested = daemon.refused(daemon.ask_raw("session/append", deep))

    assert data_of(frame, 1009)["limit_bytes"] == 4096
    assert "limit_bytes" not in data_of(nested, 1009)


def test_a_format_that_is_not_known_lists_those_that_are(daemon: Daemon, session: str) -> None:
    context = daemon.refusal("session/context", session_id=session, format="cobol")
    export = daemon.refusal("session/export", session_id=session, format="cobol")
    read = daemon.refusal("session/import", content="x", format="cobol")

    for error in (context, export, read):
        data = data_of(error, 1010)
        assert data["format"] == "cobol"
        assert "neutral" in data["supported"]


def test_an_undo_of_nothing_names_the_session(daemon: Daemon, session: str) -> None:
    assert data_of(daemon.refusal("session/undo", session_id=session), 1011) == {"session_id": session}


def test_a_bad_field_is_named(daemon: Daemon) -> None:
    error = daemon.refusal("session/append", session_id="s")
    command = daemon.refusal("workspace/executeCommand", command="compactd.fly")

    assert data_of(error, -32602) == {"path": "$.messages"}
    assert data_of(command, -32602) == {"path": "$.command"}


def test_errors_that_the_wire_has_no_way_to_provoke_have_their_shape() -> None:
    failed = error_object(ProviderFailed("no answer", provider="openai", cause="timeout"), "a test")
    bug = error_object(RuntimeError("a bug"), "a test")

    for told in (failed, bug):
        check(told.code, json.loads(bytes(told.data)))
    assert json.loads(bytes(bug.data))["error_id"]


def test_a_redaction_while_a_hook_of_the_agent_works_says_what_holds_the_session(
    spawn: Spawn, home: Path
) -> None:
    daemon, session = spawn(), "claude-code:held"
    daemon.call("session/start", session_id=session, compaction=CHARS4)
    (entry_id,) = daemon.call("session/append", session_id=session, messages=[user(5)])["entry_ids"]
    hook = HookFiles(home, session)

    with hook.lock():
        refused = daemon.refusal("session/redact", session_id=session, entry_ids=[entry_id])

    assert data_of(refused, 1002)["holder"] == "hook"
    assert daemon.call("session/redact", session_id=session, entry_ids=[entry_id])["redacted"] == 1

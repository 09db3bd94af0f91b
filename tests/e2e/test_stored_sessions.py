"""Sessions on disk: resuming, configuring, listing, closing, deleting."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.talk import CHARS4, turns, user


def started(daemon: Daemon, session: str, **params: object) -> dict[str, Any]:
    """The answer to `session/start`."""
    return dict(daemon.call("session/start", session_id=session, **params))


# --- resuming and configuring -----------------------------------------------------------------------


def test_a_resumed_session_keeps_model_settings_prompt_and_tools(spawn: Spawn) -> None:
    tool = {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
    daemon = spawn()
    started(
        daemon,
        "s",
        model="anthropic/claude-sonnet-4-5",
        system_prompt="Be brief.",
        tools=[tool],
        title="Mine",
        compaction={"threshold_ratio": 0.5},
    )
    daemon.call("session/append", session_id="s", messages=turns(2, 10))
    before = daemon.call("session/context", session_id="s")
    daemon.stop()

    again = spawn()
    answer = started(again, "s")

    assert (answer["resumed"], answer["model"], answer["message_count"], answer["seq"]) == (
        True,
        "anthropic/claude-sonnet-4-5",
        4,
        0,
    )
    assert answer["token_usage"]["threshold_tokens"] == 100_000
    assert again.call("session/context", session_id="s") == before
    assert again.call("agent/state", session_id="s")["tools"] == ["read"]


def test_what_is_given_at_a_resume_replaces_what_was(spawn: Spawn) -> None:
    daemon = spawn()
    started(daemon, "s", model="anthropic/claude-sonnet-4-5", system_prompt="Be brief.")
    daemon.stop()

    again = spawn()
    answer = started(again, "s", model="acme/unheard-of-9", system_prompt="Be long.")

    assert (answer["model"], answer["token_usage"]["context_window"]) == ("acme/unheard-of-9", 128_000)
    assert again.call("session/context", session_id="s")["system"] == "Be long."


def test_starting_a_session_twice_in_one_daemon_is_a_resume(daemon: Daemon) -> None:
    first = started(daemon, "twice")
    daemon.call("session/append", session_id="twice", messages=turns(1, 10))

    second = started(daemon, "twice")

    assert (first["resumed"], second["resumed"]) == (False, True)
    assert second["message_count"] == 2


def test_configure_tells_each_setting_and_where_it_came_from(spawn: Spawn, tmp_path: Path) -> None:
    config = tmp_path / "config" / "compactd"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[compaction]\nsummary_tokens = 900\nprune_protect = 111\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / ".compactd.toml").write_text("[compaction]\nprune_protect = 22200\nprune_minimum = 33300\n")
    daemon = spawn(env={"COMPACTD_PRUNE_MINIMUM": "444", "COMPACTD_TOOL_OUTPUT_CHARS": "555"})
    daemon.call(
        "initialize",
        processId=None,
        rootUri=None,
        capabilities={},
        initializationOptions={"compaction": {"tool_output_chars": 666, "split_min_messages": 7}},
    )
    daemon.notify("initialized")
    started(
        daemon, "s", working_dir=str(work), compaction={"split_min_messages": 8, "keep_recent_tokens": 9999}
    )

    settings = daemon.call("session/configure", session_id="s", compaction={"keep_recent_tokens": 8888})[
        "settings"
    ]

    def told(name: str) -> tuple[object, str]:
        return settings[name]["value"], settings[name]["source"]

    assert told("keep_recent_tokens") == (8888, "session/configure")
    assert told("split_min_messages") == (8, "session/start")
    assert told("tool_output_chars") == (666, "initializationOptions")
    assert told("prune_minimum") == (444, "environment")
    assert told("prune_protect") == (22_200, ".compactd.toml")
    assert told("summary_tokens") == (900, "config.toml")
    assert told("enabled") == (True, "profile default")


def test_null_for_an_optional_field_is_absent(daemon: Daemon) -> None:
    session = daemon.call(
        "session/start",
        session_id=None,
        model=None,
        title=None,
        compaction=None,
        context_window=None,
        persist=None,
        durability=None,
        client=None,
    )["session_id"]

    answer = daemon.call(
        "session/append", session_id=session, messages=turns(1, 5), usage=None, epoch=None, files=None
    )

    assert answer["entry_ids"] == ["e1", "e2"]


def test_a_session_that_is_not_persisted_leaves_no_file(spawn: Spawn, home: Path) -> None:
    daemon = spawn()
    started(daemon, "brief", persist=False)
    daemon.call("session/append", session_id="brief", messages=turns(2, 10))

    assert len(daemon.call("session/context", session_id="brief")["messages"]) == 4
    daemon.stop()
    assert not list(home.rglob("*.jsonl"))


def test_messages_kept_by_the_operating_system_alone_survive_a_killed_daemon(spawn: Spawn) -> None:
    daemon = spawn()
    started(daemon, "s", durability="os")
    daemon.call("session/append", session_id="s", messages=turns(3, 10))
    daemon.kill()

    assert started(spawn(), "s")["message_count"] == 6


# --- list, close, delete ----------------------------------------------------------------------------


def test_the_list_has_the_newest_first_with_what_a_person_looks_for(spawn: Spawn) -> None:
    daemon = spawn()
    started(daemon, "old", model="acme/one", compaction={"context_window": 100_000, **CHARS4})
    daemon.call(
        "session/append", session_id="old", messages=[user(0, content="Fix the loader"), *turns(6, 200)]
    )
    daemon.call("session/compact", session_id="old", keep_recent=600)
    daemon.call("session/close", session_id="old")
    started(daemon, "new", title="Mine")

    rows = daemon.call("session/list")["sessions"]

    assert [row["session_id"] for row in rows] == ["new", "old"]
    new, old = rows
    assert (new["title"], new["message_count"], new["open"]) == ("Mine", 0, True)
    assert (old["title"], old["model"], old["compactions"], old["open"]) == (
        "Fix the loader",
        "acme/one",
        1,
        False,
    )
    assert old["bytes"] > 4000
    assert old["updated_at"] <= new["updated_at"]
    assert spawn().call("session/list")["sessions"][1] == old, "another daemon reads the same from disk"


def test_a_closed_session_is_stored_and_every_method_says_how_to_open_it(daemon: Daemon) -> None:
    started(daemon, "shut")
    daemon.call("session/close", session_id="shut")

    asked = [
        daemon.ask(method, session_id="shut", **params)
        for method, params in {
            "session/append": {"messages": turns(1, 5)},
            "session/context": {},
            "session/compact": {},
            "session/history": {},
            "session/search": {"query": "x"},
            "session/expand": {"entry_ids": ["e1"]},
            "session/undo": {},
            "session/redo": {},
            "session/close": {},
            "session/configure": {},
            "session/pin": {"entry_ids": []},
            "agent/state": {},
            "turn/begin": {},
            "turn/end": {"messages": []},
        }.items()
    ]
    errors = [daemon.refused(one) for one in asked]

    assert {(error.code, error.data["exists"]) for error in errors} == {(1001, True)}
    assert all("session/start" in error.message for error in errors)
    assert daemon.event("session_closed", "shut")
    assert started(daemon, "shut")["resumed"] is True


def test_a_session_that_never_was_is_another_error_of_the_same_code(daemon: Daemon) -> None:
    error = daemon.refusal("session/context", session_id="never")

    assert (error.code, error.data["exists"]) == (1001, False)
    assert "session/start" in error.message
    gone = daemon.refusal("session/delete", session_id="never")
    assert gone.code == 1001


@pytest.mark.parametrize("is_open", [True, False])
def test_a_deleted_session_is_gone_with_its_files(spawn: Spawn, home: Path, is_open: bool) -> None:
    daemon = spawn()
    started(daemon, "keep")
    started(daemon, "gone")
    daemon.call("session/append", session_id="gone", messages=turns(2, 10))
    if not is_open:
        daemon.call("session/close", session_id="gone")

    assert daemon.call("session/delete", session_id="gone") == {}

    assert daemon.refusal("session/context", session_id="gone").data["exists"] is False
    assert [row["session_id"] for row in daemon.call("session/list")["sessions"]] == ["keep"]
    assert not [path for path in home.rglob("*") if "gone" in path.name]
    assert started(daemon, "gone")["resumed"] is False


ODD_IDS = [
    "../x",
    "/etc/passwd",
    "..",
    ".",
    "a/b",
    "a\\b",
    "CON",
    "con.",
    "x" * 256,
    "ünïcode 一",
    "%2e%2e",
    " ",
]


def test_odd_ids_are_sessions_like_any_other_and_touch_nothing_outside_their_folder(
    spawn: Spawn, home: Path, tmp_path: Path
) -> None:
    outside = [tmp_path / "x", tmp_path / "home.jsonl", home.parent / "b"]
    for path in outside:
        path.write_text("mine")
    daemon = spawn()
    for odd in ODD_IDS:
        started(daemon, odd)
        daemon.call("session/append", session_id=odd, messages=[user(0, content=f"in {odd}")])
    around = {path for path in tmp_path.rglob("*") if home not in path.parents}

    listed = {row["session_id"] for row in daemon.call("session/list")["sessions"]}
    for odd in ODD_IDS:
        assert daemon.call("session/context", session_id=odd)["messages"][0]["content"] == f"in {odd}"
        daemon.call("session/delete", session_id=odd)
        assert daemon.refusal("session/delete", session_id=odd).code == 1001

    assert listed == set(ODD_IDS)
    assert daemon.call("session/list")["sessions"] == []
    assert {path for path in tmp_path.rglob("*") if home not in path.parents} == around
    assert [path.read_text() for path in outside] == ["mine"] * 3


def test_ids_that_differ_in_case_alone_are_different_sessions(daemon: Daemon) -> None:
    started(daemon, "Case")
    daemon.call("session/append", session_id="Case", messages=turns(1, 5))

    assert started(daemon, "case")["resumed"] is False


def test_a_record_of_an_unknown_kind_is_told_and_hides_no_other_session(home: Path, spawn: Spawn) -> None:
    daemon = spawn()
    for session in ("known", "strange"):
        started(daemon, session)
        daemon.call("session/append", session_id=session, messages=[user(10)])
    daemon.stop()
    file = next((home / "sessions").glob("strange-*.jsonl"))
    lines = file.read_bytes().replace(b'"type":"message"', b'"type":"hologram"').splitlines()
    bodies = [line[: line.rindex(b',"crc"')] for line in lines]
    file.write_bytes(b"".join(b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)) for body in bodies))

    daemon = spawn()
    listed = {row["session_id"] for row in daemon.call("session/list")["sessions"]}
    first, second = (daemon.refusal("session/start", session_id="strange") for _ in range(2))

    assert listed == {"known", "strange"}
    assert (first.code, second.code) == (1003, 1003), "its lock is free again"
    assert "newer version" in first.message


def test_an_editors_command_opens_the_session_that_is_stored(spawn: Spawn) -> None:
    first = spawn()
    for name in ("older", "newer"):
        first.call("session/start", session_id=name, compaction=CHARS4)
        first.call("session/append", session_id=name, messages=[user(5, content=name), *turns(4, 40)])
    first.kill()
    daemon = spawn()

    def command(name: str, **params: object) -> Any:
        return daemon.call("workspace/executeCommand", command=f"compactd.{name}", arguments=[params])

    assert command("state")["session_id"] == "newer"
    assert command("compact", session_id="older", keep_messages=1)["compacted"] is True
    assert command("undo", session_id="older")["message_count"] == 9
    unknown = {"command": "compactd.undo", "arguments": [{"session_id": "x"}]}
    assert daemon.refusal("workspace/executeCommand", **unknown).code == 1001
    assert {one["session_id"] for one in command("sessions")["sessions"]} == {"older", "newer"}

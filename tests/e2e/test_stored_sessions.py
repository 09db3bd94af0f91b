"""Sessions on disk: resuming, listing, closing, deleting, and two daemons on one folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.client import Daemon
from e2e.conftest import Spawn
from e2e.talk import CHARS4, assistant, turns, user

FOLLOW_S = 1.0
"""What contract.md promises to whoever reads along."""


def started(daemon: Daemon, session: str, **params: object) -> dict:
    answer = daemon.call("session/start", session_id=session, **params)
    assert isinstance(answer, dict)
    return answer


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
    (work / ".compactd.toml").write_text("[compaction]\nprune_protect = 222\nprune_minimum = 333\n")
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
    assert told("prune_protect") == (222, ".compactd.toml")
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


# --- two daemons ------------------------------------------------------------------------------------


@pytest.fixture
def two(spawn: Spawn) -> tuple[Daemon, Daemon]:
    """The owner of the session `s`, and a daemon that reads along."""
    owner, reader = spawn(), spawn()
    started(owner, "s", compaction={"context_window": 100_000, **CHARS4})
    owner.call("session/append", session_id="s", messages=turns(6, 200))
    return owner, reader


def test_a_session_that_is_open_elsewhere_can_be_read_and_every_write_says_why_not(
    two: tuple[Daemon, Daemon],
) -> None:
    owner, reader = two

    answer = started(reader, "s")

    assert (answer["read_only"], answer["resumed"], answer["message_count"]) == (True, True, 12)
    assert any("read" in warning for warning in answer["warnings"])
    reads = [
        reader.call("session/context", session_id="s"),
        reader.call("session/history", session_id="s"),
        reader.call("agent/state", session_id="s")["token_usage"],
        reader.call("session/search", session_id="s", query="went"),
    ]
    assert reads == [
        owner.call("session/context", session_id="s"),
        owner.call("session/history", session_id="s"),
        owner.call("agent/state", session_id="s")["token_usage"],
        owner.call("session/search", session_id="s", query="went"),
    ]
    writes: list[Callable[[], object]] = [
        lambda: reader.refusal("session/append", session_id="s", messages=turns(1, 5)),
        lambda: reader.refusal("session/compact", session_id="s", keep_recent=500),
        lambda: reader.refusal("session/undo", session_id="s"),
        lambda: reader.refusal("session/redo", session_id="s"),
        lambda: reader.refusal("session/configure", session_id="s", title="x"),
        lambda: reader.refusal("session/pin", session_id="s", entry_ids=["e1"]),
        lambda: reader.refusal("session/delete", session_id="s"),
        lambda: reader.refusal("turn/begin", session_id="s"),
        lambda: reader.refusal("turn/end", session_id="s", messages=turns(1, 5)),
    ]
    errors = [write() for write in writes]
    assert [error.code for error in errors] == [1004] * len(writes)  # type: ignore[attr-defined]
    assert all("process" in error.message for error in errors)  # type: ignore[attr-defined]
    assert owner.call("session/context", session_id="s")["messages"] == reads[0]["messages"]


def test_a_reader_follows_the_owner_within_a_second_and_is_told(two: tuple[Daemon, Daemon]) -> None:
    owner, reader = two
    started(reader, "s")
    waited = []

    for number in range(3):
        before = reader.now
        usage = owner.call(
            "session/append", session_id="s", messages=[assistant(10), user(10, id=f"m{number}")]
        )["token_usage"]
        since = time.monotonic()
        told = reader.event("usage_update", "s", after=before).value["params"]
        waited.append(time.monotonic() - since)
        assert told["usage"] == usage

    # The best of three: what is promised is how often it looks, not how busy this machine is.
    assert min(waited) <= FOLLOW_S
    assert reader.call("session/context", session_id="s") == owner.call("session/context", session_id="s")


def test_a_reader_sees_compactions_and_undos_of_the_owner(two: tuple[Daemon, Daemon]) -> None:
    owner, reader = two
    started(reader, "s")

    for method, params in (
        ("session/compact", {"keep_recent": 600}),
        ("session/undo", {}),
        ("session/redo", {}),
    ):
        before = reader.now
        owner.call(method, session_id="s", **params)
        context = owner.call("session/context", session_id="s")
        at = before
        while (got := reader.event("usage_update", "s", after=at)).value["params"]["usage"][
            "epoch"
        ] != context["epoch"]:
            at = got.at
        assert reader.call("session/context", session_id="s") == context


@pytest.mark.parametrize("ending", ["stop", "kill", "close"])
def test_when_the_owner_ends_the_next_start_takes_the_session_over(
    two: tuple[Daemon, Daemon], ending: str
) -> None:
    owner, reader = two
    started(reader, "s")
    match ending:
        case "stop":
            owner.stop()
        case "kill":
            owner.kill()
        case _:
            owner.call("session/close", session_id="s")

    answer = started(reader, "s")

    assert (answer["read_only"], answer["message_count"]) == (False, 12)
    assert reader.call("session/append", session_id="s", messages=turns(1, 5))["entry_ids"] == ["e13", "e14"]


def test_the_list_says_that_a_session_is_open_in_another_process(two: tuple[Daemon, Daemon]) -> None:
    owner, reader = two

    while_owned = reader.call("session/list")["sessions"]
    owner.stop()
    after = reader.call("session/list")["sessions"]

    assert [row["open"] for row in while_owned] == [True]
    assert [row["open"] for row in after] == [False]

"""`compactd sessions` and `compactd models`."""

from __future__ import annotations

import os
from time import time

import pytest

from compactd.cli.commands.sessions import delete_each
from compactd.client import Client, RpcError
from compactd.protocol.wire import Left, SessionInfo
from tests.support.command_line import TERMINAL, environment, run, run_each
from tests.support.terminals import in_terminal


@pytest.fixture
def home(tmp_path):
    return tmp_path


def stored(home, *session_ids: str) -> None:
    """Sessions with one message each, one after the other."""
    with Client(env=environment(home)) as client:
        for session_id in session_ids:
            client.call("session/start", {"session_id": session_id, "title": f"About {session_id}"})
            message = {"role": "user", "content": "Hello."}
            client.call("session/append", {"session_id": session_id, "messages": [message]})


def test_the_stored_sessions_are_listed_newest_first_one_a_line(home) -> None:
    stored(home, "old", "new")

    text, data = run_each(home, ("sessions",), ("sessions", "--json"))
    terminal = run(home, "sessions", env=TERMINAL)

    assert (text.code, text.err) == (0, "")
    assert [line.split()[0] for line in text.lines] == ["new", "old"]
    assert all(line.endswith(f"1 message  About {line.split()[0]}") for line in text.lines)
    assert [one["session_id"] for one in data.json["sessions"]] == ["new", "old"]
    assert terminal.words == text.words
    assert max(map(len, terminal.lines)) <= 80


@pytest.mark.parametrize("columns", [40, 80])
def test_a_terminal_shows_whole_ids_and_ages_and_the_beginning_of_each_title(home, columns) -> None:
    session_id, title = "0123456789abcdef", "Why does the parser reject the ledger's last line on Tuesdays?"
    with Client(env=environment(home)) as client:
        model = "anthropic/claude-opus-4-5-20251101"
        client.call("session/start", {"session_id": session_id, "title": title, "model": model})
        for _ in range(2):
            message = {"role": "user", "content": "Hello."}
            client.call("session/append", {"session_id": session_id, "messages": [message]})

    seen = run(home, "sessions", env={**TERMINAL, "COLUMNS": str(columns)})

    (line,) = seen.lines
    assert line.startswith(f"{session_id}  just now  ")
    assert ("2 messages" in line) == (columns == 80)
    assert title[: 10 if columns == 40 else 30] in line
    assert len(line) <= columns


def test_where_nothing_is_stored_that_is_said(home) -> None:
    seen = run(home, "sessions")

    assert (seen.code, seen.lines[0]) == (0, "no sessions are stored")
    assert "`compactd import FILE` imports a session file" in seen.out


def test_sessions_that_were_never_used_are_listed_with_all_alone(home) -> None:
    with Client(env=environment(home)) as client:
        client.call("session/start", {"session_id": "unused"})
    alone = run(home, "sessions")
    stored(home, "used")

    text, data, everything, all_data = run_each(
        home, ("sessions",), ("sessions", "--json"), ("sessions", "--all"), ("sessions", "--all", "--json")
    )

    assert (alone.code, alone.out) == (0, "1 empty session; --all lists them\n")
    assert text.lines == ["used  just now  1 message  About used"]
    assert [one["session_id"] for one in data.json["sessions"]] == ["used"]
    assert [line.split()[0] for line in everything.lines] == ["used", "unused"]
    assert len(all_data.json["sessions"]) == 2


def test_a_session_is_deleted_by_its_whole_id_alone(home) -> None:
    stored(home, "ledger-1", "ledger-2")

    wrong = run(home, "sessions", "delete", "ledger")
    done = run(home, "sessions", "delete", "ledger-1")
    left = run(home, "sessions", "--json").json["sessions"]

    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err == (
        "no session has the id 'ledger'.\n"
        "2 sessions have an id that begins so. `compactd sessions` lists the stored sessions.\n"
    )
    assert (done.code, done.out) == (0, "deleted ledger-1 (1 message)\n")
    assert [one["session_id"] for one in left] == ["ledger-2"]


def test_old_sessions_expire_but_open_and_newer_ones_stay(home) -> None:
    stored(home, "old", "older", "new", "in-use")
    for name, days in (("old", 31), ("older", 400), ("new", 29), ("in-use", 400)):
        file = next((home / "data" / "sessions").glob(f"{name}-*.jsonl"))
        os.utime(file, (time() - days * 86_400,) * 2)

    with Client(env=environment(home)) as client:
        client.call("session/start", {"session_id": "in-use"})
        dry = run(home, "sessions", "expire", "--older-than", "30", "--dry-run", "--json")
        done = run(home, "sessions", "expire", "--older-than", "30")
        again = run(home, "sessions", "expire", "--older-than", "30")
        wrong = run(home, "sessions", "expire", "--older-than", "-1")

    assert (dry.code, sorted(dry.json["would_delete"])) == (3, ["old", "older"])
    assert (done.code, done.lines[0]) == (0, "deleted 2 sessions, not written for 30 days")
    assert (again.code, again.out) == (3, "nothing was deleted: no session is so old\n")
    assert wrong.code == 2
    left = run(home, "sessions", "--json").json["sessions"]
    assert sorted(one["session_id"] for one in left) == ["in-use", "new"]


def test_a_session_that_cannot_be_deleted_is_left_and_the_others_are_deleted() -> None:
    old = [
        SessionInfo(
            session_id=name,
            title=None,
            model=None,
            message_count=1,
            compactions=0,
            bytes=100,
            updated_at=0.0,
            open=False,
        )
        for name in "abc"
    ]
    asked: list[str] = []

    def delete(session_id: str) -> tuple[Left, ...]:
        asked.append(session_id)
        if session_id == "b":
            raise RpcError(1004, "Another process has this session open.")
        return ()

    deleted, left = delete_each(old, delete)

    assert asked == ["a", "b", "c"]
    assert [one.session_id for one in deleted] == ["a", "c"]
    assert [(one.where, one.why) for one in left] == [("b", "Another process has this session open.")]


def test_a_model_is_told_with_its_window_and_where_that_comes_from(home) -> None:
    fact, guess, data = run_each(
        home,
        ("models", "claude-opus-4-5"),
        ("models", "nobody-knows-this"),
        ("models", "nobody-knows-this", "--json"),
    )

    assert (fact.code, guess.code, data.code) == (0, 3, 3)
    assert fact.lines[0] == "model     anthropic/claude-opus-4-5"
    assert fact.lines[1].startswith("window      200,000   fact (")
    assert guess.lines[1] == "window     128,000?   a guess: no source knows this model"
    assert (data.json["context_window"], data.json["confidence"]) == (128_000, "guess")


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A home with three sessions of different sizes, titles and models; `b` was used last."""
    home = tmp_path_factory.mktemp("home")
    with Client(env=environment(home)) as client:
        for session_id, title, model, count in (
            ("c", "Parser", "claude-opus-4-5", 1),
            ("a", "Zebra parser", "gpt-5", 5),
            ("b", "Ledger", "claude-sonnet-4-5", 3),
        ):
            client.call("session/start", {"session_id": session_id, "title": title, "model": model})
            messages = [{"role": "user", "content": f"{n}"} for n in range(count)]
            client.call("session/append", {"session_id": session_id, "messages": messages})
    return home


def ids(seen) -> list[str]:
    return [one["session_id"] for one in seen.json["sessions"]]


def test_sessions_are_sorted_by_what_is_asked_for(three) -> None:
    keys = ("updated", "messages", "size", "title", "model", "id")

    seen = run_each(three, *(("sessions", "--sort", key, "--json") for key in keys))
    turned = run(three, "sessions", "--sort", "id", "--reverse", "--json")

    assert dict(zip(keys, map(ids, seen), strict=True)) == {
        "updated": ["b", "a", "c"],
        "messages": ["a", "b", "c"],
        "size": ["a", "b", "c"],
        "title": ["b", "c", "a"],
        "model": ["c", "b", "a"],
        "id": ["a", "b", "c"],
    }
    assert ids(turned) == ["c", "b", "a"]


def test_sessions_are_filtered_by_their_words_and_by_their_model(three) -> None:
    words, model, both, none = run_each(
        three,
        ("sessions", "--filter", "PARSER", "--json"),
        ("sessions", "--model", "claude", "--json"),
        ("sessions", "--filter", "parser", "--model", "claude", "--json"),
        ("sessions", "--filter", "nowhere"),
    )

    assert (ids(words), ids(model), ids(both)) == (["a", "c"], ["b", "c"], ["c"])
    assert (none.code, none.out) == (0, "none of 3 sessions matches\n")


@pytest.mark.parametrize(
    ("answer", "options", "code", "is_there"),
    [("n\n", (), 3, True), ("\n", (), 3, True), ("\x03", (), 130, True), ("y\n", (), 0, False)],
    ids=["no", "nothing", "ctrl-c", "yes"],
)
def test_in_a_terminal_a_session_is_deleted_after_a_yes_alone(home, answer, options, code, is_there) -> None:
    stored(home, "ledger")

    seen = in_terminal(home, "sessions", "delete", "ledger", *options, typed=[("[y/N] ", answer)])

    assert seen.code == code
    assert "delete ledger (1 message) permanently? [y/N] " in seen.text
    assert bool(run(home, "sessions", "--json").json["sessions"]) is is_there


def test_with_yes_a_session_is_deleted_in_a_terminal_without_a_question(home) -> None:
    stored(home, "ledger")

    seen = in_terminal(home, "sessions", "delete", "ledger", "--yes")

    assert (seen.code, seen.lines) == (0, ["deleted ledger (1 message)"])


def test_show_prints_messages_in_full_and_no_text_can_pose_as_a_heading(home) -> None:
    long = "first\n" + "x" * 5_000 + "\ne9  user  2026-11-27 12:00\nlast"
    call = {"type": "tool_call", "call_id": "c1", "name": "read", "arguments": {"path": "a.py"}}
    messages = [
        {"role": "user", "content": "Read a.py."},
        {"role": "assistant", "content": [call]},
        {"role": "tool", "content": [{"type": "tool_result", "call_id": "c1", "content": long}]},
    ]
    with Client(env=environment(home)) as client:
        client.call("session/start", {"session_id": "s1"})
        client.call("session/append", {"session_id": "s1", "messages": messages})

    whole, one, data = run_each(
        home,
        ("sessions", "show", "s1"),
        ("sessions", "show", "s1", "e3"),
        ("sessions", "show", "s1", "--json"),
    )

    headings = [line.split()[:2] for line in whole.lines if line and not line.startswith(" ")]
    assert headings == [["e1", "user"], ["e2", "assistant"], ["e3", "tool"]]
    assert '  → read {"path":"a.py"}' in [line.replace(": ", ":") for line in whole.lines]
    assert one.lines[1:] == [f"  {line}" for line in long.split("\n")]
    assert [shown["entry_id"] for shown in data.json["messages"]] == ["e1", "e2", "e3"]
    assert data.json["messages"][2]["message"] == messages[2]


def test_show_and_delete_suggest_the_only_id_that_begins_so(home) -> None:
    stored(home, "abc-1", "abd-2")

    seen = run_each(
        home,
        ("sessions", "show", "abc"),
        ("sessions", "delete", "abc", "--yes"),
        ("sessions", "show", "ab"),
        ("sessions", "show", "abc-1", "e7"),
    )

    assert [one.code for one in seen] == [2, 2, 2, 2]
    assert "Did you mean abc-1?" in seen[0].err
    assert "Did you mean abc-1?" in seen[1].err
    assert "2 sessions have an id that begins so" in seen[2].err
    assert "has no entry 'e7'" in seen[3].err

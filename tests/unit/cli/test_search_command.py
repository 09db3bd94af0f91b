"""`compactd search` on stored sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactd.client import Client
from tests.support.command_line import TERMINAL, environment, run, run_each


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, texts in {"old": ("Mend the stale cache.", "Thanks."), "new": ("Write about caches.",)}.items():
        with Client(env=environment(tmp_path)) as client:
            client.session_start(session_id=name, title=f"About {name}")
            client.session_append(
                session_id=name, messages=[{"role": "user", "content": text} for text in texts]
            )
    return tmp_path


def test_hits_stand_under_their_session_and_json_says_the_same(home: Path) -> None:
    text, data = run_each(home, ("search", "cache"), ("search", "cache", "--json"))
    terminal = run(home, "search", "cache", env=TERMINAL)

    heads = [line for line in text.lines if not line.startswith(" ")]
    assert (text.code, sorted(heads)) == (0, ["new  About new", "old  About old"])
    assert {(hit["session_id"], hit["entry_id"]) for hit in data.json["hits"]} == {
        ("new", "e1"),
        ("old", "e1"),
    }
    assert terminal.words == text.words


def test_the_notes_say_how_to_see_more_and_long_texts_are_indented(home: Path) -> None:
    with Client(env=environment(home)) as client:
        client.session_start(session_id="long")
        words = {"role": "user", "content": "The cache " + "was read too early " * 20}
        client.session_append(session_id="long", messages=[words])

    everything, first = run_each(home, ("search", "cache"), ("search", "cache", "--limit", "1"))
    terminal = run(home, "search", "early", env=TERMINAL)

    opening = "note: `compactd sessions show ID ENTRY` prints a message in full\n"
    assert everything.err == f"note: 3 hits in 3 sessions\n{opening}"
    assert first.err == f"note: 1 hit in 1 session; --limit N shows more\n{opening}"
    assert terminal.lines[1].startswith("  e1     user ")
    assert len(terminal.lines) > 2
    assert all(line.startswith(" " * 30) and len(line) <= 80 for line in terminal.lines[2:])


def test_one_session_is_searched_for_the_text_as_it_stands(home: Path) -> None:
    seen = run(home, "search", "stale", "cache", "--session", "old")

    assert (seen.code, seen.lines[0]) == (0, "old  About old")
    assert "Mend the stale cache." in seen.words


def test_nothing_found_is_said_with_a_code_of_its_own(home: Path) -> None:
    seen = run(home, "search", "nothing-like-this")

    assert (seen.code, seen.out) == (3, "no message contains 'nothing-like-this'\n")


def test_a_session_that_is_not_there_is_told_and_not_made(home: Path) -> None:
    seen = run(home, "search", "cache", "--session", "nobody")
    listed = run(home, "sessions", "--json").json["sessions"]

    assert (seen.code, seen.out) == (1, "")
    assert "nobody" in seen.err
    assert {one["session_id"] for one in listed} == {"old", "new"}

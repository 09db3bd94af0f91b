"""`compactd trust` and `untrust`, without a terminal, and their effect on a daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactd.client import Client
from tests.support.command_line import environment, run

FILE = '[compaction]\nstrategy = "summarize"\nkeep_messages = 8\ncolour = "\\u001b[31m"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def work(home: Path) -> Path:
    folder = home / "work"
    folder.mkdir()
    (folder / ".compactd.toml").write_text(FILE)
    return folder


def strategy(home: Path, work: Path) -> str:
    """The one in force in a new session in that folder."""
    with Client(env=environment(home)) as client:
        session = client.call("session/start", {"working_dir": str(work)})["session_id"]
        settings = client.call("session/configure", {"session_id": session})["settings"]
        return str(settings["strategy"]["value"])


def test_a_folder_is_trusted_and_untrusted_and_each_says_what_it_did(home: Path, work: Path) -> None:
    before = strategy(home, work)
    tried = run(home, "trust", "work", "--dry-run")
    untouched = strategy(home, work)
    done = run(home, "trust", "work")
    in_force = strategy(home, work)
    again = run(home, "trust", work)
    back = run(home, "untrust", work)
    nothing = run(home, "untrust", work)

    assert (before, untouched, in_force, strategy(home, work)) == ("auto", "auto", "summarize", "auto")
    assert [one.code for one in (tried, done, again, back, nothing)] == [0, 0, 3, 0, 3]
    assert done.lines == [
        "keep_messages = 8",
        'strategy = "summarize"',
        "  it decides whether the conversation is sent to a model",
        ".compactd.toml: compaction.colour is not a setting; it is ignored",
        f"{work} is trusted until its .compactd.toml changes",
    ]
    assert tried.lines[:-1] == done.lines[:-1]
    assert back.lines == [f"{work} is no longer trusted"]


def test_the_same_facts_as_json(home: Path, work: Path) -> None:
    done = run(home, "trust", work, "--json").json
    listed = run(home, "trust", "--json").json
    back = run(home, "untrust", work, "--json").json

    assert (done["path"], done["trusted"], done["changed"]) == (str(work), True, True)
    assert [one["name"] for one in done["settings"]] == ["keep_messages", "strategy"]
    assert [(one["path"], one["state"]) for one in listed["folders"]] == [(str(work), "trusted")]
    assert listed["folders"][0]["sha256"] == done["sha256"]
    assert (back["trusted"], back["changed"]) == (False, True)


@pytest.mark.parametrize("command", [("doctor",), ("doctor", "--trust"), ("trust",)])
def test_the_list_tells_which_folders_are_trusted_and_which_are_not_any_more(
    home: Path, work: Path, command: tuple[str, ...]
) -> None:
    none = run(home, *command)
    run(home, "trust", work)
    whole = run(home, *command)
    (work / ".compactd.toml").write_text(FILE + "# more\n")
    changed = run(home, *command)
    (work / ".compactd.toml").unlink()
    missing = run(home, *command)
    (home / "data" / "trusted.json").write_text("{")
    broken = run(home, *command)

    assert [one.code for one in (none, whole, changed, missing, broken)] == [0, 0, 1, 1, 1]
    examines = "`compactd doctor FILE` examines a session file, `compactd doctor --hooks` the hooks"
    more = [examines] if command == ("doctor",) else []
    assert none.lines == ["no folder is trusted", *more]
    assert whole.lines == [f"{work}  trusted", *more]
    assert changed.lines == [f"{work}  changed since it was trusted: no longer trusted", *more]
    assert missing.lines == [f"{work}  its .compactd.toml is gone: no longer trusted", *more]
    assert "No folder is trusted" in broken.words


def test_what_cannot_be_trusted_is_told_in_two_lines(home: Path) -> None:
    seen = run(home, "trust", home / "nowhere")

    assert (seen.code, seen.out) == (2, "")
    assert seen.err.splitlines()[0].endswith("contains no .compactd.toml.")
    assert "Nothing was changed." in seen.err


def test_a_value_with_escapes_of_a_terminal_prints_none(home: Path, work: Path) -> None:
    text = '[compaction]\ncompact_prompt = "\\u001b]0;owned\\u0007\\u202e\\u009b31m"\n'
    (work / ".compactd.toml").write_text(text)

    seen = run(home, "trust", work)

    assert seen.code == 0
    assert all(char.isprintable() or char == "\n" for char in seen.out)

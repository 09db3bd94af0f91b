"""Commands without FILE: which session they take, what they say about it, and the list of `--pick`."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from compactd.cli.agent_files.pick import match_score, matching, row
from compactd.cli.agent_files.places import AgentFile, find_files
from compactd.cli.agent_files.titles import title_of_file
from compactd.cli.framework.quantities import age_text, size_text
from tests.support.agent_homes import HOMES, write_session
from tests.support.command_line import COMPACTD, run, run_each
from tests.support.terminals import in_terminal

COMMANDS = (
    ("inspect",),
    ("compact",),
    ("diff",),
    ("watch", "--once"),
)


@pytest.fixture
def home(tmp_path) -> Path:
    """A home in which Claude Code worked in the folder itself, and pi later in another one."""
    write_session(tmp_path, "claude-code", tmp_path, "own", "Balance the ledger.", age_s=300)
    write_session(tmp_path, "claude-code", tmp_path, "agent-7", "Look around.")
    write_session(tmp_path, "pi", Path("/elsewhere"), "other", "Write a poem.", age_s=5)
    return tmp_path


def own(home: Path) -> Path:
    (path,) = (home / ".claude" / "projects").glob("*/own.jsonl")
    return path


def test_each_command_takes_the_newest_session_of_the_folder_and_says_which(home) -> None:
    plain = run_each(home, *COMMANDS)

    shown = (
        f"session: ~/{own(home).relative_to(home)} (Claude Code, 5 min ago, {own(home).stat().st_size} B)\n"
    )
    assert [one.err for one in plain] == [shown] * 4
    assert all("Traceback" not in one.out for one in plain)


def test_json_says_all_about_the_chosen_session(home) -> None:
    *chosen, watched = run_each(home, *((*command, "--json") for command in COMMANDS))

    about = own(home).stat()
    assert [one.err for one in (*chosen, watched)] == [""] * 4
    assert watched.json["file"] == str(own(home))
    expected = {
        "path": str(own(home)),
        "agent": "claude-code",
        "modified_at": about.st_mtime,
        "size_bytes": about.st_size,
        "of_this_folder": True,
    }
    assert [one.json["chosen"] for one in chosen] == [expected] * 3


def test_a_named_file_is_not_a_choice(home) -> None:
    seen = run(home, "inspect", own(home), "--json")

    assert (seen.code, seen.err) == (0, "")
    assert "chosen" not in seen.json


def test_a_folder_without_sessions_gets_the_newest_of_the_machine(tmp_path) -> None:
    write_session(tmp_path, "codex", Path("/far"), age_s=3600)
    path = write_session(tmp_path, "pi", Path("/elsewhere"), age_s=7200 / 60)

    seen = run(tmp_path, "inspect")

    size = path.stat().st_size
    expected = f"~/{path.relative_to(tmp_path)} (pi, 2 min ago, {size} B)"
    assert (seen.code, seen.err) == (0, f"no session of this folder; the newest one: {expected}\n")
    assert run(tmp_path, "inspect", "--json").json["chosen"]["of_this_folder"] is False


def test_an_agents_name_restricts_the_choice_and_an_earlier_name_is_accepted(home) -> None:
    gemini = write_session(home, "gemini-cli", home, age_s=9000)

    pi, early, unknown = run_each(
        home,
        ("inspect", "--agent", "pi", "--json"),
        ("watch", "--once", "--agent", "gemini", "--json"),
        ("inspect", "--agent", "vim"),
    )

    assert pi.json["chosen"]["agent"] == "pi"
    assert early.json["file"] == str(gemini)
    assert unknown.code == 2
    assert "is not one of claude-code, codex, gemini-cli, pi, opencode, cline" in unknown.err
    assert re.search(r"\bgemini\b(?!-cli)", run(home, "watch", "--help").out) is None


@pytest.mark.parametrize("kind", HOMES)
def test_inspect_reads_the_session_of_each_agent(tmp_path, kind) -> None:
    write_session(tmp_path, kind, tmp_path)

    seen = run(tmp_path, "inspect", "--json")

    assert (seen.code, seen.json["session"]["messages"]) == (0, 2)
    assert seen.json["chosen"]["of_this_folder"] is True


def test_without_any_session_the_folders_that_were_looked_at_are_named(tmp_path) -> None:
    seen = run_each(tmp_path, *COMMANDS, ("inspect", "--json"), ("watch", "--once", "--agent", "pi"))

    *plain, as_json, one_agent = seen
    assert [one.code for one in seen] == [3] * len(seen)
    assert all(
        one.err.startswith("no session of a coding agent was found on this machine.\n") for one in plain
    )
    assert all("\n  Claude Code: ~/.claude/projects\n" in one.err for one in plain)
    assert "globalStorage" in plain[0].err
    assert str(tmp_path / ".codex/sessions") in as_json.json["error"]["data"]["looked_in"]
    assert one_agent.err.splitlines() == [
        "no session of pi was found on this machine.",
        "compactd looked in these folders:",
        "  pi: ~/.pi/agent/sessions",
        "Name a FILE to use another session file.",
    ]


def test_the_database_of_opencode_is_explained(tmp_path) -> None:
    database = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"")

    opencode, pi = run_each(tmp_path, ("inspect", "--agent", "opencode"), ("inspect", "--agent", "pi"))

    assert "`opencode export ID > session.json`" in opencode.err
    assert "opencode" not in pi.err


def test_options_that_contradict_each_other_are_refused(home) -> None:
    seen = run_each(
        home,
        *((name, own(home), option) for name in ("inspect", "compact", "diff") for option in ("--pick",)),
        ("watch", own(home), "--agent", "pi", "--once"),
        ("inspect", "--pick"),
        ("inspect", "--pick", "--json"),
    )

    assert [one.code for one in seen] == [2] * 6
    assert {one.err for one in seen[:3]} == {"FILE and --pick cannot be combined: --pick chooses a file.\n"}
    assert seen[4].err.startswith("--pick needs a terminal")
    assert set(seen[5].json) == {"error"}


def test_the_name_of_an_agent_in_the_place_of_a_file_is_explained(home) -> None:
    seen = run(home, "inspect", "gemini")

    assert (seen.code, seen.out) == (2, "")
    assert seen.err == (
        "cannot read gemini: there is no such file.\n"
        "The newest session of Gemini CLI: leave out FILE, and add --agent gemini-cli.\n"
    )


def test_a_deleted_folder_is_no_error(home) -> None:
    gone = home / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec {' '.join(COMPACTD)} inspect --json"

    seen = in_terminal(home, script, command=("sh", "-c"))

    assert seen.code == 0
    assert '"of_this_folder": false' in seen.text


@pytest.mark.parametrize(("is_work_tree", "found"), [(True, "true"), (False, "false")])
def test_below_the_top_of_a_work_tree_the_session_of_the_project_is_taken(home, is_work_tree, found) -> None:
    inner = home / "src" / "parser"
    inner.mkdir(parents=True)
    if is_work_tree:
        (home / ".git").mkdir()
    script = f"cd {inner} && exec {' '.join(COMPACTD)} inspect --json"

    seen = in_terminal(home, script, command=("sh", "-c"))

    assert seen.code == 0
    assert f'"of_this_folder": {found}' in seen.text


# --- the list of --pick -------------------------------------------------------------------------------


def test_the_list_is_filtered_by_typing_and_enter_takes_the_session(home) -> None:
    seen = in_terminal(home, "watch", "--pick", "--once", typed=[("Write a poem", "poem"), ("1 of 2", "\r")])

    assert seen.code == 0
    assert "/other.jsonl (pi, " in seen.text
    assert "ctx " in seen.text


@pytest.mark.parametrize("key", ["\x1b[B", "\x1b[A"])
def test_the_arrow_keys_move_in_the_list_and_around_its_ends(home, key) -> None:
    seen = in_terminal(home, "watch", "--pick", "--once", typed=[("Write a poem", key), ("poem", "\r")])

    assert seen.code == 0
    assert "/other.jsonl (pi, " in seen.text


def test_the_sessions_of_the_folder_are_listed_first(home) -> None:
    seen = in_terminal(home, "watch", "--pick", "--once", typed=[("Balance the ledger", "\r")])

    assert "1 of this folder first" in seen.text
    assert "session: ~/.claude" in seen.text


@pytest.mark.parametrize(("key", "code"), [("\x1b", 3), ("\x03", 130)])
def test_esc_and_ctrl_c_pick_nothing(home, key, code) -> None:
    seen = in_terminal(home, "watch", "--pick", "--once", typed=[("Balance the ledger", key)])

    assert seen.code == code
    assert "Traceback" not in seen.text
    assert ("no session was picked." in seen.text) is (code == 3)


def piped(home: Path, typed: list[tuple[str, str]], columns: int = 80, **env: str) -> tuple[int, str]:
    """Run `inspect --pick` in a terminal, with standard output in a file. Return exit code and that file."""
    script = f"{' '.join(COMPACTD)} inspect --pick --json > out; code=$?; cat out; exit $code"
    seen = in_terminal(home, script, command=("sh", "-c"), typed=typed, columns=columns, env=env)
    assert "Traceback" not in seen.text
    return seen.code, seen.text


def test_if_the_output_is_piped_a_number_is_read(home) -> None:
    code, text = piped(home, [("Enter: none", "2\n")])

    assert code == 0
    assert "  1  Balance the ledger." in text
    assert re.search(r"  2  Write a poem\. +pi +just now +\d+ B\n", text)
    assert "other.jsonl" in text


def test_the_numbered_list_can_be_searched_and_left(home) -> None:
    code, text = piped(
        home, [("Enter: none", "zzz\n"), ("No session matches 'zzz'.", "poem\n"), ("1  Write", "1\n")]
    )
    left, _ = piped(home, [("Enter: none", "\n")])

    assert (code, "other.jsonl" in text, left) == (0, True, 3)


def test_a_terminal_that_cannot_move_the_cursor_gets_the_numbered_list(home) -> None:
    seen = in_terminal(
        home, "watch", "--pick", "--once", env={"TERM": "dumb"}, typed=[("Enter: none", "1\n")]
    )

    assert seen.code == 0
    assert "/own.jsonl (Claude Code" in seen.text


# --- titles, rows, matches ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", HOMES)
def test_the_title_is_the_first_request(tmp_path, kind) -> None:
    write_session(tmp_path, kind, tmp_path, prompt="Balance the ledger.\nThen stop.")

    (file,) = find_files({"HOME": str(tmp_path)})

    title = title_of_file(file)
    assert title is not None
    assert title.splitlines()[0] == "Balance the ledger."


@pytest.mark.parametrize("kind", ["claude-code", "cline-extension"])
def test_only_the_head_of_a_large_file_is_read_for_its_title(tmp_path, kind) -> None:
    path = write_session(tmp_path, kind, tmp_path, prompt="Balance the ledger.")
    if kind == "claude-code":
        with path.open("ab") as stream:
            stream.truncate(20_000_000_000)
    else:
        end = '{"role": "user", "content": "' + "x" * 1_000_000 + '"}]'
        path.write_text(path.read_text().rstrip("]\n ") + ", " + end)

    (file,) = find_files({"HOME": str(tmp_path)})

    assert title_of_file(file) == "Balance the ledger."


def test_a_file_without_a_request_or_that_is_damaged_has_no_title(tmp_path) -> None:
    path = write_session(tmp_path, "claude-code", tmp_path)
    titles = []
    for content in (b"", b"\x00\x01", b"{}\n", b'{"type": "user"', path.read_bytes().splitlines()[1]):
        path.write_bytes(content)
        (file,) = find_files({"HOME": str(tmp_path)})
        titles.append(title_of_file(file))
    path.unlink()
    titles.append(title_of_file(file))
    opencode = write_session(tmp_path, "opencode", tmp_path, prompt="New session - 2026-01-02T03:04:05Z")
    titles += [title_of_file(one) for one in find_files({"HOME": str(tmp_path)}) if one.path == opencode]

    assert titles == [None] * 7


def test_a_row_has_exactly_the_width_and_no_control_characters() -> None:
    file = AgentFile(agent="codex", path=Path("/a/b.jsonl"), size_bytes=1_234_567, modified_ns=time.time_ns())
    title = "日本語の\x1b[31mタイトル\nthat is cut off at forty columns, and at eighty columns too"

    rows = {columns: row(file, title, columns) for columns in (20, 40, 80, 120)}

    from rich.cells import cell_len

    assert {columns: cell_len(text) for columns, text in rows.items()} == {n: n for n in rows}
    assert not any(char in text for text in rows.values() for char in "\x1b\n")
    assert "1.2 MB" in rows[80]
    assert "just now" in rows[20]


def test_all_words_must_match_and_better_matches_come_first() -> None:
    titles = {
        "parser": "fix the parser",
        "sparse": "sparse files",
        "letters": "plan a garden, see",
        "poem": "write a poem",
    }
    files = {
        name: AgentFile(agent="pi", path=Path(f"/{name}.x"), size_bytes=0, modified_ns=0) for name in titles
    }
    listed = [(files[name], titles[name]) for name in ("letters", "poem", "sparse", "parser")]

    def names(words: str) -> list[str]:
        return [file.path.stem for file in matching(words, listed)]

    assert names("PARSE") == ["parser", "sparse", "letters"]
    assert names("letters.x") == ["letters"]
    assert names("pi poem") == ["poem"]
    assert names("parser poem") == []
    assert names("  ") == ["letters", "poem", "sparse", "parser"]
    scores = [match_score(word, "parser", "/a/psv") for word in ("pars", "arse", "psv", "psr", "rap")]
    assert scores == [4, 3, 2, 1, None]


def test_ages_and_sizes_are_short() -> None:
    ages = [age_text(0, now) for now in (-5, 59, 60, 3599, 3600, 86_399, 86_400, 172_800, 59 * 86_400)]
    sizes = [size_text(n) for n in (0, 999, 1000, 14_400, 999_499, 999_600, 1_234_567, 12_345_678, 4 * 10**9)]

    assert ages == [
        "just now",
        "just now",
        "1 min ago",
        "59 min ago",
        "1 h ago",
        "23 h ago",
        "1 day ago",
        "2 days ago",
        "59 days ago",
    ]
    assert re.fullmatch(r"(1969-12-31|1970-01-01)", age_text(0, 60 * 86_400))
    assert sizes == ["0 B", "999 B", "1 kB", "14 kB", "999 kB", "1.0 MB", "1.2 MB", "12 MB", "4.0 GB"]

"""`compactd` without a command: what was found on this machine, and what to try."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compactd.cli.agent_files.overview import AgentSummary, Overview, look_around, overview_lines, suggest
from compactd.cli.agent_files.places import AgentFile
from compactd.cli.command_list import COMMANDS
from tests.support.agent_homes import HOMES, write_session
from tests.support.command_line import COMPACTD, environment, run, run_each
from tests.support.terminals import in_terminal

LOADED = """
import sys
from compactd.cli import run
run([])
slow = ("click", "rich", "hashlib", "asyncio", "compactd.client", "compactd.formats", "compactd.core")
print([name for name in slow if name in sys.modules])
"""


def suggested(out: str) -> list[str]:
    """The commands that the overview suggests, without their explanations."""
    lines = out.partition("\nTry:\n")[2].splitlines()
    return [line[2:].partition("   ")[0] for line in lines if line.startswith("  compactd ")]


def test_it_says_which_agents_have_how_many_sessions_and_how_old_the_newest_is(tmp_path) -> None:
    for number in range(3):
        path = write_session(tmp_path, "claude-code", tmp_path, f"s{number}", age_s=7200 + 60 * number)
    path.write_bytes(path.read_bytes() + b"\n" * 2_000_000)
    write_session(tmp_path, "claude-code", tmp_path, "agent-1")
    write_session(tmp_path, "pi", Path("/other"), age_s=3 * 86_400)
    write_session(tmp_path, "opencode", Path("/other"), age_s=65)

    seen = run(tmp_path)

    assert (seen.code, seen.err) == (0, "")
    size = (tmp_path / ".pi").rglob("*.jsonl")
    (pi,) = (file.stat().st_size for file in size)
    rows = [
        line.split()
        for line in seen.lines
        if line.startswith("  ") and "newest" in line and "compactd" not in line
    ]
    assert rows == [
        ["Claude", "Code", "3", "sessions", "2.0", "MB", "newest", "just", "now"],
        ["pi", "1", "session", str(pi), "B", "newest", "3", "days", "ago"],
        ["OpenCode", "1", "session", "newest", "1", "min", "ago"],
    ]


def test_the_newest_session_is_not_a_sub_agents(tmp_path) -> None:
    write_session(tmp_path, "claude-code", tmp_path, "main", age_s=7200)
    write_session(tmp_path, "claude-code", tmp_path, "agent-1")

    seen = run(tmp_path)

    assert "newest 2 h ago" in seen.out
    assert "The newest one of this folder is from Claude Code, 2 h ago." in seen.words


@pytest.mark.parametrize("kind", ["none", *HOMES])
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(tmp_path, kind, columns) -> None:
    if kind != "none":
        write_session(tmp_path, kind, tmp_path)

    overview = look_around({"HOME": str(tmp_path)}, tmp_path, 0)

    lines = overview_lines(overview, columns, 10**10)
    assert max(map(len, lines)) <= columns
    assert all(line.isascii() for line in lines)
    assert sum(bool(line.strip()) for line in lines) <= 24


def test_in_a_narrow_terminal_the_longest_age_is_wrapped_between_words() -> None:
    day_s = 86_400.0
    agent = AgentSummary(
        agent="pi", name="pi", sessions=12, size_bytes=1_200_000, newest_at=365 * day_s - 12 * day_s
    )
    overview = Overview(
        agents=(agent,), newest_here=None, has_database=False, suggestions=suggest((), None, 0)
    )

    lines = overview_lines(overview, 40, 365 * day_s)

    assert lines[7:9] == ["    12 sessions, 1.2 MB, newest 12 days", "    ago"]


def test_a_terminal_gets_its_own_width(tmp_path) -> None:
    write_session(tmp_path, "codex", tmp_path)

    narrow = in_terminal(tmp_path, columns=40)
    wide = in_terminal(tmp_path, columns=100)

    assert (narrow.code, wide.code) == (0, 0)
    assert max(map(len, narrow.lines)) <= 40 < max(map(len, wide.lines)) <= 100
    assert "\x1b" not in narrow.text


def test_the_same_as_json(tmp_path) -> None:
    path = write_session(tmp_path, "codex", tmp_path)

    seen = run(tmp_path, "--json")

    at = path.stat().st_mtime
    found = seen.json
    assert (seen.code, seen.err) == (0, "")
    assert found["agents"] == [
        {
            "agent": "codex",
            "name": "Codex CLI",
            "sessions": 1,
            "size_bytes": path.stat().st_size,
            "newest_at": at,
        }
    ]
    assert found["newest_here"] == {"path": str(path), "agent": "codex", "modified_at": at}
    assert found["looked_in"]["codex"] == [str(tmp_path / ".codex" / "sessions")]
    assert [one["command"] for one in found["try"]] == suggested(run(tmp_path).out)


def test_with_nothing_found_the_first_steps_work_without_an_agent(tmp_path) -> None:
    plain, as_json = run_each(tmp_path, (), ("--json",))

    assert plain.code == 0
    assert (
        "No sessions of Claude Code, Codex CLI, Gemini CLI, pi, OpenCode or Cline were found" in plain.words
    )
    assert suggested(plain.out) == ["compactd chat --echo", "compactd inspect FILE", "compactd classify FILE"]
    assert (as_json.json["agents"], as_json.json["newest_here"]) == ([], None)


def test_what_is_suggested_fits_what_was_found() -> None:
    now = 10_000.0
    file = AgentFile(agent="pi", path=Path("/a"), size_bytes=1, modified_ns=int(now - 3600) * 10**9)
    live = AgentFile(agent="pi", path=Path("/b"), size_bytes=1, modified_ns=int(now - 10) * 10**9)

    def first(mains: list[AgentFile], here: AgentFile | None) -> list[str]:
        return [one.command for one in suggest(mains, here, now)]

    assert first([file], file)[0] == "compactd inspect"
    assert first([live, file], live)[:2] == ["compactd inspect", "compactd watch"]
    assert first([live, file], None)[0] == "compactd inspect --pick"
    assert first([file], None)[0] == "compactd inspect"
    for found in ([], [file], [live, file]):
        for here in (None, *found):
            commands = first(found, here)
            assert len(commands) == 3
            assert all(line.split()[1] in COMMANDS for line in commands)


def test_after_an_import_a_search_is_suggested_instead(tmp_path) -> None:
    write_session(tmp_path, "claude-code", tmp_path, age_s=3600)

    before = suggested(run(tmp_path).out)
    run(tmp_path, "import", "--all")
    after = suggested(run(tmp_path).out)

    assert before == ["compactd inspect", "compactd usage", "compactd import --all"]
    assert after == ["compactd inspect", "compactd usage", "compactd search WORDS"]


def test_the_suggested_commands_work(tmp_path) -> None:
    write_session(tmp_path, "claude-code", tmp_path, age_s=3600)

    lines = suggested(run(tmp_path).out)
    seen = run_each(tmp_path, *(line.split()[1:] for line in lines))

    # `compact` and `diff` have nothing to do in a short session.
    assert all(one.code in (0, 3) and "Traceback" not in one.err for one in seen)
    assert seen[0].code == 0


def test_opencodes_database_is_named(tmp_path) -> None:
    database = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"")

    plain, as_json = run_each(tmp_path, (), ("--json",))

    assert "OpenCode keeps sessions in a database" in plain.words
    assert as_json.json["opencode_database"] is True


def test_it_is_printed_without_loading_what_is_slow(tmp_path) -> None:
    write_session(tmp_path, "claude-code", tmp_path)
    write_session(tmp_path, "codex", tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        cwd=tmp_path,
    )

    assert (done.stderr, done.stdout.splitlines()[-1]) == ("", "[]")


def test_output_that_cannot_be_written_is_no_traceback(tmp_path) -> None:
    closed = f"{' '.join(COMPACTD)} | true"
    full = f"{' '.join(COMPACTD)} > /dev/full"

    done = [
        subprocess.run(
            ["sh", "-c", line], capture_output=True, text=True, env=environment(tmp_path), cwd=tmp_path
        )
        for line in (closed, full)
    ]

    assert done[0].stderr == ""
    assert done[1].returncode == 1
    assert done[1].stderr == "the output of the command could not be written: No space left on device\n"


def test_hostile_names_and_a_deleted_folder_do_no_harm(tmp_path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    project = tmp_path / ".claude" / "projects" / os.fsdecode(b"-\xff\x1b[31m")
    project.mkdir(parents=True)
    (project / os.fsdecode(b"\xff\n.jsonl")).write_text("{}\n")
    script = f"cd {folder} && rmdir {folder} && exec {' '.join(COMPACTD)}"

    plain = subprocess.run(["sh", "-c", script], capture_output=True, env=environment(tmp_path), cwd=tmp_path)
    as_json = run(tmp_path, "--json")

    assert (plain.returncode, plain.stderr) == (0, b"")
    assert b"1 session" in plain.stdout
    assert b"\x1b" not in plain.stdout
    assert json.loads(as_json.out)["agents"][0]["sessions"] == 1

"""Every command with every kind of bad luck: one table, and the same questions to each of its rows.

A new command needs a row. `--json` gives one JSON value, errors have the exit codes that
`cli/framework/exit_codes.py` lists, nothing is a traceback, and no file of the user changes.
"""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.cells import cell_len

from compactd.cli.command_list import COMMANDS
from compactd.cli.framework.command import JSON, Command, CommandGroup
from compactd.cli.framework.options import FORCE
from compactd.cli.framework.registry import GROUP
from tests.support import session_files
from tests.support.client import Daemon
from tests.support.command_line import ANSI, COMPACTD, TERMINAL, Ended, environment
from tests.unit.cli import test_overwriting

DONE, FAILED, USAGE, NOTHING, INTERRUPTED = 0, 1, 2, 3, 130
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
DEADLINE_S = 60


class Row(NamedTuple):
    """How a command is called, and which questions it is not asked, and why."""

    good: str
    """The arguments of a call that works."""
    code: int = DONE
    bare: tuple[int, ...] = (DONE,)
    """The exit codes that a call without arguments and with an empty standard input may have."""
    piped: str = "session.json"
    """The file that it gets through a pipe."""
    stdin: str = ""
    """What a good call gets on standard input."""
    file: str = ""
    """The arguments of a call that reads the file `{}`. Empty: the command reads no file."""
    bad: Mapping[str, int] = {}
    """Kinds of bad files that have another exit code than `BAD_FILES` says."""
    out: str = ""
    """The file that the good call writes."""
    is_lines: bool = False
    """With `--json`, it prints one JSON object per line, because it goes on while its user does."""
    wrong: int = USAGE
    """The exit code if an option does not exist."""
    told_in: str = "error"
    """The field of the JSON output that says what is wrong with a file."""
    no_pipe: str = ""
    """Why it does not read `-`, standard input."""
    wide: str = ""
    """Why its lines may be wider than the terminal."""
    waits: bool = False
    """It waits for standard input, so that Ctrl-C can come meanwhile."""
    has_daemon: bool = False
    """It starts a daemon, so that Ctrl-C can come while that one works."""


BY_AGENT = Row(
    "claude-code", stdin="{}", wrong=DONE, waits=True
)  # an agent would show any other exit code to its user
TABLE: Mapping[str, Row] = {
    "compact": Row("session.json --target 1500", bare=(USAGE, NOTHING), file="{}", has_daemon=True),
    "resume": Row(
        "claude-code claude.jsonl --dry-run",
        NOTHING,
        bare=(USAGE,),
        piped="claude.jsonl",
        file="claude-code {} --dry-run",
        wide="it prints shell commands, which are never wrapped",
        has_daemon=True,
    ),
    "handoff": Row(
        "session.json --to codex --dry-run",
        bare=(USAGE,),
        file="{} --to codex --dry-run",
        has_daemon=True,
    ),
    "inspect": Row("session.json", bare=(USAGE, NOTHING), file="{}", has_daemon=True),
    "usage": Row("claude.jsonl", bare=(NOTHING,), file="{}", piped="claude.jsonl"),
    "audit": Row("claude.jsonl", bare=(NOTHING,), file="{}", piped="claude.jsonl"),
    "watch": Row(
        "session.json --once",
        bare=(),
        file="{} --once",
        no_pipe="it looks at a file again and again",
        has_daemon=True,
    ),
    "diff": Row("session.json --target 1500", bare=(USAGE, NOTHING), file="{}", has_daemon=True),
    "convert": Row(
        "session.json out --to compactd",
        bare=(USAGE,),
        file="{} out --to openai",
        out="out",
        has_daemon=True,
    ),
    "doctor": Row("session.json", file="{}"),
    "chat": Row("--echo --plain", bare=(USAGE,), stdin="hello\n/state\n", is_lines=True, has_daemon=True),
    "import": Row(
        "session.json",
        bare=(USAGE,),
        file="{}",
        told_in="skipped",
        no_pipe="it remembers the path of what it imported",
        has_daemon=True,
    ),
    "search": Row("ledger", NOTHING, bare=(USAGE,), has_daemon=True),
    "sessions": Row("", has_daemon=True),
    "models": Row("claude-opus-4-5", has_daemon=True),
    # Any bytes may be a provider's error, so binary ones are read, and nothing is recognised.
    # An empty text has no tokens, and that is an answer.
    "count": Row("session.json", bare=(DONE,), file="{}", bad={"empty": DONE}),
    "classify": Row(
        "error.json --status 400",
        bare=(FAILED,),
        file="{}",
        bad={"binary": NOTHING},
        has_daemon=True,
    ),
    "reduce": Row("--tool bash", stdin="up to date\n", waits=True, wide="it prints the command's own lines"),
    "schema": Row("json", wide="it prints JSON for a program"),
    "completion": Row("bash", bare=(USAGE,), wide="it prints a script"),
    "conformance": Row("--list", bare=(), wide="it prints a list for a document"),
    "install": Row("claude-code --dry-run", bare=(USAGE,)),
    "uninstall": Row("claude-code", NOTHING, bare=(USAGE,)),
    "trust": Row("folder --dry-run"),
    "untrust": Row("folder", NOTHING, bare=(USAGE,)),
    "hook": BY_AGENT,
    "statusline": BY_AGENT,
    "acp": Row("--model ollama/llama3.1", bare=(USAGE,), has_daemon=True),
    "mcp": Row("", waits=True),
    "store": Row(""),
    "serve": Row("", waits=True),
    "attach": Row(""),
}
BEFORE_CLICK = ("hook", "statusline", "serve", "attach")
"""These read their options themselves, to start fast, and have no `--json`."""
BAD_FILES = {"missing": USAGE, "directory": USAGE, "binary": FAILED, "empty": FAILED}


def json_commands() -> list[str]:
    return [name for name in COMMANDS if has_json(name)]


def command_of(name: str) -> Command | CommandGroup:
    command = GROUP.get_command(GROUP.make_context("compactd", ["x"], resilient_parsing=True), name)
    assert isinstance(command, Command | CommandGroup)
    return command


def has_json(name: str) -> bool:
    return any(param is JSON for param in command_of(name).params)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home folder with files of every kind. It is also the current folder of each command."""
    session_files.openai(tmp_path / "session.json", 8)
    usage = session_files.reported(9_000)
    session_files.claude_code(
        tmp_path / "claude.jsonl",
        [session_files.asked("Go."), session_files.answered(1, session_files.text("Done."), usage=usage)],
    )
    (tmp_path / "error.json").write_text('{"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}')
    (tmp_path / "directory").mkdir()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".compactd.toml").write_text("keep_recent_tokens = 9000\n")
    return tmp_path


def contents(home: Path) -> dict[str, bytes]:
    """Return what is in the files that the user has in `home`."""
    names = ("session.json", "claude.jsonl", "error.json", "binary", "empty", "folder/.compactd.toml")
    return {name: (home / name).read_bytes() for name in names}


def start(home: Path, name: str, arguments: str, env: Mapping[str, str] = {}) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMPACTD, name, *arguments.split()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, {"PAGER": "", **env}),
        cwd=home,
        start_new_session=True,
    )


def run(home: Path, name: str, arguments: str, stdin: str = "", env: Mapping[str, str] = {}) -> Ended:
    """Run `compactd NAME ARGUMENTS`. Whatever happens, it is no traceback, and the user's files stay."""
    before = contents(home)
    process = start(home, name, arguments, env)
    out, err = process.communicate(stdin.encode(), timeout=DEADLINE_S)
    seen = Ended(process.returncode, out.decode(), err.decode())
    assert "Traceback" not in seen.err + seen.out, seen.err
    assert contents(home) == before
    return seen


def test_every_command_has_a_row() -> None:
    assert list(TABLE) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_lines_fit_into_40_columns_and_have_no_colour_if_none_is_wanted(home: Path, name: str) -> None:
    check_lines(home, name, 40)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_lines_fit_into_a_wider_terminal(home: Path, name: str, columns: int) -> None:
    check_lines(home, name, columns)


def check_lines(home: Path, name: str, columns: int) -> None:
    row = TABLE[name]
    env = {**TERMINAL, "COLUMNS": str(columns), "NO_COLOR": "1"}

    seen = run(home, name, row.good, row.stdin, env)

    assert seen.code == row.code, seen
    assert not COLOUR.search(seen.out + seen.err)
    widths = {line: cell_len(line) for line in ANSI.sub("", seen.out).splitlines()}
    assert row.wide or [line for line in widths if widths[line] > columns] == []


@pytest.mark.parametrize("name", json_commands())
def test_json_is_one_object(home: Path, name: str) -> None:
    row = TABLE[name]

    seen = run(home, name, f"{row.good} --json", row.stdin)

    assert seen.code == row.code, seen
    lines = seen.lines if row.is_lines else [seen.out]
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_option_ends_with_2(home: Path, name: str) -> None:
    seen = run(home, name, "--nonsense --json")

    assert seen.code == TABLE[name].wrong, seen
    if name in BEFORE_CLICK:
        assert (seen.out.strip(), len(seen.err.splitlines())) == ("", 1)
    else:
        assert (seen.err, list(json.loads(seen.out))) == ("", ["error"])


@pytest.mark.parametrize("name", [name for name in COMMANDS if TABLE[name].good and TABLE[name].bare])
def test_a_call_without_arguments_works_or_says_what_is_missing(home: Path, name: str) -> None:
    seen = run(home, name, "")

    assert seen.code in TABLE[name].bare, seen
    assert seen.code != USAGE or (seen.out == "" and 1 <= len(seen.err.splitlines()) <= 2)


@pytest.mark.parametrize("kind", BAD_FILES)
@pytest.mark.parametrize("name", [name for name in COMMANDS if TABLE[name].file])
def test_a_bad_file_has_the_same_exit_code_in_every_command(home: Path, name: str, kind: str) -> None:
    row = TABLE[name]

    seen = run(home, name, f"{row.file.format(kind)} --json")

    assert seen.code == row.bad.get(kind, BAD_FILES[kind]), seen
    if seen.code in (FAILED, USAGE):
        told = json.loads(seen.out)
        error = told.get("error") or told[row.told_in]
        assert kind in str(error)
        # Which formats there are is no help with a file that cannot be opened.
        assert seen.code == FAILED or "Claude Code" not in error["hint"]
    assert not (home / "out").exists()


@pytest.mark.parametrize("name", [name for name in COMMANDS if TABLE[name].file and not TABLE[name].no_pipe])
def test_a_file_can_come_through_a_pipe(home: Path, name: str) -> None:
    row = TABLE[name]

    seen = run(home, name, f"{row.file.format('-')} --json", (home / row.piped).read_text())

    assert seen.code in (DONE, NOTHING), seen
    assert isinstance(json.loads(seen.out), dict)


def has_force(name: str) -> bool:
    return any(param is FORCE for param in command_of(name).params)


def test_every_command_that_writes_a_file_is_among_those_that_do_not_overwrite() -> None:
    assert {name for name in COMMANDS if has_force(name)} == {
        call.split()[0] for call in test_overwriting.COMMANDS
    }


# --- Ctrl-C -------------------------------------------------------------------------------------------

WAITING, WORKING = "while it waits for input", "while its daemon works"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows how far a process is")
@pytest.mark.parametrize(
    ("name", "moment"),
    [
        *((name, WAITING) for name in COMMANDS if TABLE[name].waits),
        *((name, WORKING) for name in COMMANDS if TABLE[name].has_daemon),
    ],
)
def test_ctrl_c_ends_a_command_without_a_traceback_or_half_a_file(home: Path, name: str, moment: str) -> None:
    row, before = TABLE[name], contents(home)
    process = start(home, name, row.good)
    try:
        wait_for(process, moment)
        # As a terminal does: to all processes of the group.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(row.stdin.encode(), timeout=DEADLINE_S)
    finally:
        process.kill()
        process.wait()

    assert process.returncode in (INTERRUPTED, row.code), (out, err)
    assert b"Traceback" not in out + err
    # asyncio reports a child that Ctrl-C ended while the command was still starting it.
    err = re.sub(rb"Unknown child process pid \d+, will report returncode \d+\n", b"", err)
    assert process.returncode == row.code or err in (b"", b"\n")
    assert contents(home) == before
    assert not row.out or not (home / row.out).exists() or json_lines(home / row.out)


def json_lines(path: Path) -> bool:
    return all(json.loads(line) for line in path.read_text().splitlines())


def wait_for(process: subprocess.Popen[bytes], moment: str) -> None:
    """Return when `process` is so far, or has ended."""
    until = time.monotonic() + DEADLINE_S
    while process.poll() is None and not is_so_far(process.pid, moment):
        assert time.monotonic() < until
        select.select([], [], [], 0.002)


def is_so_far(pid: int, moment: str) -> bool:
    try:
        if moment == WAITING:
            # Modules are not loaded from standard input, and Ctrl-C within the import of msgspec 0.22 can end
            # Python with SIGSEGV (seen 2026-11).
            return all(is_asleep(pid) for _ in range(3))
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())
    except OSError:  # it has just ended
        return True


def is_asleep(pid: int) -> bool:
    """Return whether the process has loaded its modules and waits for something."""
    select.select([], [], [], 0.01)
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S" and "msgspec" in Path(f"/proc/{pid}/maps").read_text()


# --- the examples of the help -------------------------------------------------------------------------

NOT_RUN = {
    "my-daemon": "a program that does not exist",
    "claude mcp": "another program",
    "codex mcp": "another program",
    "opencode acp": "another program",
    "curl ": "needs a provider",
    "--pick": "needs a terminal",
    "compactd watch": "goes on until Ctrl-C",
    **dict.fromkeys(
        ("store migrate", "store check", "store move"), "needs a database: test_store_examples.py runs it"
    ),
}
"""Words of examples that are not run, and why. `compactd watch --once` ends, and is run."""


def examples() -> Iterator[tuple[str, str]]:
    """Yield (command, command line) of each example."""
    for name in COMMANDS:
        command = command_of(name)
        subcommands = command.commands.values() if isinstance(command, CommandGroup) else ()
        for one in (command, *subcommands):
            assert isinstance(one, Command | CommandGroup)
            yield from ((name, line) for line, _ in one.examples)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_a_valid_command_line(name: str) -> None:
    lines = [line for example, line in examples() if example == name]

    assert lines
    for line in lines:
        found = re.search(r"(?:^|\| |-- |\()compactd ([^|<>)]+)", line)
        assert found, line
        first, *arguments = shlex.split(found[1])
        assert first == name
        command = command_of(name)
        if isinstance(command, CommandGroup) and arguments and arguments[0] in command.commands:
            command.commands[arguments[0]].make_context(arguments[0], arguments[1:])
        else:
            command.make_context(name, arguments)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq reads the output in some examples")
@pytest.mark.parametrize(
    "line",
    [line for _, line in examples() if "--once" in line or not any(words in line for words in NOT_RUN)],
)
def test_every_example_runs(home: Path, line: str) -> None:
    prepare_examples(home)
    around = environment(home, {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "SHELL": "/bin/bash"})
    if "--expand" in line:
        line = line.replace(EXAMPLE_REFERENCE, stored_output(home, around))

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        input=b"",
        capture_output=True,
        env=around,
        cwd=home,
        timeout=DEADLINE_S,
    )

    assert done.returncode in (DONE, FAILED, NOTHING), done
    assert b"Traceback" not in done.stderr


EXAMPLE_REFERENCE = "k3f7q2-e41"


def stored_output(home: Path, around: Mapping[str, str]) -> str:
    """Reduce an output in the folder `home`. Return the name of its original, as the mark says it."""
    text = "".join(f"tests/test_{number}.py::test_it PASSED\n" for number in range(400))
    reduced = subprocess.run(
        [*COMPACTD, "reduce", "--tool", "bash", "--command", "pytest -v"],
        input=text,
        capture_output=True,
        text=True,
        env=around,
        cwd=home,
        timeout=DEADLINE_S,
        check=True,
    )
    found = re.search(r"--expand (\w+-e\d+)", reduced.stdout)
    assert found, reduced.stdout
    return found[1]


def prepare_examples(home: Path) -> None:
    """Create what the examples name: files, stored sessions, and the program `compactd`."""
    program = home / "bin" / "compactd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(COMPACTD)} "$@"\n')
    program.chmod(0o755)
    (home / "docs").mkdir()
    for page in ("README.md", "docs/index.md"):
        (home / page).write_text("# The ledger\n")
    subprocess.run(["git", "init", "-q", home], check=True, timeout=DEADLINE_S)
    project = home / ".claude" / "projects" / "-home-someone"
    project.mkdir(parents=True)
    audited = project / "d703a1a9-0000-4000-8000-000000000000.jsonl"
    for path in (home / "session.jsonl", home / "chat.md", project / "SESSION.jsonl", audited):
        session_files.pi(path, 8)
    for name, text in {"event.json": "{}", "status.json": "{}", "secret.txt": "x" * 20}.items():
        (home / name).write_text(text)
    (home / ".compactd.toml").write_text("keep_recent_tokens = 9000\n")
    (home / "Makefile").write_text("test:\n\t@echo passed\n")
    with Daemon(home / "data") as daemon:
        for session_id in ("ID", "5c5cb639"):
            daemon.call("session/start", session_id=session_id)
            messages = [{"role": "user", "content": "Add the ledger."}]
            daemon.call("session/append", session_id=session_id, messages=messages)

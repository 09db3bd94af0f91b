"""What all commands have in common: how they start, how they fail, what they print where."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import session_files
from tests.support.command_line import COMPACTD, environment, recorded, run, run_each
from tests.support.terminals import in_terminal

LOADED_EARLY = """
import sys
from compactd.cli import run
run(["--version"])
print([name for name in ("argparse", "click", "msgspec", "rich", "compactd.client") if name in sys.modules])
"""


def test_the_version_is_told_without_loading_anything(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED_EARLY], capture_output=True, text=True, env=environment(tmp_path)
    )

    assert (done.stderr, done.stdout.splitlines()[1:]) == ("", ["[]"])
    assert done.stdout.startswith("compactd ")


def test_the_version_as_json_names_the_protocol_too(tmp_path) -> None:
    assert set(run(tmp_path, "--version", "--json").json) == {"version", "protocol_version"}


def test_a_wrong_command_line_ends_with_2_and_says_what_to_do_in_two_lines(tmp_path) -> None:
    file = session_files.openai(tmp_path / "s.json", 1)
    commands = [
        ("comapct", file),
        ("convert",),
        ("compact", file, "--target", "0"),
        ("compact", file, "--target", "16x"),
        ("compact", file, "--target", "1k", "--keep-recent", "1k"),
        ("compact", file, "--strategy", "magic"),
        ("models", "--explain"),
        ("classify", "--status", "4xx"),
        ("sessions", "delete"),
        ("serve", "--nothing"),
    ]

    seen = run_each(tmp_path, *commands)

    assert [(one.code, one.out) for one in seen] == [(2, "")] * len(commands)
    assert all(0 < len(one.err.splitlines()) <= 2 for one in seen)
    assert "Did you mean compact?" in seen[0].err
    assert "16k" in seen[3].err


def test_help_is_printed_on_demand(tmp_path) -> None:
    asked, compact, serve = run_each(tmp_path, ("--help",), ("compact", "--help"), ("serve", "--help"))

    assert (asked.code, asked.err) == (0, "")
    assert (compact.code, serve.code) == (0, 0)
    assert "--target N" in compact.out
    assert "JSON-RPC" in serve.out
    assert max(len(line) for one in (asked, compact, serve) for line in one.lines) <= 80


@pytest.mark.parametrize("command", [("inspect", "-"), ("classify", "-")])
def test_a_command_that_reads_from_the_terminal_says_so(tmp_path, command) -> None:
    text = '[{"role": "user", "content": "Hello."}]\n\x04'

    seen = in_terminal(tmp_path, *command, typed=[("press Ctrl-D", text)])

    assert "Type or paste the text, then press Ctrl-D on a line of its own." in seen.lines[0]
    assert seen.code in (0, 3)


def test_a_terminal_breaks_errors_between_words_and_never_within_a_path(tmp_path) -> None:
    path = "/nowhere/" + "a-folder-with-a-long-name/" * 4 + "session.jsonl"

    unknown = in_terminal(tmp_path, "frobnicate")
    missing = in_terminal(tmp_path, "inspect", path)

    assert (unknown.code, missing.code) == (2, 2)
    assert len(unknown.lines) > 2
    assert max(map(len, unknown.lines)) <= 80
    assert " ".join(unknown.lines).startswith(
        "compactd has no command 'frobnicate'. The commands are: compact,"
    )
    assert any(f"{path}:" in line for line in missing.lines)


def test_what_is_no_session_file_is_refused_with_the_formats_that_are_known(tmp_path) -> None:
    folder, empty, binary, notes, none, huge, loop = (
        tmp_path / n for n in ("folder", "empty", "binary", "notes", "none", "huge", "loop")
    )
    folder.mkdir()
    empty.write_text("\n")
    binary.write_bytes(bytes(range(256)) * 10)
    notes.write_text("# Notes\nnothing here\n")
    none.write_text("[]")
    with huge.open("wb") as file:
        file.truncate(2 * 1024**3)
    loop.symlink_to(loop)

    missing, *others = run_each(
        tmp_path,
        ("inspect", tmp_path / "missing"),
        ("inspect", folder),
        ("compact", empty),
        ("inspect", binary),
        ("compact", notes),
        ("inspect", none),
        ("inspect", loop),
        ("doctor", huge),
    )

    assert [missing.code, *(one.code for one in others)] == [2, 2, 1, 1, 1, 1, 2, 1]
    what = [one.err.splitlines()[0].removeprefix("cannot read ") for one in (missing, *others)]
    assert [line.removeprefix(f"{tmp_path}/") for line in what] == [
        "missing: there is no such file.",
        "folder: it is a folder.",
        "empty is empty.",
        "binary: it looks binary.",
        "notes: its format is not known.",
        "none contains no messages.",
        "loop: Too many levels of symbolic links.",
        "huge has 2,147,483,648 bytes; at most 268,435,456 are read.",
    ]
    assert all("Claude Code, pi, Codex CLI" in one.err for one in others[1:5])
    assert all("Traceback" not in one.err and one.out == "" for one in (missing, *others))


def test_a_failure_is_one_json_object_where_json_was_asked_for(tmp_path) -> None:
    seen = run(tmp_path, "inspect", tmp_path / "missing", "--json")

    assert (seen.code, seen.err, set(seen.json)) == (2, "", {"error"})
    assert seen.json["error"]["message"].endswith("there is no such file.")


def test_a_reader_that_has_seen_enough_is_no_error_message(tmp_path) -> None:
    file = session_files.openai(tmp_path / "s.json", 2)
    command = f"{sys.executable} -m compactd inspect {file} | true"

    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, env=environment(tmp_path), cwd=tmp_path
    )

    assert (done.stdout, done.stderr) == ("", "")


def test_ctrl_c_ends_a_command_at_once_and_its_daemon_with_it(tmp_path) -> None:
    command = subprocess.Popen(
        [*COMPACTD, "inspect", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
        # A job that a script put into the background has Ctrl-C ignored, and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # Once more than a pipe holds is taken, the command is at work.
    command.stdin.write(b"x" * 1_000_000)
    command.send_signal(signal.SIGINT)
    # Its own and its daemon's end of the pipes are closed when this returns.
    out, err = command.communicate(timeout=30)

    assert (command.returncode, out, err) == (130, b"", b"\n")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whose child a daemon is")
def test_a_daemon_that_is_killed_under_a_command_is_told_in_two_lines(tmp_path) -> None:
    fifo = tmp_path / "slow.jsonl"
    os.mkfifo(fifo)
    command = subprocess.Popen(
        [*COMPACTD, "compact", fifo],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        text=True,
    )
    # Opened once the command reads it: its daemon was started before.
    with fifo.open("wb") as file:
        [daemon] = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        os.kill(int(daemon), signal.SIGKILL)
        file.write(session_files.openai(tmp_path / "s.json", 2).read_bytes())
    out, err = command.communicate(timeout=30)

    assert (command.returncode, out) == (1, "")
    what, log = err.splitlines()
    # Its output ends a moment before its exit code is there.
    assert what in (
        "session/start: the daemon ended with code -9.",
        "session/start: the daemon closed its output.",
    )
    assert log == "The daemon's log is empty."


@pytest.mark.parametrize(
    ("name", "session", "messages"),
    [
        ("pi-large-session.jsonl", "d703a1a9 · pi", 900),
        ("entire-8cfa910f-0.jsonl", "86cc3044 · Claude Code", 122),
    ],
)
def test_real_sessions_are_inspected_and_compacted(tmp_path, name, session, messages) -> None:
    file = recorded(name)

    inspected, compacted = run_each(
        tmp_path, ("inspect", file), ("compact", file, "--target", "6k", "--output", tmp_path / "out.jsonl")
    )

    assert (inspected.code, compacted.code) == (0, 0)
    assert f"session   {session} · {messages} messages" in inspected.out
    assert f"session   {session} · {messages} messages" in compacted.out
    assert compacted.out.startswith("✓ Compacted ")
    tokens = re.search(r"Tokens: [\d,]+ → ([\d,]+) ", compacted.out)
    assert tokens is not None
    # What is not in the file (system prompt and tools) stays, whatever the target.
    besides = re.search(r"besides\s+([\d,]+) of the tokens", compacted.out)
    not_in_file = int(besides[1].replace(",", "")) if besides else 0
    assert int(tokens[1].replace(",", "")) - not_in_file <= 6_000


def test_ctrl_c_in_a_terminal_leaves_it_with_its_cursor(tmp_path) -> None:
    fifo = tmp_path / "slow.jsonl"
    os.mkfifo(fifo)

    # Once the spinner has hidden the cursor, and again where the first one came right before the main thread
    # began to wait in the system, where Python cannot see it.
    seen = in_terminal(tmp_path, "inspect", fifo, typed=[("\x1b[?25l", "\x03"), ("⠏", "\x03")])

    assert seen.code == 130
    assert seen.text.rfind("\x1b[?25h") > seen.text.rfind("\x1b[?25l") >= 0
    assert "Traceback" not in seen.text


@pytest.mark.parametrize(("columns", "env"), [(20, {}), (300, {"TERM": "dumb"})])
def test_every_terminal_shows_the_same_words(tmp_path, columns, env) -> None:
    file = session_files.openai(tmp_path / "s.json", 2)

    piped = run(tmp_path, "doctor", file)
    seen = in_terminal(tmp_path, "doctor", file, env=env, columns=columns)

    assert seen.code == piped.code
    assert "".join(" ".join(seen.lines).split()) == "".join(piped.out.split())


def test_what_the_parser_refuses_is_one_json_object_where_json_was_asked_for(tmp_path) -> None:
    seen = run(tmp_path, "--json", "inspect", "--wat", "s.jsonl")

    assert (seen.code, seen.err) == (2, "")
    assert seen.json["error"]["message"].startswith("compactd inspect: no such option '--wat'")

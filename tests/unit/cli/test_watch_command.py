"""`compactd watch`: the gauge of a session file that another process is writing."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from contextlib import contextmanager

import pytest

from compactd.client import Client
from tests.support import agent_homes
from tests.support.command_line import ANSI, COMPACTD, TERMINAL, environment, run, run_each
from tests.support.session_files import (
    answered,
    asked,
    claude_code,
    filler,
    openai,
    pi,
    reported,
    text,
    write_lines,
)

WRITER = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    for line in sys.stdin.buffer:
        file.write(line[:-1].replace(b"\\x1e", b"\\n"))
        print("written", flush=True)
"""
"""Appends what it is told, a piece a line; U+001E stands for the line ends in it."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def claude_lines(path, tokens):
    """The lines of a session of Claude Code whose answers report so many tokens each."""
    records = [
        record
        for number, size in enumerate(tokens, start=1)
        for record in (asked(f"Step {number}."), answered(number, text("Done."), usage=reported(size)))
    ]
    file = claude_code(path, records)
    lines = file.read_bytes().splitlines(keepends=True)
    file.unlink()
    return lines


@contextmanager
def watching(home, *arguments):
    """The command as it runs; ended as by Ctrl-C."""
    process = subprocess.Popen(
        [*COMPACTD, "watch", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(home),
        cwd=home,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        process.stdout.close()


@contextmanager
def writing(path):
    """Another process that appends to the file what `write` gives it."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def write(data: bytes) -> None:
        process.stdin.write(data.decode().replace("\n", "\x1e") + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "written\n"

    try:
        yield write
    finally:
        process.stdin.close()
        assert process.wait(60) == 0
        process.stdout.close()


def test_a_file_that_another_process_writes_is_followed_from_before_it_is_there(home) -> None:
    file = home / "live.jsonl"
    lines = claude_lines(file, (40_000, 60_000, 80_000, 170_000))
    with watching(home, file) as watch:
        assert watch.stdout.readline() == f"waiting: {file}: there is no such file\n"
        with writing(file) as write:
            write(b"".join(lines[:3]))
            first = watch.stdout.readline()
            write(b"".join(lines[3:7]))
            grown = watch.stdout.readline()
            # A line that is cut says nothing until its end is there.
            write(b"".join(lines[7:8]) + lines[8][:40])
            write(lines[8][40:])
            due = watch.stdout.readline()

    assert first == "ctx 20 % · 40k/200k\n"
    assert grown == "ctx 40 % · 80k/200k · compacts in ~4 turns\n"
    assert due == "ctx 85 % · 170k/200k · compacts before the next request\n"


def test_a_file_that_is_cut_replaced_written_anew_or_removed_is_read_from_its_beginning(home) -> None:
    file = home / "anew.jsonl"
    lines = claude_lines(file, (40_000, 60_000))
    other = claude_lines(home / "other.jsonl", (20_000, 30_000, 10_000))
    file.write_bytes(b"".join(lines))
    seen = []
    with watching(home, file, "--json") as watch:

        def next_seen():
            told = json.loads(watch.stdout.readline())
            seen.append(told.get("used") or told["waiting"].rpartition(": ")[2])

        next_seen()
        os.truncate(file, 0)
        next_seen()
        file.write_bytes(b"".join(lines[:3]))
        next_seen()
        beside = home / "beside.jsonl"
        beside.write_bytes(b"".join(other))
        beside.replace(file)
        next_seen()
        # In its place, longer than before, and another session.
        with file.open("r+b") as stream:
            stream.write(b"".join(claude_lines(home / "third.jsonl", (70_000,) * 9)))
        next_seen()
        file.unlink()
        next_seen()

    assert seen == [60_010, "the file is empty", 40_010, 10_010, 70_010, "there is no such file"]


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi", "gemini-cli"])
def test_the_newest_session_of_an_agent_is_found_and_told_once(tmp_path, name) -> None:
    folder = tmp_path.resolve()
    mangled = str(folder).replace("/", "-").replace("_", "-")
    place = {
        "claude-code": f".claude/projects/{mangled}/a.jsonl",
        "codex": ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-a.jsonl",
        "pi": f".pi/agent/sessions/--{str(folder)[1:].replace('/', '-')}--/a.jsonl",
        "gemini-cli": ".gemini/tmp/abc/chats/session-a.jsonl",
    }[name]
    file = folder / place
    file.parent.mkdir(parents=True)
    write_session(name, file, folder)

    seen = run(folder, "watch", "--agent", name, "--once", "--json")

    assert (seen.code, seen.err) == (0, "")
    assert seen.json["file"] == str(file)
    assert (seen.json["used"], seen.json["window"]) == USED[name]


USED = {
    "claude-code": (50_010, 200_000),
    "codex": (50_010, 400_000),
    "pi": (50_010, 200_000),
    "gemini-cli": (50_010, 1_048_576),
}


def write_session(name, file, folder) -> None:
    """One turn that took 50,010 tokens, as each program writes it."""
    match name:
        case "claude-code":
            claude_code(file, [asked("Go."), answered(1, text("Done."), usage=reported(50_000))])
        case "codex":
            meta = {"id": "s1", "cwd": str(folder), "model_provider": "openai"}
            usage = {"input_tokens": 50_000, "cached_input_tokens": 0, "output_tokens": 10}
            records = [
                ("session_meta", meta),
                ("turn_context", {"cwd": str(folder), "model": "gpt-5"}),
                ("response_item", message("user", "input_text", "Go.")),
                ("response_item", message("assistant", "output_text", "Done.")),
                ("event_msg", {"type": "token_count", "info": {"last_token_usage": usage}}),
            ]
            at = "2026-01-02T03:04:05Z"
            write_lines(file, ({"timestamp": at, "type": t, "payload": p} for t, p in records))
        case "pi":
            pi(file, 1, words=1)
            record = json.loads(file.read_text().splitlines()[-1])
            record["message"]["usage"] = {"input": 50_000, "output": 10, "cacheRead": 0, "cacheWrite": 0}
            record["message"]["content"] = [{"type": "text", "text": "Done."}]
            with file.open("a") as stream:
                stream.write(json.dumps(record) + "\n")
        case _:
            tokens = {"input": 50_000, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 50_010}
            answer = {"model": "gemini-2.5-pro", "content": "Done.", "tokens": tokens}
            write_lines(
                file,
                [
                    {"sessionId": "s1", "projectHash": "abc", "startTime": "2026-01-02T03:04:05Z"},
                    {"id": "1", "timestamp": "2026-01-02T03:04:05Z", "type": "user", "content": "Go."},
                    {"id": "2", "timestamp": "2026-01-02T03:04:06Z", "type": "gemini", **answer},
                ],
            )


def message(role, kind, words):
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def test_a_guess_shows_its_doubt_and_a_narrow_terminal_gets_what_matters_most(home) -> None:
    file = openai(home / "plain.json", 20, words=600)

    wide = run(home, "watch", file, "--once").out
    narrow = run(home, "watch", file, "--once", env={**TERMINAL, "COLUMNS": "20"}).lines
    dumb = run(home, "watch", file, "--once", env={**TERMINAL, "TERM": "dumb"}).out
    grey = run(home, "watch", file, "--once", env={**TERMINAL, "NO_COLOR": "1"}).out

    assert wide.startswith("ctx ~")
    assert "k/128k? · compacts in ~" in wide
    assert len(narrow) == 1
    assert narrow[0].startswith("\x1b[33mctx ~")
    assert len(ANSI.sub("", narrow[0])) <= 20
    assert dumb == grey == wide


def test_what_cannot_be_watched_is_told_in_one_line(home) -> None:
    empty, unknown = home / "empty.jsonl", home / "unknown.jsonl"
    empty.write_bytes(b"")
    unknown.write_bytes(b"\x00\x01\x02")
    arguments = {
        "nothing": ("--once",),
        "both": (empty, "--agent", "pi"),
        "empty": (empty, "--once"),
        "unknown": (unknown, "--once"),
        "missing": (home / "none.jsonl", "--once"),
        "folder": (home, "--once"),
        "agent": ("--agent", "pi", "--once"),
    }
    ended = run_each(home, *(("watch", *one) for one in arguments.values()))
    told = dict(zip(arguments, ended, strict=True))

    assert {name: seen.code for name, seen in told.items()} == {
        "nothing": 3,
        "both": 2,
        "empty": 1,
        "unknown": 1,
        "missing": 2,
        "folder": 2,
        "agent": 3,
    }
    assert told["empty"].err == f"cannot watch {empty}: the file is empty.\n"
    assert told["unknown"].err == f"cannot watch {unknown}: the format of the file is unknown.\n"
    assert told["missing"].err == (
        f"cannot read {home}/none.jsonl: there is no such file.\nDid you mean {unknown}?\n"
    )
    assert told["agent"].err.startswith("no session of pi was found on this machine.\n")
    assert not any(seen.out for seen in told.values())


def test_a_terminal_has_one_line_that_is_drawn_again_and_is_left_as_it_was(home) -> None:
    file = home / "terminal.jsonl"
    lines = claude_lines(file, (40_000, 60_000))
    file.write_bytes(b"".join(lines[:3]))
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    process = subprocess.Popen(
        [*COMPACTD, "watch", str(file)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(home, {"TERM": "xterm", "COLUMNS": "30"}),
        cwd=home,
        start_new_session=True,
    )
    os.close(follower)
    shown = b""

    def read_until(mark: bytes) -> None:
        nonlocal shown
        while mark not in shown:
            shown += os.read(leader, 4096)

    read_until(b"ctx 20 %")
    with file.open("ab") as stream:
        stream.write(b"".join(lines[3:]))
    read_until(b"ctx 30 %")
    process.send_signal(signal.SIGINT)
    read_until(b"\x1b[?25h")
    code = process.wait(60)
    os.close(leader)

    assert code == 130
    # The cursor is hidden while the line is drawn, and shown again; nothing scrolls.
    assert shown.index(b"\x1b[?25l") < shown.index(b"ctx 20 %")
    between = shown[shown.index(b"ctx 20 %") : shown.index(b"ctx 30 %")]
    assert b"\n" not in between
    assert b"\x1b[2K" in between


def test_a_long_file_is_read_from_its_end_and_says_the_same(home) -> None:
    file = home / "long.jsonl"
    big = filler(30_000)
    records = [asked("Begin.")]
    for number in range(1, 41):
        records += [asked(big), answered(number, text("Done."), usage=reported(1_000 * number))]
    claude_code(file, records)
    assert file.stat().st_size > 4_000_000

    seen = run(home, "watch", file, "--once", "--json").json

    assert (seen["used"], seen["source"], seen["model"]) == (40_010, "measured", "claude-opus-4-5")
    assert seen["forecast"] == {"steps": 120, "unit": "turn", "tokens_each": 1_000}


def test_a_newer_session_of_the_agent_is_followed_from_then_on(tmp_path) -> None:
    folder = tmp_path.resolve()
    place = folder / ".pi" / "agent" / "sessions" / f"--{str(folder)[1:].replace('/', '-')}--"
    place.mkdir(parents=True)
    write_session("pi", folder / "1.jsonl", folder)
    write_session("pi", folder / "2.jsonl", folder)
    with watching(folder, "--agent", "pi", "--json") as watch:
        nothing = json.loads(watch.stdout.readline())
        (folder / "1.jsonl").rename(place / "a.jsonl")
        first = json.loads(watch.stdout.readline())
        (folder / "2.jsonl").rename(place / "b.jsonl")
        second = json.loads(watch.stdout.readline())

    assert nothing == {"waiting": "no session of pi yet"}
    assert [first["file"], second["file"]] == [f"{place}/a.jsonl", f"{place}/b.jsonl"]


def test_without_a_file_a_newer_session_of_any_agent_of_the_folder_is_followed(tmp_path) -> None:
    folder = tmp_path.resolve()
    agent_homes.write_session(folder, "claude-code", folder, "own", age_s=300)
    later = agent_homes.write_session(folder, "codex", folder, "later", age_s=65)
    later.rename(folder / "later")
    with watching(folder) as watch:
        first = watch.stdout.readline()
        (folder / "later").rename(later)
        second = next(line for line in iter(watch.stdout.readline, "") if line.startswith("session: "))

    assert "own.jsonl (Claude Code, 5 min ago" in first
    assert f"{later.name} (Codex CLI, 1 min ago" in second


def test_a_document_that_is_written_anew_each_time_is_read_anew(home) -> None:
    file = openai(home / "document.json", 2)
    with watching(home, file, "--json") as watch:
        first = json.loads(watch.stdout.readline())
        # Half written, the file is not valid JSON for a moment: `watch` must not report that.
        whole = openai(home / "whole.json", 20).read_bytes()
        with file.open("r+b") as stream:
            stream.write(whole[: len(whole) // 2])
        with file.open("r+b") as stream:
            stream.write(whole)
        second = json.loads(watch.stdout.readline())

    assert (first["source"], second["source"]) == ("estimated", "estimated")
    assert second["used"] > 5 * first["used"]


def test_a_journal_of_ours_is_as_full_as_its_session_says(home) -> None:
    env = {"COMPACTD_HOME": str(home / "own"), "PATH": "/usr/bin:/bin"}
    messages = [{"role": "user", "content": "Go. "}, {"role": "assistant", "content": filler(8_000)}] * 8
    with Client(env=env) as client:
        client.call("session/start", {"session_id": "mine", "model": "anthropic/claude-opus-4-5"})
        client.call("session/append", {"session_id": "mine", "messages": messages})
        client.call("session/compact", {"session_id": "mine", "keep_messages": 2})
        tokens = client.call("session/context", {"session_id": "mine"})["tokens"]
    (journal,) = (home / "own" / "sessions").glob("*.jsonl")

    seen = run(home, "watch", journal, "--once", "--json").json

    assert (seen["format"], seen["used"]) == ("compactd", tokens)

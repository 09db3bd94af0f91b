"""The hook as a process, as an agent runs it: never fails, prints nothing but its answer, ends in time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agent_transcripts import AGENTS, LIMIT, past
from tests.support.command_line import COMPACTD, environment
from tests.support.hook_runs import Agent, ended, spawned

PATIENT = ("--deadline", "30")


def compacted(agent: str, home: Path) -> Agent:
    at_work = Agent(agent, home)
    at_work.session.say(*past())
    at_work.before()
    at_work.session.compact()
    return at_work


@pytest.mark.parametrize("agent", AGENTS)
def test_the_answer_is_one_object_on_stdout(agent: str, tmp_path: Path) -> None:
    at_work = compacted(agent, tmp_path)
    event = at_work.session.event("SessionStart", source="compact")

    code, out, err = ended(spawned(tmp_path, "hook", agent, *PATIENT), json.dumps(event).encode())

    inner = json.loads(out)["hookSpecificOutput"]
    assert (code, err, inner["hookEventName"]) == (0, b"", "SessionStart")
    assert LIMIT in inner["additionalContext"]
    assert len(inner["additionalContext"]) <= 9_500


def test_hooks_that_run_at_once_give_the_facts_once(tmp_path: Path) -> None:
    at_work = compacted("claude-code", tmp_path)
    events = [at_work.session.event("SessionStart", source="compact")]
    events += [at_work.session.event("UserPromptSubmit", prompt="go on")] * 2
    events += [at_work.session.event("Stop")]

    running = [spawned(tmp_path, "hook", "claude-code", *PATIENT) for _ in events]
    for process, event in zip(running, events, strict=True):
        process.stdin.write(json.dumps(event).encode())
        process.stdin.close()
    seen = [(process.stdout.read(), process.stderr.read(), process.wait()) for process in running]

    assert sorted(LIMIT.encode() in out for out, _, _ in seen) == [False, False, False, True]
    assert [(err, code) for _, err, code in seen] == [(b"", 0)] * 4
    for process in running:
        process.stdout.close()
        process.stderr.close()


STDIN = (b"", b"\xff no json", b'{"hook_event_name":"SessionStart"}')


def test_whatever_comes_in_the_hook_is_silent_and_succeeds(tmp_path: Path) -> None:
    running = [(spawned(tmp_path, "hook", "claude-code", *PATIENT), data) for data in STDIN]
    running += [
        (spawned(tmp_path, "hook", *arguments), b"{}")
        for arguments in ((), ("nobody",), ("codex", "--limit"))
    ]

    assert [ended(process, data)[:2] for process, data in running] == [(0, b"")] * len(running)


def test_where_nothing_can_be_written_the_hook_is_silent_and_succeeds(tmp_path: Path) -> None:
    at_work = Agent("codex", tmp_path)
    at_work.session.say(*past(2)).compact()
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder")
    event = json.dumps(at_work.session.event("SessionStart", source="compact")).encode()

    process = spawned(tmp_path, "hook", "codex", *PATIENT, env={"COMPACTD_HOME": str(in_the_way)})

    assert ended(process, event) == (0, b"", b"")
    assert in_the_way.read_text() == "no folder"


SLOW_END = """
import sys, time
from compactd.integrations.hooks import entry

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1)  # while the interpreter ends, when its own signal handlers are gone

slow = Slow()
sys.exit(entry.hook(["codex", "--deadline", "0.7"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGALRM")
def test_a_hook_whose_deadline_passes_while_the_interpreter_ends_exits_with_0(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW_END],
        input=b"{}",
        env={**os.environ, "COMPACTD_HOME": str(tmp_path)},
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


def test_an_agent_that_never_ends_its_event_waits_no_longer_than_the_deadline(tmp_path: Path) -> None:
    process = spawned(tmp_path, "hook", "codex", "--deadline", "0.3")
    process.stdin.write(b'{"session_id":')
    process.stdin.flush()

    code = process.wait(timeout=30)

    assert (code, process.stdout.read(), process.stderr.read()) == (0, b"", b"")
    assert (
        "the hook was ended because its deadline passed"
        in (tmp_path / "data" / "hooks" / "hooks.log").read_text()
    )
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_an_agent_that_does_not_read_its_answer_is_no_failure(tmp_path: Path) -> None:
    at_work = compacted("claude-code", tmp_path)
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*COMPACTD, "hook", "claude-code", *PATIENT],
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    )
    os.close(write)

    _, err = process.communicate(json.dumps(at_work.session.event("UserPromptSubmit")).encode(), timeout=60)

    assert (process.returncode, err) == (0, b"")


def test_the_log_names_what_was_done_and_nothing_that_was_said(tmp_path: Path) -> None:
    at_work = compacted("gemini-cli", tmp_path)
    at_work.prompt()
    event = json.dumps(at_work.session.event("BeforeAgent", prompt="secret words")).encode()
    in_the_way = {**json.loads(event), "transcript_path": str(tmp_path)}
    ended(spawned(tmp_path, "hook", "gemini-cli", *PATIENT), json.dumps(in_the_way).encode())

    code, out, _ = ended(spawned(tmp_path, "doctor", "--hooks", "--json"))

    told = json.loads(out)
    assert (code, told["failed"]) == (1, 1)
    assert told["lines"][-1]["failed"] == "the transcript is not a regular file"
    assert "secret" not in out.decode()
    assert LIMIT not in out.decode()

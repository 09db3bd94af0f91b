"""Runs a hook, in this process or as a process like an agent does."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from compactd.integrations.hooks.hook import Done, Options, run
from tests.support.agent_transcripts import BEFORES, PROMPTS, STARTS, STOPS, Session
from tests.support.command_line import COMPACTD, TIMEOUT_S, environment

PATIENT = Options(deadline_s=30.0)
"""No test waits for it: a busy machine must not decide."""


class Answer(NamedTuple):
    """The output of a hook."""

    text: str
    """The context; empty for none."""
    name: str
    """The name of the event that the answer is for."""
    done: Done
    steering: str = ""
    """What a summary must contain, which is no context."""


def told(home: Path, agent: str, event: object, options: Options = PATIENT) -> Answer:
    """The hook at one event, in this process."""
    done = Done()
    data = event if isinstance(event, bytes) else json.dumps(event).encode()
    environ = {"HOME": str(home), "COMPACTD_HOME": str(home / "data")}
    answer = run(agent, data, options, time.monotonic(), done, environ)
    if not answer:
        return Answer("", "", done)
    if not answer.startswith(b"{"):
        # What steers a summary is plain text.
        return Answer("", "", done, answer.decode())
    assert answer.endswith(b"}\n")
    assert answer.count(b"\n") == 1
    inner = json.loads(answer)["hookSpecificOutput"]
    assert set(inner) == {"hookEventName", "additionalContext"}
    return Answer(inner["additionalContext"], inner["hookEventName"], done)


class Agent:
    """An agent at work, with our hook."""

    def __init__(self, agent: str, home: Path, session_id: str = "5c5cb639-aaaa") -> None:
        self.agent = agent
        self.home = home
        self.session = Session(agent, home, session_id)

    def at(self, name: str, *, options: Options = PATIENT, **more: object) -> Answer:
        return told(self.home, self.agent, self.session.event(name, **more), options)

    def start(self, source: str = "startup", **more: object) -> Answer:
        return self.at(STARTS[self.agent], source=source, **more)

    def prompt(self, text: str = "go on", **more: object) -> Answer:
        return self.at(PROMPTS[self.agent], prompt=text, **more)

    def stop(self) -> Answer:
        return self.at(STOPS[self.agent])

    def before(self) -> Answer:
        return self.at(BEFORES[self.agent], trigger="manual")


def spawned(home: Path, *arguments: str, **more: object) -> subprocess.Popen[bytes]:
    """`compactd ARGUMENTS`, as an agent runs it."""
    return subprocess.Popen(
        [*COMPACTD, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, more.pop("env", {})),  # type: ignore[arg-type]
        cwd=home,
    )


def ended(process: subprocess.Popen[bytes], data: bytes = b"") -> tuple[int, bytes, bytes]:
    out, err = process.communicate(data, timeout=TIMEOUT_S)
    return process.returncode, out, err

"""Helpers for the tests of docs/specs-evmts-opencode.md, "evmts-32.md"."""

from __future__ import annotations

from typing import Any

from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.talk import Message, assistant, call, result, turns, user
from tests.support.wire import MODEL, append, started

LEAD = "[Conversation Summary]"
TOO_SHORT = "Not enough messages to compact"
HEADINGS = ["KEY DECISIONS", "FILE CONTEXT", "CODE CHANGES", "ERRORS & SOLUTIONS", "CURRENT STATE"]

SUMMARY = """## KEY DECISIONS
- Tables instead of branches: they are quicker.
## FILE CONTEXT
- src/scan.py was read.
## CODE CHANGES
- `scan` looks its states up.
## ERRORS & SOLUTIONS
- IndexError at the end of input: a sentinel was added.
## CURRENT STATE
- The benchmark is being run.
"""
"""A summary as a model writes it with the five headings that it is asked for."""


def filled(daemon: Daemon, *messages: Message, window: int | None = 100_000, **settings: Any) -> str:
    """A session under `evmts` with these messages, else with 20 of 200 tokens each."""
    session = started(daemon, "evmts", window, settings=settings)
    append(daemon, session, *(messages or turns(10, 200)))
    return session


def by_a_model(daemon: Daemon, server: Loopback, *answers: str, **settings: Any) -> str:
    """Do the same with a model that writes the summaries."""
    server.play(*[Answer(text=answer) for answer in answers])
    return filled(daemon, model=MODEL, **settings)


def conversation() -> list[Message]:
    """Work with a decision, a file, a snippet of code, an error and what ended it, and what came after."""
    code = "def scan(text: str) -> list[str]:\n    return TABLE[text[0]](text)\n"
    return [
        user(1, content="Make src/scan.py faster. Never change the grammar in src/grammar.txt."),
        assistant(1, content="I decided to use lookup tables because they are quicker than branches."),
        call("r", "read", path="src/scan.py"),
        result("r", 1, content="def scan(text):\n    if text[0] == 'a': ...\n" + "# more\n" * 40),
        call("w", "write", path="src/tables.py", content=code),
        result("w", 1, content="written"),
        call("t", "run", command="pytest tests/test_scan.py"),
        result("t", 1, content="tests/test_scan.py:12: KeyError: '$end'\n1 failed", is_error=True),
        assistant(1, content="KeyError: '$end' came from the end of input; a sentinel in TABLE fixes it."),
        call("u", "run", command="pytest tests/test_scan.py"),
        result("u", 1, content="1 passed"),
        *turns(6, 300),
        user(30, content="Now look at src/scan.py and src/tables.py again: is TABLE complete for '$end'?"),
    ]

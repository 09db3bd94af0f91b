"""The conformance suite, run on compactd's daemon and on programs that are no daemon."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from compactd_conformance import suite
from compactd_conformance.frames import NotStarted
from compactd_conformance.suite import Verdict
from tests.support.sharing import ATTACH, own_sockets

ABOUT_PROCESSES = {"one-writer", "a-reader-is-told", "killed-in-a-compaction"}
"""Checks that open a session in a second process, or kill the only one: clients of a shared daemon have one
daemon, and it lives on.
"""

OURS = (sys.executable, "-m", "compactd", "serve")

POLITE = """
import json, signal, sys
while line := sys.stdin.buffer.readline():
    sys.stdin.buffer.readline()
    told = json.loads(sys.stdin.buffer.read(int(line.partition(b":")[2])))
    if told["method"] == "daemon/ping":
        body = json.dumps({"jsonrpc": "2.0", "id": told["id"], "result": {}})
        print(f"Content-Length: {len(body)}\\r\\n\\r\\n{body}", end="", flush=True)
signal.pause()
"""
"""Answers pings, and nothing else; does not end by itself."""


def failed(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Return the checks that did not pass, with what was seen instead."""
    return {
        one.name: f"expected {one.expected}; seen {one.seen}" for one in verdicts if one.outcome != "passed"
    }


@pytest.mark.timeout(300)
def test_our_daemon_passes_every_check_in_every_framing() -> None:
    verdicts = suite.run(OURS, os.environ)

    assert failed(verdicts) == {}
    assert {(one.name, one.framing) for one in verdicts} == {
        (check.name, framing) for check in suite.CHECKS for framing in check.framings
    }


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_shared_daemon_passes_every_check_but_those_about_its_process() -> None:
    with own_sockets() as sockets:
        verdicts = suite.run(ATTACH, {**os.environ, **sockets})

    assert set(failed(verdicts)) <= ABOUT_PROCESSES


def test_the_names_of_checks_are_unique() -> None:
    names = [check.name for check in suite.CHECKS]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize(
    "program", ["print('Welcome!')", "import sys; sys.exit(3)", "import sys; sys.stdin.read()"]
)
def test_a_program_that_answers_no_ping_cannot_be_tested(program: str) -> None:
    with pytest.raises(NotStarted, match="daemon/ping"):
        suite.run((sys.executable, "-c", program), os.environ, only=("repairs-are-told",), patience_s=1)


def test_a_command_that_is_not_there_cannot_be_tested() -> None:
    with pytest.raises(NotStarted, match="no-such-command-here"):
        suite.run(("no-such-command-here",), os.environ)


def test_an_answer_that_never_comes_is_given_up_and_the_next_check_is_tried() -> None:
    names = ("a-rate-limit-is-no-overflow", "a-model-nobody-knows")

    verdicts = suite.run((sys.executable, "-c", POLITE), os.environ, only=names, patience_s=2)

    assert [(one.name, one.outcome) for one in verdicts] == [(name, "failed") for name in names]
    assert {one.seen for one in verdicts} == {"nothing within 2 s"}
    assert [sent for one in verdicts for sent in one.sent if "overflow/classify" in sent]

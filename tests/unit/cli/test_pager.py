"""Long output in a terminal goes through the user's pager; otherwise it is printed."""

from __future__ import annotations

import pytest

from tests.support.command_line import run
from tests.support.terminals import in_terminal

MANY = ("models", "--provider", "openai")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    pager = home / "pager"
    pager.write_text('#!/bin/sh\necho "paged with LESS=$LESS"\ncat\n')
    pager.chmod(0o755)
    return home


@pytest.fixture(scope="module")
def paged(home):
    return {"PAGER": str(home / "pager")}


def test_what_has_more_lines_than_the_terminal_is_paged_and_what_has_fewer_is_not(home, paged) -> None:
    piped = run(home, *MANY, env=paged)
    small = in_terminal(home, *MANY, env=paged, rows=24)
    large = in_terminal(home, *MANY, env=paged, rows=2_000)

    assert small.lines[0] == "paged with LESS=FRX"
    assert small.lines[1] == large.lines[0] == piped.lines[0]
    assert "paged with" not in large.text + piped.out
    assert (small.code, large.code, piped.code) == (0, 0, 0)


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (("--no-pager",), {}),
        ((), {"PAGER": ""}),
        ((), {"PAGER": "cat"}),
        ((), {"PAGER": "there-is-no-such-pager"}),
        ((), {"PAGER": "'unbalanced"}),
        ((), {"TERM": "dumb"}),
    ],
)
def test_without_a_pager_all_is_printed_at_once(home, paged, options, variables) -> None:
    seen = in_terminal(home, *MANY, *options, env={**paged, **variables})

    assert seen.code == 0
    assert seen.lines[0].startswith("openai: ")
    assert len(seen.lines) > 24


def test_a_pager_that_is_left_early_is_no_error(home) -> None:
    seen = in_terminal(home, *MANY, env={"PAGER": "head -n 1"})

    assert (seen.code, len(seen.lines)) == (0, 1)


def test_the_exit_code_is_the_commands_whatever_the_pager_says(home, paged) -> None:
    file = home / "torn.jsonl"
    lines = [f'{{"role":"user","content":"line {number}"}}\n' for number in range(60)]
    file.write_text("".join(lines) + '{"role": "us')

    seen = in_terminal(home, "doctor", file, env=paged, rows=2)

    assert seen.code == 1
    assert seen.lines[0].startswith("paged with")

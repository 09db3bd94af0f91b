"""`--help` and the man page: the page matches the commands, and the examples in the help parse."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from compactd.cli import COMMANDS
from compactd.cli.framework.registry import GROUP
from tests.support.command_line import run_each

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture(scope="module")
def manual() -> Iterator[ModuleType]:
    sys.path.append(str(TOOLS))
    yield importlib.import_module("man_page")
    sys.path.remove(str(TOOLS))


def test_the_man_page_is_what_the_commands_say(manual) -> None:
    assert manual.MAN_PAGE.read_text("utf-8") == manual.man_page(), f"stale: run `{manual.COMMAND}`"


def test_the_page_of_commands_is_what_the_commands_say(manual) -> None:
    assert manual.PAGE.read_text("utf-8") == manual.page(), f"stale: run `{manual.COMMAND}`"


@pytest.mark.system
def test_the_man_page_is_set_without_a_warning(manual) -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", str(manual.MAN_PAGE)], capture_output=True, text=True, check=True
    )

    assert done.stderr == ""
    assert "compact" in done.stdout


def test_each_example_of_the_help_is_understood(manual) -> None:
    """Each example is parsed unchanged, each part of a pipe alone. Nothing is run."""
    seen = 0
    for _, command in manual.commands():
        for line, _ in command.examples:
            for part in line.replace('"$(', "| ").replace(')"', "").split("|"):
                words = shlex.split(re.split("[<>]", part)[0])
                if words[:1] != ["compactd"]:
                    continue
                ctx: click.Context = GROUP.make_context("compactd", words[1:])
                while isinstance(ctx.command, click.Group) and ctx._protected_args:
                    name, inner, rest = ctx.command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
                    ctx = inner.make_context(name, rest, parent=ctx)
                seen += 1

    assert seen > 2 * len(COMMANDS) - 5


def test_each_command_has_help_with_examples_in_at_most_86_columns(tmp_path, manual) -> None:
    helps = {
        words: command.get_help(manual.usage_of(words, command)[0]) for words, command in manual.commands()
    }

    assert [words for words, text in helps.items() if "\nExamples:\n" not in text] == []
    assert {words: line for words, text in helps.items() for line in text.split("\n") if len(line) > 86} == {}
    asked, told = run_each(tmp_path, ("inspect", "--help"), ("help", "inspect"))
    assert asked.out == told.out != ""

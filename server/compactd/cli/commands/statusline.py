"""`compactd statusline --help`: the line itself is made in `__main__`, before anything is loaded."""

from __future__ import annotations

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command
from compactd.cli.framework.exit_codes import USAGE
from compactd.cli.framework.page import Page

ABOUT = """\
One line for Claude Code's status line, from what it tells on standard input: how full
the context is, tokens, window, turns until it compacts, what the last compaction kept.

  ctx 41 % · 82k/200k · compacts in ~34 turns · kept 38 %, 61 % with what was put back

A window that is a guess has a question mark. `compactd install claude-code` sets it,
where there is no status line yet.
"""


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    agent: str


def run(options: Options, page: Page) -> int:
    """Only reached with options that the status line does not have."""
    return USAGE


COMMAND = Command(
    "statusline",
    Options,
    run,
    about=ABOUT,
    params=(Argument("agent", "claude-code", choices=("claude-code",)),),
    examples=(("compactd statusline claude-code < status.json", "as Claude Code runs it"),),
    has_json=False,
)

"""The help of `compactd statusline`. The status line itself is printed in `__main__`, before anything else is
imported.
"""

from __future__ import annotations

from compactd.cli.framework.command import Argument, help_only

ABOUT = """\
Prints one line for Claude Code's status line, from the JSON that Claude Code writes to
standard input: how full the context is, tokens and window, turns until compactd would
compact, and what the last compaction kept (alone, and with what the hook added).

  ctx 41 % · 82k/200k · compacts in ~34 turns · kept 38 %, 61 % with what was put back

A question mark after the window means that it is a guess. `compactd install
claude-code` adds the status line if there is none yet.
"""


COMMAND = help_only(
    "statusline",
    about=ABOUT,
    params=(Argument("agent", "claude-code", choices=("claude-code",)),),
    examples=(("compactd statusline claude-code < status.json", "run it as Claude Code does"),),
)

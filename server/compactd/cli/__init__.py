"""The command line: one file a command; a client of the daemon.

Nothing here loads more than the command that is run needs: `compactd --version` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from compactd import PROTOCOL_VERSION, __version__


class About(NamedTuple):
    """A command's row in `compactd --help`."""

    usage: str
    """What stands behind its name."""
    told: str


COMMANDS = {
    "compact": About("FILE", "compact a session file: before and after, and the summary"),
    "inspect": About("FILE", "where its tokens are, and when a compaction comes"),
    "watch": About("FILE", "a live gauge of a running agent's session file"),
    "diff": About("FILE", "the context before and after a compaction, side by side"),
    "convert": About("IN OUT", "a session file in another program's format"),
    "doctor": About("FILE", "what is wrong with a session file; writes a repaired copy"),
    "chat": About("", "a conversation with a model, kept and compacted by the daemon"),
    "search": About("WORDS", "messages of every stored session that hold them, compacted or not"),
    "sessions": About("", "the sessions that are stored; `sessions delete ID` removes one"),
    "models": About("[NAME]", "a model's window and limits, and where the numbers come from"),
    "classify": About("FILE", "whether a provider's error was an overflow, and what to do"),
    "schema": About("[KIND]", "the protocol for programs: JSON Schema, OpenRPC, types"),
    "completion": About("", "completion of these commands for bash, zsh and fish"),
    "conformance": About("", "whether a program speaks the protocol and keeps its laws"),
    "install": About("AGENT", "hooks into Claude Code, Codex or Gemini CLI: what compactions lose"),
    "uninstall": About("AGENT", "the same out again"),
    "trust": About("[DIR]", "lets a folder's .compactd.toml decide what a stranger's may not"),
    "untrust": About("DIR", "takes that trust back"),
    "hook": About("AGENT", "what those agents run at their events"),
    "statusline": About("AGENT", "one line for Claude Code's status line"),
    "acp": About("[-- AGENT]", "an agent for Zed and other ACP editors, or before another one"),
    "mcp": About("", "an MCP server: a model's recall of what was compacted away"),
    "serve": About("", "the daemon itself: JSON-RPC on stdin and stdout"),
}
"""Of each command, which is `COMMAND` in the module with its name; in the order of the help."""

_ROWS = "\n".join(f"  {f'{name} {about.usage}':<17}{about.told}" for name, about in COMMANDS.items())

HELP = f"""\
usage: compactd COMMAND ...

{_ROWS}

  --json           on each: one JSON object with the same facts
  --version

A session file is Claude Code's, Codex CLI's, Gemini CLI's, pi's, OpenCode's, Cline's,
or of seven more programs (`convert --help` lists them), or messages in OpenAI's,
Anthropic's or Gemini's shape. Nothing is sent anywhere but by `chat`, to the model
that it names.
`compactd COMMAND --help` tells more, with examples.

exit codes: 0 done, 1 failed, 2 usage, 3 nothing to do
"""


def run(arguments: list[str]) -> int:
    """Does what the command line says; the exit code: 0 done, 1 failed, 2 usage, 3 nothing to do."""
    if instruction := os.environ.get("_COMPACTD_COMPLETE"):
        from compactd.cli.running import complete

        return complete(instruction)
    match arguments:
        case ["--version" | "-V"]:
            sys.stdout.write(f"compactd {__version__}\n")
            return 0
        case ["--version" | "-V", "--json"] | ["--json", "--version" | "-V"]:
            sys.stdout.write(f'{{"version":"{__version__}","protocol_version":"{PROTOCOL_VERSION}"}}\n')
            return 0
        case ["--help" | "-h" | "help"]:
            sys.stdout.write(HELP)
            return 0
        case []:
            sys.stderr.write(HELP)
            return 2
        case ["help", name] if name in COMMANDS:
            return _command([name, "--help"])
        case ["--json", name, *rest] if name in COMMANDS:
            return _command([name, "--json", *rest])
        case [name, *_] if name in COMMANDS:
            return _command(arguments)
        case _:
            return _unknown(arguments[0])


def _command(arguments: list[str]) -> int:
    try:
        from compactd.cli.running import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        # While the modules were loaded.
        sys.stderr.write("\n")
        return 130


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(COMMANDS)}."
    sys.stderr.write(f"compactd has no command {name!r}; {hint} `compactd --help` tells more.\n")
    return 2

"""The command line: one file a command; a client of the daemon.

Nothing here loads more than the command that is run needs: `compactd --version` answers at once.
"""

from __future__ import annotations

import os
import sys

from compactd import PROTOCOL_VERSION, __version__
from compactd.cli.command_list import COMMANDS

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
        from compactd.cli.framework.registry import complete

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
        from compactd.cli.framework.registry import run_command

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

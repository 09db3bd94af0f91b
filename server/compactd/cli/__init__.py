"""The command line of compactd: one file per command. Each command is a client of the daemon.

Only the modules that the chosen command needs are imported, so that `compactd --version` and `--help` answer
at once.
"""

from __future__ import annotations

import os
import sys

from compactd import PROTOCOL_VERSION, __version__
from compactd.cli.command_list import COMMANDS

_ROWS = "\n".join(f"  {f'{name} {about.usage}':<17}{about.told}" for name, about in COMMANDS.items())

HELP = f"""\
usage: compactd [COMMAND ...]

{_ROWS}

  --json           with most commands: print the result as one JSON object
  (no command)     show which sessions are on this machine, and what to try
  --version

FILE is a session file of Claude Code, Codex CLI, Gemini CLI, pi, OpenCode,
Cline or another program (`convert --help` lists them), or messages in the
format of OpenAI, Anthropic or Gemini.
`compactd COMMAND --help` describes a command and shows examples.

exit codes: 0 done, 1 failed or faults found, 2 wrong command line or no such
            file, 3 nothing to do or nothing found
"""


def run(arguments: list[str]) -> int:
    """Run the command line. Return the exit code (`cli/framework/exit_codes.py`)."""
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
            return _overview(is_json=False)
        case ["--json"]:
            return _overview(is_json=True)
        case ["help", name] if name in COMMANDS:
            return _command([name, "--help"])
        case ["--json", name, *rest] if name in COMMANDS:
            return _command([name, "--json", *rest])
        case [name, *_] if name in COMMANDS:
            return _command(arguments)
        case _:
            return _unknown(arguments[0])


SHARING = ("chat", "acp")
"""Commands in which people talk. With `COMPACTD_SHARED`, they use the shared daemon. The others read files
and stored sessions, and end soon: each has a daemon of its own.
"""


def _command(arguments: list[str]) -> int:
    if arguments[0] not in SHARING:
        os.environ.pop("COMPACTD_SHARED", None)
    try:
        from compactd.cli.framework.registry import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        # Ctrl-C while the modules were loading.
        sys.stderr.write("\n")
        return 130


def _overview(*, is_json: bool) -> int:
    try:
        from compactd.cli.agent_files.overview import print_overview

        print_overview(is_json=is_json)
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return 130
    except OSError as error:
        from compactd.cli.framework.registry import output_failed

        return output_failed(error)
    return 0


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    from compactd.cli.framework.page import write_errors

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"The commands are: {', '.join(COMMANDS)}."
    write_errors([f"compactd has no command {name!r}. {hint} See `compactd --help`."])
    return 2

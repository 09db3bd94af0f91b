"""The command line: one file a command; a client of the daemon.

Nothing here loads more than the command that is run needs: `compactd --version` answers at once.
"""

from __future__ import annotations

import sys

from compactd import PROTOCOL_VERSION, __version__

HELP = """\
usage: compactd COMMAND ...

  compact FILE    compact a session file: before and after, and the summary
  inspect FILE    where its tokens are, and when a compaction comes
  convert IN OUT  a session file in another program's format
  doctor FILE     what is wrong with a session file; writes a repaired copy
  chat            a conversation with a model, kept and compacted by the daemon
  search WORDS    messages of every stored session that hold them, compacted or not
  sessions        the sessions that are stored; `sessions delete ID` removes one
  models [NAME]   a model's window and limits, and where the numbers come from
  classify FILE   whether a provider's error was an overflow, and what to do
  schema [KIND]   the protocol for programs: JSON Schema, OpenRPC, types
  conformance     whether a program speaks the protocol and keeps its laws
  serve           the daemon itself: JSON-RPC on stdin and stdout

  --json          on each: one JSON object with the same facts
  --version

A session file is Claude Code's, Codex CLI's, Gemini CLI's, pi's, OpenCode's, Cline's,
or of seven more programs (`convert --help` lists them), or messages in OpenAI's,
Anthropic's or Gemini's shape. Nothing is sent anywhere but by `chat`, to the model
that it names.
`compactd COMMAND --help` tells more.

exit codes: 0 done, 1 failed, 2 usage, 3 nothing to do
"""

COMMANDS = (
    "compact",
    "inspect",
    "convert",
    "doctor",
    "chat",
    "search",
    "sessions",
    "models",
    "classify",
    "schema",
    "conformance",
    "serve",
)


def run(arguments: list[str]) -> int:
    """Does what the command line says; the exit code: 0 done, 1 failed, 2 usage, 3 nothing to do."""
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
        case [name, *rest] if name in COMMANDS:
            from compactd.cli.running import run_command

            return run_command(name, rest)
        case _:
            return _unknown(arguments[0])


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(COMMANDS)}."
    sys.stderr.write(f"compactd has no command {name!r}; {hint} `compactd --help` tells more.\n")
    return 2

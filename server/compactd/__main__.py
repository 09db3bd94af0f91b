"""The `compactd` command: `serve`, and what agents run at their events, without loading anything else.

All others are in `compactd.cli`.
"""

from __future__ import annotations

import sys

SERVE = ("serve", "--stdio")
BY_AGENTS = ("hook", "statusline")
"""Run by an agent that waits for them."""


def main() -> int:
    """Runs what the command line says; the exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] and arguments[0] in SERVE and "--help" not in arguments and "-h" not in arguments:
        return _serve(arguments[1:])
    if arguments[:1] and arguments[0] in BY_AGENTS and not {"--help", "-h"} & set(arguments):
        return _by_agent(arguments[0], arguments[1:])
    from compactd.cli import run

    return run(arguments)


def _by_agent(command: str, options: list[str]) -> int:
    """Always 0: an agent shows any other code to its user, and some stop for it."""
    try:
        from compactd.integrations.hooks import entry

        return entry.hook(options) if command == "hook" else entry.statusline(options)
    except (Exception, KeyboardInterrupt):
        return 0


def _serve(options: list[str]) -> int:
    try:
        return _served(options)
    except KeyboardInterrupt:
        # The daemon has closed its sessions by now.
        return 130


def _served(options: list[str]) -> int:
    # Before anything else is imported: whatever prints from here on, prints to stderr.
    from compactd.daemon.rpc.stdio import take_stdio

    # What editors' clients add of their own; `initialize` tells the same.
    limit = _limit([o for o in options if o != "--stdio" and not o.startswith("--clientProcessId=")])
    if limit == 0:
        sys.stderr.write("usage: compactd serve [--frame-limit BYTES]\n")
        return 2
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(
            "compactd serve: waiting for JSON-RPC messages on standard input. End it with Ctrl-D or Ctrl-C.\n"
        )
    fds = take_stdio()
    from compactd.daemon.core_dumps import forbid_core_dumps

    forbid_core_dumps()
    from compactd.daemon.app import serve

    return serve(fds, frame_limit_bytes=limit)


def _limit(options: list[str]) -> int | None:
    """The frame limit in bytes, None where it is not given, 0 where the options are wrong."""
    match options:
        case []:
            return None
        case ["--frame-limit", text] if text.isdecimal() and int(text) >= 1024:
            return int(text)
        case _:
            return 0


if __name__ == "__main__":
    sys.exit(main())

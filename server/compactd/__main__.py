"""Entry point of the `compactd` command.

`serve`, `hook` and `statusline` start here without loading the other commands, which are in `compactd.cli`.
"""

from __future__ import annotations

import sys

SERVE = ("serve", "--stdio")
BY_AGENTS = ("hook", "statusline")
"""Commands that an agent runs and waits for."""


def main() -> int:
    """Run the command line. Return the exit code. The process must end afterwards: Ctrl-C is then ignored,
    so that it does not interrupt Python's clean-up.
    """
    try:
        code = _run(sys.argv[1:])
        _ignore_ctrl_c()
    except KeyboardInterrupt:
        # Ctrl-C while the first modules were loading, or after the command was done.
        _ignore_ctrl_c()
        sys.stderr.write("\n")
        return 130
    return code


def _ignore_ctrl_c() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(arguments: list[str]) -> int:
    if arguments[:1] and arguments[0] in SERVE and "--help" not in arguments and "-h" not in arguments:
        return _serve(arguments[1:])
    if arguments[:1] and arguments[0] in BY_AGENTS and not {"--help", "-h"} & set(arguments):
        return _by_agent(arguments[0], arguments[1:])
    from compactd.cli import run

    return run(arguments)


def _by_agent(command: str, options: list[str]) -> int:
    """Run the command `hook` or `statusline`. Return 0 even if the command fails, because agents show any
    other exit code to the user, and some agents then stop.
    """
    try:
        from compactd.integrations.hooks import entry

        return entry.hook(options) if command == "hook" else entry.statusline(options)
    except (Exception, KeyboardInterrupt):
        return 0


def _serve(options: list[str]) -> int:
    try:
        return _served(options)
    except KeyboardInterrupt:
        # By now the daemon has closed its sessions.
        return 130


def _served(options: list[str]) -> int:
    # Reserve stdin and stdout for the protocol before other imports. After this, prints go to stderr.
    from compactd.daemon.rpc.stdio import take_stdio

    # Ignore options that editors add: the request `initialize` contains the same information.
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
    """Return the frame limit in bytes, None if it is not given, or 0 if the options are invalid."""
    match options:
        case []:
            return None
        case ["--frame-limit", text] if text.isdecimal() and int(text) >= 1024:
            return int(text)
        case _:
            return 0


if __name__ == "__main__":
    sys.exit(main())

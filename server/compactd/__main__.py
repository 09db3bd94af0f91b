"""Entry point of the `compactd` command.

`serve`, `attach`, `hook` and `statusline` start here without loading the other commands, which are in
`compactd.cli`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from socket import socket

SERVE = ("serve", "--stdio")
USAGE = "usage: compactd serve [--shared | --listen] [--socket PATH] [--idle-exit S] [--frame-limit BYTES]\n"
SERVE_OPTIONS = ("--shared", "--listen", "--socket", "--idle-exit", "--frame-limit")
ATTACH_OPTIONS = ("--no-start", "--socket", "--frame-limit")
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
        return _serve(_served, arguments[1:])
    if arguments[:1] == ["attach"] and not {"--help", "-h"} & set(arguments):
        return _serve(_attach, arguments[1:])
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


def _serve(run: Callable[[list[str]], int], options: list[str]) -> int:
    try:
        return run(options)
    except KeyboardInterrupt:
        # By now the daemon has closed its sessions.
        return 130


def _served(options: list[str]) -> int:
    # Reserve stdin and stdout for the protocol before other imports. After this, prints go to stderr.
    from compactd.daemon.rpc.stdio import take_stdio

    asked = _read_options(options, SERVE_OPTIONS)
    if asked is None:
        sys.stderr.write(USAGE)
        return 2
    if not asked.listens and sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(
            "compactd serve: waiting for JSON-RPC messages on standard input. End it with Ctrl-D or Ctrl-C.\n"
        )
    fds = take_stdio()
    if (
        asked.is_shared
        and not asked.listens
        and (code := _attached(fds, asked, is_required=False)) is not None
    ):
        return code
    from compactd.daemon.core_dumps import forbid_core_dumps

    forbid_core_dumps()
    if asked.listens:
        from compactd.daemon.sharing.listener import listen

        return listen(asked.path, idle_s=asked.idle_s, frame_limit_bytes=asked.frame_limit)
    from compactd.daemon.app import serve

    return serve(fds, frame_limit_bytes=asked.frame_limit)


def _attach(options: list[str]) -> int:
    """Run the command `attach`."""
    from compactd.daemon.rpc.stdio import take_stdio

    asked = _read_options(options, ATTACH_OPTIONS)
    if asked is None:
        sys.stderr.write("usage: compactd attach [--no-start] [--socket PATH] [--frame-limit BYTES]\n")
        return 2
    code = _attached(take_stdio(), asked, is_required=True)
    return 1 if code is None else code


def _attached(fds: tuple[int, int], asked: _Options, *, is_required: bool) -> int | None:
    """Serve the client on `fds` by the shared daemon. Return its exit code; None if that is not possible,
    after a message.
    """
    import os

    from compactd.daemon.sharing.attach import NotAttached, attach

    def serve(path: Path, first: socket) -> int:
        from compactd.daemon.core_dumps import forbid_core_dumps

        forbid_core_dumps()
        from compactd.daemon.sharing.listener import listen

        return listen(path, idle_s=asked.idle_s, frame_limit_bytes=None, first=first)

    try:
        return attach(
            fds,
            dict(os.environ),
            path=asked.path,
            frame_limit_bytes=asked.frame_limit,
            serve=serve if asked.may_start else None,
        )
    except NotAttached as error:
        rest = "" if is_required else "; this client gets a daemon of its own"
        sys.stderr.write(f"compactd attach: {error}{rest}\n")
        return None


class _Options:
    """The options of `serve` and `attach`."""

    def __init__(self) -> None:
        self.frame_limit: int | None = None
        self.socket: str | None = None
        self.idle_s = _idle_s()
        self.listens = self.is_shared = False
        self.may_start = True

    @property
    def path(self) -> Path | None:
        """The path of the socket, if one is named."""
        from pathlib import Path

        return None if self.socket is None else Path(self.socket)


def _read_options(options: list[str], allowed: tuple[str, ...]) -> _Options | None:
    """Return the options of a command that has the options `allowed`; None if they are wrong."""
    asked = _Options()
    asked.is_shared = _is_switched_on()
    rest = iter(options)
    for name in rest:
        if name == "--stdio" or name.startswith("--clientProcessId="):
            continue  # editors add them; `initialize` says the latter, too
        if name not in allowed:
            return None
        match name:
            case "--listen":
                asked.listens = True
            case "--shared":
                asked.is_shared = True
            case "--no-start":
                asked.may_start = False
            case "--frame-limit" | "--idle-exit":
                text = next(rest, "")
                if not text.isdecimal() or (name == "--frame-limit" and int(text) < 1024):
                    return None
                if name == "--frame-limit":
                    asked.frame_limit = int(text)
                else:
                    asked.idle_s = float(text)
            case "--socket":
                asked.socket = next(rest, "")
                if not asked.socket.startswith("/"):
                    return None
    return asked


def _idle_s() -> float:
    """Return the seconds after which a shared daemon without clients ends."""
    import os

    text = os.environ.get("COMPACTD_IDLE_EXIT", "")
    return float(text) if text.isdecimal() else 300.0


def _is_switched_on() -> bool:
    """Return whether `serve` shall use the shared daemon."""
    import os

    return os.environ.get("COMPACTD_SHARED", "").lower() in ("1", "true", "yes", "on")


if __name__ == "__main__":
    sys.exit(main())

"""The help of `compactd attach`. `__main__` starts it, before anything else is imported."""

from __future__ import annotations

from compactd.cli.commands.serve import FRAME_LIMIT, SOCKET
from compactd.cli.framework.command import Flag, help_only

ABOUT = """\
Serves the client on stdin and stdout like `compactd serve`, but by a daemon that all
clients of this user share. So an editor, a terminal and an agent can work on one
session at the same time. If no shared daemon runs, it is started in the background; it
ends when it has had no client for five minutes (COMPACTD_IDLE_EXIT, in seconds).

A client that can only run `compactd serve` shares, too, if the variable
COMPACTD_SHARED=1 is set.
"""


COMMAND = help_only(
    "attach",
    about=ABOUT,
    params=(
        Flag("--no-start", "fail if no shared daemon runs"),
        SOCKET,
        FRAME_LIMIT,
    ),
    examples=(
        (
            'printf \'{"jsonrpc":"2.0","id":1,"method":"daemon/info"}\\n\' | compactd attach',
            "ask the shared daemon one question",
        ),
    ),
)

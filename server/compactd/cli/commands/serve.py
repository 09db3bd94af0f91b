"""The help of `compactd serve`. The daemon itself is started in `__main__`, before anything else is
imported.
"""

from __future__ import annotations

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Flag, Option, help_only

ABOUT = """\
Runs the daemon: JSON-RPC 2.0 on stdin and stdout, until stdin ends. It logs to stderr.
Messages are framed as in LSP (Content-Length) or as one JSON object per line; the
first byte decides which.

With --listen, it serves all clients of this user at a socket instead, until it has had
none for a while: `compactd attach` connects a client to it.

Sessions are stored below COMPACTD_HOME, by default the platform's data folder. Settings
are read from the platform's configuration folder and from COMPACTD_... variables.
"""


SOCKET = Option(
    "--socket",
    "the shared daemon's socket, an absolute path (default: one for each data folder and version)",
    metavar="PATH",
)
FRAME_LIMIT = Option(
    "--frame-limit",
    "the largest accepted message in bytes, at least 1024 (64 MiB)",
    metavar="BYTES",
    read=sizes.count,
)
COMMAND = help_only(
    "serve",
    about=ABOUT,
    params=(
        Flag(
            "--shared",
            "serve this client by the shared daemon, like `compactd attach` (COMPACTD_SHARED=1)",
        ),
        Flag(
            "--listen",
            "run the shared daemon in the foreground: clients connect at a socket",
        ),
        SOCKET,
        Option(
            "--idle-exit",
            "seconds without a client after which a shared daemon ends (300)",
            metavar="SECONDS",
            read=sizes.count,
        ),
        FRAME_LIMIT,
    ),
    examples=(
        (
            'printf \'{"jsonrpc":"2.0","id":1,"method":"daemon/info"}\\n\' | compactd serve',
            "ask one question and print the answer",
        ),
    ),
)

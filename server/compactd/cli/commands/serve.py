"""The help of `compactd serve`. The daemon itself is started in `__main__`, before anything else is
imported.
"""

from __future__ import annotations

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Option, help_only

ABOUT = """\
Runs the daemon: JSON-RPC 2.0 on stdin and stdout, until stdin ends. It logs to stderr.
Messages are framed as in LSP (Content-Length) or as one JSON object per line; the
first byte decides which.

Sessions are stored below COMPACTD_HOME, by default the platform's data folder. Settings
are read from the platform's configuration folder and from COMPACTD_... variables.
"""


COMMAND = help_only(
    "serve",
    about=ABOUT,
    params=(
        Option(
            "--frame-limit",
            "the largest accepted message in bytes, at least 1024 (64 MiB)",
            metavar="BYTES",
            read=sizes.count,
        ),
    ),
    examples=(
        (
            'printf \'{"jsonrpc":"2.0","id":1,"method":"daemon/info"}\\n\' | compactd serve',
            "ask one question and print the answer",
        ),
    ),
)

"""`compactd serve --help`: the daemon itself is started in `__main__`, before anything is loaded."""

from __future__ import annotations

from msgspec import Struct

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Command, Option
from compactd.cli.framework.exit_codes import USAGE
from compactd.cli.framework.page import Page

ABOUT = """\
The daemon: JSON-RPC 2.0 on stdin and stdout, until stdin ends. Its log goes to
stderr. Frames are LSP's (Content-Length) or one JSON object a line; the first byte
decides.

Sessions are kept below COMPACTD_HOME, by default the platform's data folder; settings
are read from its configuration folder and from COMPACTD_... variables.
"""


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    frame_limit: int | None


def run(options: Options, page: Page) -> int:
    """Only reached with options that the daemon does not have."""
    return USAGE


COMMAND = Command(
    "serve",
    Options,
    run,
    about=ABOUT,
    params=(
        Option(
            "--frame-limit",
            "the largest message that is taken in, at least 1024 (64 MiB)",
            metavar="BYTES",
            read=sizes.count,
        ),
    ),
    examples=(
        (
            'printf \'{"jsonrpc":"2.0","id":1,"method":"daemon/info"}\\n\' | compactd serve',
            "one question, one answer",
        ),
    ),
    has_json=False,
)

"""`compactd serve --help`: the daemon itself is started in `__main__`, before anything is loaded."""

from __future__ import annotations

import argparse

from compactd.cli.ending import USAGE
from compactd.cli.page import Page

ABOUT = """\
The daemon: JSON-RPC 2.0 on stdin and stdout, until stdin ends. Its log goes to
stderr. Frames are LSP's (Content-Length) or one JSON object a line; the first byte
decides. Try it:

  printf '{"jsonrpc":"2.0","id":1,"method":"daemon/info"}\\n' | compactd serve

Sessions are kept below COMPACTD_HOME, by default the platform's data folder; settings
are read from its configuration folder and from COMPACTD_... variables.
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """`--frame-limit`."""
    parser.description = ABOUT
    parser.add_argument(
        "--frame-limit",
        metavar="BYTES",
        type=int,
        help="the largest message that is taken in, at least 1024 (64 MiB)",
    )


def run(options: argparse.Namespace, page: Page) -> int:
    """Only reached with options that the daemon does not have."""
    return USAGE

"""`compactd schema`: prints the protocol for programs."""

from __future__ import annotations

import sys
from importlib.resources import files

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command
from compactd.cli.framework.exit_codes import DONE
from compactd.cli.framework.page import Page

ABOUT = """\
Prints the protocol in a form for programs: `json` (JSON Schema 2020-12) or `openrpc`.
Without KIND: `json`.
"""

FILES = {"json": "schema.json", "openrpc": "openrpc.json"}
"""Kind -> its file in `compactd.protocol`."""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    kind: str | None


def run(options: Options, page: Page) -> int:
    """Print a schema."""
    sys.stdout.write(files("compactd.protocol").joinpath(FILES[options.kind or "json"]).read_text("utf-8"))
    return DONE


COMMAND = Command(
    "schema",
    Options,
    run,
    about=ABOUT,
    params=(Argument("kind", ", ".join(FILES), required=False, choices=tuple(FILES)),),
    examples=(
        (
            "compactd schema > compactd.schema.json",
            "write the JSON Schema of every request, answer and event",
        ),
        ("compactd schema openrpc > compactd.openrpc.json", "write the OpenRPC document"),
    ),
    is_paged=True,
)

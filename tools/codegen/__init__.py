"""Generate the protocol's documentation, schemas and types from the table of methods and the message
classes.

`python -m tools.codegen --write` (`make schema`) updates the generated files of this checkout; `--check` only
lists the stale ones. A test fails if a file is out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from tools.codegen.document import protocol_md
from tools.codegen.elisp import elisp
from tools.codegen.json_schema import json_schema, open_rpc
from tools.codegen.lua import lua
from tools.codegen.python import python
from tools.codegen.typescript import typescript

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "make schema"

FILES: dict[str, Callable[[], str]] = {
    "protocol.md": lambda: protocol_md(ROOT / "protocol.md"),
    "server/compactd/protocol/schema.json": json_schema,
    "server/compactd/protocol/openrpc.json": open_rpc,
    "editors/vscode/src/protocol.ts": typescript,
    "editors/nvim/lua/compactd/protocol.lua": lua,
    "server/compactd/client/calls.py": python,
    "editors/emacs/compactd-protocol.el": elisp,
}
"""Path of a generated file in the checkout -> the function that generates its text."""


class Stale(Struct, frozen=True):
    """A generated file that is out of date or missing, and the text that it should have."""

    name: str
    """The file's path below `ROOT`."""
    wanted: str


def stale_files() -> Iterator[Stale]:
    """Yield the generated files of this checkout that are out of date or missing."""
    for name, generate in FILES.items():
        wanted = generate()
        path = ROOT / name
        if not path.exists() or path.read_text("utf-8") != wanted:
            yield Stale(name, wanted)

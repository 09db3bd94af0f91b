"""Generate the protocol's documentation, schemas and types from the table of methods and the message
classes.

`compactd schema --write` updates the files of a checkout. A test fails if a file is out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from compactd.cli.codegen.document import protocol_md
from compactd.cli.codegen.elisp import elisp
from compactd.cli.codegen.json_schema import json_schema, open_rpc
from compactd.cli.codegen.lua import lua
from compactd.cli.codegen.python import python
from compactd.cli.codegen.typescript import typescript

COMMAND = "compactd schema --write"

KINDS: dict[str, Callable[[], str]] = {
    "json": json_schema,
    "openrpc": open_rpc,
    "typescript": typescript,
    "lua": lua,
    "python": python,
    "elisp": elisp,
}
"""Kind on the command line -> function that generates the text."""

FILES = {
    "json": "server/compactd/protocol/schema.json",
    "openrpc": "server/compactd/protocol/openrpc.json",
    "typescript": "editors/vscode/src/protocol.ts",
    "lua": "editors/nvim/lua/compactd/protocol.lua",
    "python": "server/compactd/client/calls.py",
    "elisp": "editors/emacs/compactd-protocol.el",
}
"""Kind -> path of its generated file in a checkout."""

DOCUMENT = "protocol.md"


class Stale(Struct, frozen=True):
    """A generated file that is out of date or missing, and the text that it should have."""

    path: Path
    wanted: str


def stale_files(root: Path) -> Iterator[Stale]:
    """Yield the generated files of the checkout `root` that are out of date or missing."""
    document = root / DOCUMENT
    wanted = [(document, protocol_md(document))]
    wanted += [(root / path, KINDS[kind]()) for kind, path in FILES.items()]
    for path, text in wanted:
        if not path.exists() or path.read_text("utf-8") != text:
            yield Stale(path, text)


def is_checkout(root: Path) -> bool:
    """Return whether `root` is a checkout of compactd."""
    return (root / DOCUMENT).is_file() and (root / "server" / "compactd").is_dir()

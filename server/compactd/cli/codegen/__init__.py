"""The protocol written down for people and programs, from the table of methods and the structs of the wire.

`compactd schema --write` brings the files up to date in a checkout; a test fails when one is stale.
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
"""What can be printed, by its name on the command line."""

FILES = {
    "json": "server/compactd/protocol/schema.json",
    "openrpc": "server/compactd/protocol/openrpc.json",
    "typescript": "editors/vscode/src/protocol.ts",
    "lua": "editors/nvim/lua/compactd/protocol.lua",
    "python": "server/compactd/client/calls.py",
    "elisp": "editors/emacs/compactd-protocol.el",
}
"""Where each stands in a checkout."""

DOCUMENT = "protocol.md"


class Stale(Struct, frozen=True):
    """A file that is not what the table says."""

    path: Path
    wanted: str


def stale_files(root: Path) -> Iterator[Stale]:
    """The files under the checkout `root` that must be written anew."""
    document = root / DOCUMENT
    wanted = [(document, protocol_md(document))]
    wanted += [(root / path, KINDS[kind]()) for kind, path in FILES.items()]
    for path, text in wanted:
        if not path.exists() or path.read_text("utf-8") != text:
            yield Stale(path, text)


def is_checkout(root: Path) -> bool:
    """Whether the files above have a place there."""
    return (root / DOCUMENT).is_file() and (root / "server" / "compactd").is_dir()

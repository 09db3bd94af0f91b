"""The hooks' own log: what they did and what went wrong, one JSON object a line, with nothing that was said.

An agent must never see a failure of ours: this file is the only place where it is told. `compactd doctor
--hooks` shows it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.integrations.hooks.state import hooks_folder
from compactd.storage import files

NAME = "hooks.log"
MOST_BYTES = 262_144
"""A larger log becomes `hooks.log.1`, in the place of the one before."""


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one hook did."""

    at: float
    agent: str
    event: str = ""
    session: str = ""
    """The first characters of its id."""
    ms: int = 0
    did: str = ""
    failed: str = ""


def write(environ: Mapping[str, str], line: Line) -> None:
    """Adds a line; where even that cannot be done, nothing happens."""
    try:
        folder = hooks_folder(environ)
        files.make_folder(folder)
        path = folder / NAME
        if path.exists() and path.stat().st_size > MOST_BYTES:
            path.replace(path.with_suffix(".log.1"))
        fd = files.open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, msgspec.json.encode(line) + b"\n")
        finally:
            os.close(fd)
    except (OSError, KeyError):
        return


def lines(environ: Mapping[str, str]) -> Iterator[Line]:
    """What was logged, oldest first; a line that cannot be read is passed over."""
    folder = hooks_folder(environ)
    for path in (folder / (NAME + ".1"), folder / NAME):
        yield from _lines(path)


def _lines(path: Path) -> Iterator[Line]:
    try:
        data = path.read_bytes()
    except OSError:
        return
    for line in data.split(b"\n"):
        try:
            yield msgspec.json.decode(line, type=Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue

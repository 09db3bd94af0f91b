"""The hooks' log: what they did and what failed, one JSON object per line, without any text of the session.

An agent must never see a failure of compactd, so failures are reported only here. `compactd doctor --hooks`
shows the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct

from compactd.integrations.hooks.hook_state import hooks_folder
from compactd.storage import files

NAME = "hooks.log"
MAX_LOG_BYTES = 262_144
"""A log with more bytes is renamed to `hooks.log.1`, which replaces the older log of that name."""


class HookLogLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the log: what one run of the hook did."""

    at: float
    agent: str
    event: str = ""
    session: str = ""
    """The first characters of the session's id."""
    ms: int = 0
    did: str = ""
    failed: str = ""


def append_log(environ: Mapping[str, str], line: HookLogLine) -> None:
    """Append a line. Do nothing if that fails."""
    try:
        folder = hooks_folder(environ)
        files.make_folder(folder)
        path = folder / NAME
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        fd = files.open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, msgspec.json.encode(line) + b"\n")
        finally:
            os.close(fd)
    except (OSError, KeyError):
        return


def read_log(environ: Mapping[str, str]) -> Iterator[HookLogLine]:
    """Yield the logged lines, oldest first. Skip lines that cannot be read."""
    folder = hooks_folder(environ)
    for path in (folder / (NAME + ".1"), folder / NAME):
        with suppress(OSError):
            for line in path.read_bytes().split(b"\n"):
                with suppress(msgspec.DecodeError, UnicodeDecodeError):
                    yield msgspec.json.decode(line, type=HookLogLine)

"""The user's limits on the daemon's own loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.storage.settings_files import FILE_LIMIT_BYTES, PREFIX
from compactd.storage.settings_reader import READ_S, in_own_thread

_log = logging.getLogger("compactd.loop")


class LoopLimits(Struct, frozen=True, kw_only=True):
    """`[loop]` in the user's config.toml, or `COMPACTD_LOOP_…`. What is left out is the default."""

    tool_s: float = 600.0
    """Seconds that the client may take for one tool; above 0. Then the model is told so."""
    steps: int = 500
    """Model requests of one prompt, tools between them; above 0. An agent that needs more is lost."""


async def read_limits(environ: Mapping[str, str], user_file: Path, read_s: float = READ_S) -> LoopLimits:
    """As `limits_from`, beside the loop; without the file where it cannot be read within `read_s`."""
    try:
        async with asyncio.timeout(read_s):
            return await in_own_thread(lambda: limits_from(environ, user_file))
    except TimeoutError:
        _log.warning("%s could not be read within %g seconds: [loop] is ignored", user_file.name, read_s)
        return limits_from(environ, None)


def limits_from(environ: Mapping[str, str], user_file: Path | None) -> LoopLimits:
    """The user's limits: the environment's, else the file's. One that is wrong is said in the log, and the
    default stands. Reads the file: not for the loop."""
    given = {} if user_file is None else _table_of(user_file)
    limits = LoopLimits()
    for name in LoopLimits.__struct_fields__:
        value = environ.get(f"{PREFIX}LOOP_{name.upper()}") or given.get(name)
        if value is None:
            continue
        try:
            one = msgspec.convert({name: value}, LoopLimits, strict=False)
        except msgspec.ValidationError as error:
            _log.warning("loop.%s is ignored: %s", name, error)
            continue
        if not 0 < getattr(one, name) < float("inf"):
            _log.warning("loop.%s is ignored: it must be above 0", name)
            continue
        limits = msgspec.structs.replace(limits, **{name: getattr(one, name)})
    return limits


def _table_of(user_file: Path) -> dict[str, object]:
    """The file's `[loop]`; empty for a file that is missing or no TOML."""
    import tomllib

    try:
        if user_file.stat().st_size > FILE_LIMIT_BYTES:
            return {}
        table = tomllib.loads(user_file.read_text("utf-8")).get("loop", {})
    except (OSError, ValueError, RecursionError):
        # The settings' reader has told of it already.
        return {}
    return dict(table) if isinstance(table, dict) else {}

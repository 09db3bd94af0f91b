"""The user's limits on the daemon's own agent loop: tool time and steps per prompt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.storage.settings_files import PREFIX, read_settings_bytes
from compactd.storage.settings_reader import READ_S, run_in_own_thread

_log = logging.getLogger("compactd.loop")


class LoopLimits(Struct, frozen=True, kw_only=True):
    """The limits, from the variables `COMPACTD_LOOP_…` or the `[loop]` table of the user's config.toml. A
    limit that neither sets has its default.
    """

    tool_s: float = 600.0
    """Seconds that the client may take for one tool call; above 0. After that time the model gets an error as
    the tool's result."""
    steps: int = 500
    """The most model requests for one prompt; above 0. After that many requests the loop stops: an agent that
    needs more is stuck."""


async def read_limits(environ: Mapping[str, str], user_file: Path, read_s: float = READ_S) -> LoopLimits:
    """Return the user's limits from the environment and `user_file`, without blocking the event loop.

    A separate thread reads the file. If that takes longer than `read_s` seconds, the file is ignored.
    """
    try:
        async with asyncio.timeout(read_s):
            return await run_in_own_thread(lambda: limits_from(environ, user_file))
    except TimeoutError:
        _log.warning(
            "%s could not be read within %g seconds, so its [loop] table is ignored", user_file.name, read_s
        )
        return limits_from(environ, None)


def limits_from(environ: Mapping[str, str], user_file: Path | None) -> LoopLimits:
    """Return the user's limits: each from the environment, or else from `user_file`, or else the default.

    An invalid value is logged, and the default is used. This function blocks while it reads the file, so do
    not call it on the event loop.
    """
    given = {} if user_file is None else _table_of(user_file)
    limits = LoopLimits()
    for name in LoopLimits.__struct_fields__:
        value = environ.get(f"{PREFIX}LOOP_{name.upper()}") or given.get(name)
        if value is None:
            continue
        try:
            one = msgspec.convert({name: value}, LoopLimits, strict=False)
        except msgspec.ValidationError as error:
            _log.warning("the setting loop.%s is ignored: %s", name, error)
            continue
        if not 0 < getattr(one, name) < float("inf"):
            _log.warning("the setting loop.%s is ignored: it must be above 0 and finite", name)
            continue
        limits = msgspec.structs.replace(limits, **{name: getattr(one, name)})
    return limits


def _table_of(user_file: Path) -> dict[str, object]:
    """Return the `[loop]` table of the file, or an empty dict if the file is missing or not valid TOML."""
    import tomllib

    # `storage/settings_reader.py` also reads this file and has warned about it.
    data, _ = read_settings_bytes(user_file, user_file.name)
    try:
        table = tomllib.loads((data or b"").decode("utf-8")).get("loop", {})
    except (ValueError, RecursionError):
        return {}
    return dict(table) if isinstance(table, dict) else {}

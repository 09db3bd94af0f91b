"""The user's limits on the daemon's own loop."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.settings import PREFIX

_log = logging.getLogger("compactd.loop")


class LoopLimits(Struct, frozen=True, kw_only=True):
    """`[loop]` in the user's config.toml, or `COMPACTD_LOOP_…`. What is left out is the default."""

    tool_s: float = 600.0
    """Seconds that the client may take for one tool; above 0. Then the model is told so."""
    steps: int = 500
    """Model requests of one prompt, tools between them; above 0. An agent that needs more is lost."""


def limits_from(environ: Mapping[str, str], user_file: Path) -> LoopLimits:
    """The user's limits: the environment's, else the file's. One that is wrong is said in the log, and the
    default stands."""
    import tomllib

    given: dict[str, object] = {}
    try:
        table = tomllib.loads(user_file.read_text("utf-8")).get("loop", {})
        given.update(table if isinstance(table, dict) else {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        # The settings' reader has told of it already.
        pass
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

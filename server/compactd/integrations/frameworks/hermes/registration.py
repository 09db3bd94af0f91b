"""`register`: what Hermes calls to load the plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, get_args

from compactd.client import Json
from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.engine import checked_level, engine_of
from compactd.integrations.frameworks.hermes import archive, refusals
from compactd.integrations.frameworks.hermes.context_engine import NAME, PREFIX, CompactdEngine
from compactd.integrations.frameworks.hermes.versions import TESTED

Reduce = Literal["off", "observe", "light", "default", "strong"]

OPTIONS: Final = ("context_window", "compaction", "recall", "persist", "working_dir", "command")
"""Options of the engine that Hermes' configuration may have."""


def register(ctx: Any) -> None:
    """Register the engine, with the options in `plugins.entries.compactd` of Hermes' `config.yaml`. Raise
    `ValueError` for options that do not exist: Hermes shows it for this plugin, and uses its own compressor.
    """
    options = dict(_configured())
    level = checked_level(str(options.pop("reduce", "off")), get_args(Reduce))
    if unknown := sorted(options.keys() - set(OPTIONS)):
        raise ValueError(f"plugins.entries.{NAME}: there is no option {unknown[0]!r}")
    engine = CompactdEngine(**options)
    ctx.register_context_engine(engine)
    ctx.register_hook("api_request_error", refusals.note)
    if level != "off":
        ctx.register_hook("transform_tool_result", reducer(engine, level))


def _configured() -> Mapping[str, Any]:
    from hermes_cli.config import load_config

    plugins = load_config().get("plugins")
    entries = plugins.get("entries") if isinstance(plugins, dict) else None
    entry = entries.get(NAME) if isinstance(entries, dict) else None
    own = entry if isinstance(entry, dict) else {}
    # Hermes' own keys of an entry.
    return {key: value for key, value in own.items() if key not in ("llm", "allow_tool_override")}


def reducer(engine: CompactdEngine, level: str) -> Callable[..., str | None]:
    """Return Hermes' hook `transform_tool_result`: it returns a shorter text, or None if the output stays."""
    observe = level == "observe"

    def reduce(
        *,
        tool_name: str = "",
        args: Mapping[str, Json] | None = None,
        result: object = None,
        session_id: str = "",
        tool_call_id: str = "",
        status: str | None = None,
        **_: Any,
    ) -> str | None:
        if not isinstance(result, str) or not session_id or tool_name == recall.NAME:
            return None
        shared = engine_of(engine.command)
        answer = shared.guard(
            lambda: shared.mirror(PREFIX + archive.root_of(session_id), engine.options).reduce(
                tool_name,
                args or {},
                result,
                call_id=tool_call_id or None,
                is_error=status == "error",
                level=None if observe else level,
                observe=observe,
            ),
            TESTED,
        )
        return None if answer is None or answer.content == result else answer.content

    return reduce

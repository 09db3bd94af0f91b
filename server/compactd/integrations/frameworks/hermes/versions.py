"""Whether the installed Hermes Agent is one that this adapter knows."""

from __future__ import annotations

from collections.abc import Iterator

from compactd.integrations.frameworks.versions import Framework, parameters

TESTED = "hermes-agent 0.19.0"
"""The version that the tests run with."""


def lacks(module: object) -> Iterator[str]:
    """Yield what Hermes' module `agent.context_engine` should have and has not."""
    base = getattr(module, "ContextEngine", None)
    for method, names in {
        "update_from_response": ("usage",),
        "should_compress": ("prompt_tokens",),
        "compress": ("messages", "current_tokens", "focus_topic", "force"),
        "on_session_start": ("session_id",),
        "on_session_end": ("session_id", "messages"),
        "on_session_reset": (),
        "get_tool_schemas": (),
        "handle_tool_call": ("name", "args"),
        "update_model": ("model", "context_length", "provider"),
    }.items():
        given = parameters(getattr(base, method, None))
        if not given:
            yield f"`ContextEngine.{method}`"
        yield from (f"parameter `{name}` of `ContextEngine.{method}`" for name in names if name not in given)


HERMES = Framework("hermes-agent", "hermes", TESTED, ("agent.context_engine",), lacks)

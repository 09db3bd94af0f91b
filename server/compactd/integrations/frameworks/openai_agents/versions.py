"""Whether the installed openai-agents is one that this adapter knows."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect
from collections.abc import Iterator

TESTED = "openai-agents 0.24"
"""The versions that the tests run with."""


def check() -> None:
    """Raise `ImportError`, which says what to do, if the SDK is missing or lacks what this adapter uses."""
    try:
        import agents
        import agents.run_config
    except ImportError as error:
        raise ImportError(
            f"compactd.integrations.frameworks.openai_agents needs {TESTED}: "
            "pip install 'compactd[openai-agents]'"
        ) from error
    missing = list(lacks(agents))
    if missing:
        raise ImportError(
            f"openai-agents {importlib.metadata.version('openai-agents')} has no {', '.join(missing)}. "
            f"compactd was tested with {TESTED}: pip install 'openai-agents~=0.24.0', or a newer compactd"
        )


def lacks(agents: object) -> Iterator[str]:
    """Yield what the SDK's module `agents` should have and has not."""
    config = getattr(agents, "run_config", None)
    for owner, names in {
        "CallModelData": ("model_data", "agent"),
        "ModelInputData": ("input", "instructions"),
        "RunConfig": ("call_model_input_filter", "model_provider", "model"),
    }.items():
        kind = getattr(config, owner, None)
        fields = (
            {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
        )
        yield from (f"`{owner}.{name}`" for name in names if name not in fields)
    for owner, method, names in (
        ("Model", "get_response", ("system_instructions", "input", "model_settings", "tools", "handoffs")),
        ("Model", "stream_response", ("system_instructions", "input", "model_settings", "tools", "handoffs")),
        ("ModelProvider", "get_model", ("model_name",)),
    ):
        function = getattr(getattr(agents, owner, None), method, None)
        given = inspect.signature(function).parameters if callable(function) else {}
        yield from (f"parameter `{name}` of `{owner}.{method}`" for name in names if name not in given)

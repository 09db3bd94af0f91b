"""Whether the installed openai-agents is one that this adapter knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from compactd.integrations.frameworks.versions import Framework, parameters

TESTED = "openai-agents 0.24"
"""The versions that the tests run with."""

_REQUEST = ("system_instructions", "input", "model_settings", "tools", "handoffs")


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
        ("Model", "get_response", _REQUEST),
        ("Model", "stream_response", _REQUEST),
        ("ModelProvider", "get_model", ("model_name",)),
    ):
        given = parameters(getattr(getattr(agents, owner, None), method, None))
        yield from (f"parameter `{name}` of `{owner}.{method}`" for name in names if name not in given)


SDK = Framework("openai-agents", "openai-agents", TESTED, ("agents", "agents.run_config"), lacks)

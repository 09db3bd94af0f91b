"""Whether the installed LangChain is one that this adapter knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from compactd.integrations.frameworks.versions import Framework, parameters

TESTED = "langchain 1.5, langchain-core 1.8"
"""The versions that the tests run with."""


def lacks(middleware: object) -> Iterator[str]:
    """Yield what LangChain's module `middleware` should have and has not."""
    base = getattr(middleware, "AgentMiddleware", None)
    for method, names in {
        "wrap_model_call": ("request", "handler"),
        "awrap_model_call": ("request", "handler"),
        "wrap_tool_call": ("request", "handler"),
        "awrap_tool_call": ("request", "handler"),
        "after_agent": ("state", "runtime"),
    }.items():
        given = parameters(getattr(base, method, None))
        yield from (
            f"parameter `{name}` of `AgentMiddleware.{method}`" for name in names if name not in given
        )
    request = getattr(middleware, "ModelRequest", None)
    fields = (
        {field.name for field in dataclasses.fields(request)} if dataclasses.is_dataclass(request) else set()
    )
    needed = ("model", "messages", "system_message", "tools", "model_settings", "runtime")
    yield from (f"`ModelRequest.{name}`" for name in needed if name not in fields)


LANGCHAIN = Framework(
    "langchain",
    "langchain",
    TESTED,
    ("langchain.agents.middleware", "langchain_core.messages", "langgraph.prebuilt"),
    lacks,
)

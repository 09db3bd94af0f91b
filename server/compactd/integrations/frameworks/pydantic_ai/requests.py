"""What a model request of Pydantic AI contains in addition to its messages: the model, instructions and
tools.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from pydantic_ai import messages as pai

from compactd.client import Json
from compactd.integrations.frameworks.history import Setup
from compactd.integrations.frameworks.pydantic_ai.blocks import json_text
from compactd.integrations.frameworks.pydantic_ai.messages import opening_text

if TYPE_CHECKING:
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.tools import RunContext, ToolDefinition


def model_name(model: object) -> str | None:
    """Return a model as `provider/id`; None if it has no name. Of a `FallbackModel`: its first."""
    first = getattr(model, "models", None)
    if isinstance(first, Sequence) and first and not isinstance(first, str):
        return model_name(first[0])
    system, name = getattr(model, "system", None), getattr(model, "model_name", None)
    if not isinstance(name, str) or not name:
        return None
    return f"{system}/{name}" if isinstance(system, str) and system else name


def setup_of(
    model: Model,
    parameters: ModelRequestParameters,
    messages: Sequence[pai.ModelMessage],
    context: RunContext[object],
    context_window: int | None,
) -> Setup:
    """Return what a request contains in addition to its messages. O(tools, instructions)."""
    parts = parameters.instruction_parts
    instructions = _latest_instructions(messages) if parts is None else [part.content for part in parts]
    schema = parameters.output_object
    texts = [*instructions, opening_text(messages), json_text(schema.json_schema) if schema else ""]
    found = context.discovered_tool_names
    tools = [
        tool for tool in parameters.function_tools if not tool.defer_loading or tool.name in found
    ] + parameters.output_tools
    return setup_with(model, texts, tools, context_window)


def setup_with(
    model: object, texts: Sequence[str], tools: Sequence[ToolDefinition], context_window: int | None
) -> Setup:
    """Return a request's setup from its instructions and tools."""
    return Setup(
        model=model_name(model),
        context_window=context_window,
        fallback_window=_window(model),
        system_prompt="\n\n".join(text for text in texts if text),
        tools_key=tuple([_tool_key(tool) for tool in tools]),
        tools=lambda: [_tool(tool) for tool in tools],
    )


def _window(model: object) -> int | None:
    """Return the window that the framework knows, from the model's profile."""
    window = getattr(model, "context_window", None)
    return window if isinstance(window, int) and window > 0 else None


def _latest_instructions(messages: Sequence[pai.ModelMessage]) -> list[str]:
    for message in reversed(messages):
        if isinstance(message, pai.ModelRequest) and message.instructions:
            return [message.instructions]
    return []


def _tool_key(tool: ToolDefinition) -> Hashable:
    return (tool.name, tool.description, json_text(tool.parameters_json_schema))


def _tool(tool: ToolDefinition) -> Json:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters_json_schema,
    }

"""A tool that looks up the past, and a guardrail that shortens tool outputs."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal, get_args

from agents import FunctionTool, ToolGuardrailFunctionOutput, ToolOutputGuardrail, ToolOutputGuardrailData
from agents.tool_context import ToolContext

from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.engine import checked_level
from compactd.integrations.frameworks.mirror import Mirror
from compactd.integrations.frameworks.openai_agents.filter import InputFilter, current

Level = Literal["observe", "light", "default", "strong"]

_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": recall.QUERY},
        "entry_ids": {"type": "array", "items": {"type": "string"}, "description": recall.ENTRY_IDS},
        "start": {"type": "integer", "description": recall.START},
    },
    "additionalProperties": False,
}


def compactd_recall() -> FunctionTool:
    """Return the tool `recall` for `Agent(tools=[…])`. With it, the model looks up what was said earlier in
    its conversation. One object serves all agents and sessions: it finds the run's conversation by compactd's
    filter.
    """
    return FunctionTool(
        name=recall.NAME,
        description=recall.DESCRIPTION,
        params_json_schema=json.loads(json.dumps(_SCHEMA)),
        on_invoke_tool=_look_up,
        strict_json_schema=False,
    )


async def _look_up(context: ToolContext[Any], arguments: str) -> str:
    mirror = _mirror(context)
    if mirror is None:
        return recall.UNREACHABLE
    return await asyncio.to_thread(mirror.recall, *_arguments(arguments))


def _arguments(text: str) -> tuple[str, list[str], int]:
    """Return what the model gave, as far as it has the right form."""
    try:
        given = json.loads(text or "{}")
    except ValueError:
        given = {"query": text}
    if not isinstance(given, dict):
        given = {"query": str(given)}
    query, ids, start = given.get("query"), given.get("entry_ids"), given.get("start")
    if isinstance(ids, str):
        ids = [ids]
    return (
        query if isinstance(query, str) else "",
        [each for each in ids if isinstance(each, str)] if isinstance(ids, list) else [],
        start if isinstance(start, int) else 0,
    )


def compactd_reduce(level: Level = "default") -> ToolOutputGuardrail[Any]:
    """Return a guardrail for `function_tool(tool_output_guardrails=[…])` that shortens a tool's long texts
    before they enter the conversation. `observe` changes nothing, and only counts what would be saved.
    """
    return ToolOutputGuardrail(guardrail_function=_Reduce(level), name="compactd_reduce")


class _Reduce:
    def __init__(self, level: Level) -> None:
        checked_level(level, get_args(Level))
        self._level = level

    async def __call__(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Return the guardrail's answer: the output as it is, or a shorter one in its place."""
        output, context = data.output, data.context
        mirror = _mirror(context)
        if not isinstance(output, str) or mirror is None:
            return ToolGuardrailFunctionOutput.allow()
        shorter = await asyncio.to_thread(self._reduced, mirror, context, output)
        if shorter == output:
            return ToolGuardrailFunctionOutput.allow()
        info = {"compactd": {"chars_before": len(output), "chars_after": len(shorter)}}
        return ToolGuardrailFunctionOutput.reject_content(shorter, info)

    def _reduced(self, mirror: Mirror, context: ToolContext[Any], output: str) -> str:
        try:
            arguments = json.loads(context.tool_arguments or "{}")
        except ValueError:
            arguments = {}
        observe = self._level == "observe"
        answer = mirror.reduce(
            context.tool_name,
            arguments if isinstance(arguments, dict) else {},
            output,
            call_id=context.tool_call_id,
            level=None if observe else self._level,
            observe=observe,
        )
        return output if answer is None else answer.content


def _mirror(context: ToolContext[Any]) -> Mirror | None:
    """Return the session of the run that calls the tool."""
    request = current.get()
    if request is not None:
        return request.mirror
    # A run that was interrupted goes on with the tool, before its first model request.
    filter_ = getattr(context.run_config, "call_model_input_filter", None)
    if isinstance(filter_, InputFilter) and filter_.options.session_id is not None:
        return filter_.options.conversation().mirror
    return None

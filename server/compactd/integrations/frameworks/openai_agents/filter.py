"""What a model request contains: the SDK's `call_model_input_filter`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from agents import Agent, Handoff
from agents.models.default_models import get_default_model
from agents.models.interface import Model
from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData, RunConfig

from compactd.client import Json
from compactd.integrations.frameworks.engine import SessionOptions, engine_of
from compactd.integrations.frameworks.history import Setup
from compactd.integrations.frameworks.openai_agents.conversation import CLIENT, Options, Request
from compactd.integrations.frameworks.openai_agents.items import frozen, is_continuation

SessionId = str | Callable[[CallModelData[Any]], str | None]

current: ContextVar[Request | None] = ContextVar("compactd_request", default=None)
"""The model request that this task makes, or made last."""

_ROUTES = ("litellm/", "any-llm/")
"""Prefixes by which the SDK chooses a client."""


def compactd_input_filter(
    session_id: SessionId | None = None,
    *,
    model: str | None = None,
    context_window: int | None = None,
    compaction: Mapping[str, Json] | None = None,
    working_dir: str | None = None,
    persist: bool = True,
    before: CallModelInputFilter | None = None,
    command: Sequence[str] | None = None,
) -> CallModelInputFilter:
    """Return a filter for `RunConfig(call_model_input_filter=…)` that keeps each model request within the
    model's window. It works with any session of the SDK's, and without one.

    Args:
        session_id: A name for the conversation, or a function that returns one from the filter's data, for
            example from your context. Default: each run is a conversation of its own, in memory only.
        model: `provider/id`. Default: as the agent's model says.
        context_window: The model's window in tokens. Default: compactd looks it up by the model's name.
        compaction: Settings of compactions, e.g. `{"keep_recent_tokens": 20_000}` (docs/settings.md).
        working_dir: The folder that the conversation is about. Default: the current folder.
        persist: False: keep the conversation in memory only.
        before: Your own filter. It runs first.
        command: The command that starts the daemon. Default: this Python's `compactd serve`.

    After an overflow, a filter cannot send the request again. `compactd_run_config` and
    `CompactdSession.run_config` can.
    """
    return InputFilter(
        *_options(session_id, model, context_window, compaction, working_dir, persist, command), before
    )


def compactd_run_config(
    base: RunConfig | Mapping[str, Any] | None = None,
    *,
    session_id: SessionId | None = None,
    model: str | None = None,
    context_window: int | None = None,
    compaction: Mapping[str, Json] | None = None,
    working_dir: str | None = None,
    persist: bool = True,
    command: Sequence[str] | None = None,
) -> RunConfig:
    """Return `base` with the filter of `compactd_input_filter`, which has the same arguments, and with models
    that send a request again, smaller, after the provider has rejected it as too large. A filter that `base`
    has runs first.
    """
    options, chooser = _options(session_id, model, context_window, compaction, working_dir, persist, command)
    return with_filter(base, options, chooser)


def _options(
    session_id: SessionId | None,
    model: str | None,
    context_window: int | None,
    compaction: Mapping[str, Json] | None,
    working_dir: str | None,
    persist: bool,
    command: Sequence[str] | None,
) -> tuple[Options, Callable[[CallModelData[Any]], str | None] | None]:
    options = Options(
        SessionOptions(
            CLIENT,
            context_window=context_window,
            compaction=None if compaction is None else dict(compaction),
            working_dir=working_dir,
            persist=persist,
        ),
        session_id if isinstance(session_id, str) else None,
        model,
        None if command is None else tuple(command),
    )
    engine_of(options.command).start_soon()
    return options, None if isinstance(session_id, str) else session_id


@dataclass(frozen=True)
class InputFilter:
    """The filter. Holds options only."""

    options: Options
    session_id: Callable[[CallModelData[Any]], str | None] | None = None
    before: CallModelInputFilter | None = None
    model: str | None = None
    """The run's model, if it overrides the agents'."""

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return what the model request shall contain."""
        if self.before is not None:
            given = self.before(data)
            given = await given if inspect.isawaitable(given) else given
            data = replace(data, model_data=given)
        asked = data
        engine = engine_of(self.options.command)
        request = await asyncio.to_thread(engine.attempt, lambda _: self._request(asked))
        current.set(request)
        if request is None:
            return asked.model_data
        return ModelInputData(input=list(request.sent), instructions=asked.model_data.instructions)

    def _request(self, data: CallModelData[Any]) -> Request | None:
        items = list(data.model_data.input)
        if is_continuation(items):
            return None
        options = self.options
        if self.session_id is not None:
            options = replace(options, session_id=self.session_id(data))
        last = current.get()
        if options.session_id is None and last is not None and last.conversation.has(items):
            conversation = last.conversation
        else:
            conversation = options.conversation()
        tools, handoffs = conversation.tools_of(data.agent.name) or (
            getattr(data.agent, "tools", ()),
            getattr(data.agent, "handoffs", ()),
        )
        setup = Setup(
            model=options.model or model_name(self.model or getattr(data.agent, "model", None)),
            system_prompt=data.model_data.instructions or "",
            tools_key=tuple([_tool_key(tool) for tool in (*tools, *handoffs)]),
            tools=lambda: [_tool(tool) for tool in (*tools, *handoffs)],
        )
        request = conversation.request(items, setup, data.agent.name)
        request.prepare()
        return request


def model_name(model: Any) -> str | None:
    """Return a model as `provider/id`; None if it does not say. An id alone is OpenAI's."""
    if model is None:
        model = get_default_model()
    if isinstance(model, Model):
        model = getattr(model, "model", None)
    if not isinstance(model, str) or not model:
        return None
    for route in _ROUTES:
        model = model.removeprefix(route)
    return model if "/" in model else f"openai/{model}"


def _tool_key(tool: Any) -> object:
    named = _tool(tool)
    return (named["name"], named.get("description"), frozen(named.get("input_schema")))


def _tool(tool: Any) -> dict[str, Any]:
    """Return a tool, or a handoff, which the model sees as a tool."""
    if isinstance(tool, Agent):
        description = Handoff.default_tool_description(tool)
        return {"name": Handoff.default_tool_name(tool), "description": description, "input_schema": {}}
    if isinstance(tool, Handoff):
        schema = tool.input_json_schema
        return {"name": tool.tool_name, "description": tool.tool_description, "input_schema": schema}
    named: dict[str, Any] = {"name": str(getattr(tool, "name", type(tool).__name__))}
    if isinstance(words := getattr(tool, "description", None), str):
        named["description"] = words
    if isinstance(form := getattr(tool, "params_json_schema", None), dict):
        named["input_schema"] = form
    return named


def with_filter(
    base: RunConfig | Mapping[str, Any] | None,
    options: Options,
    session_id: Callable[[CallModelData[Any]], str | None] | None = None,
) -> RunConfig:
    """Return a run's settings with compactd's filter, and with models that send a request again after an
    overflow.
    """
    from compactd.integrations.frameworks.openai_agents.model import compactd_model, compactd_provider

    config = base if isinstance(base, RunConfig) else RunConfig(**(base or {}))
    model = config.model
    before = config.call_model_input_filter
    own = InputFilter(options, session_id, before, None if model is None else model_name(model))
    return replace(
        config,
        call_model_input_filter=own,
        model_provider=compactd_provider(config.model_provider),
        model=compactd_model(model) if isinstance(model, Model) else model,
    )

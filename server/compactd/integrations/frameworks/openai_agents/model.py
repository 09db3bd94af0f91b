"""Models that send a request again, smaller, after the provider has rejected it as too large."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agents import ModelSettings
from agents.items import ModelResponse, TResponseStreamEvent
from agents.models.interface import Model, ModelProvider
from msgspec import Raw

from compactd.integrations.frameworks.openai_agents.conversation import Request
from compactd.integrations.frameworks.openai_agents.filter import current
from compactd.integrations.frameworks.openai_agents.items import Item
from compactd.protocol.messages import NULL
from compactd.protocol.wire import RequestError

_OPENING = frozenset({"response.created", "response.queued", "response.in_progress", "keepalive"})
"""Events of a stream before the model's answer begins."""


def compactd_model(model: Model) -> Model:
    """Return a model for `Agent(model=…)` that does what `model` does. Its requests that the provider rejects
    as too large are compacted and sent again, and what the provider counted is kept, if compactd's filter
    chose their input.
    """
    return model if isinstance(model, CompactdModel) else CompactdModel(model)


def compactd_provider(provider: ModelProvider) -> ModelProvider:
    """Return a provider for `RunConfig(model_provider=…)` whose models are as `compactd_model` makes them."""
    return provider if isinstance(provider, CompactdProvider) else CompactdProvider(provider)


class CompactdProvider(ModelProvider):
    """A provider of `CompactdModel`s."""

    def __init__(self, provider: ModelProvider) -> None:
        """`provider`: makes the models."""
        self.provider = provider

    def get_model(self, model_name: str | None) -> Model:
        """Return the provider's model."""
        return compactd_model(self.provider.get_model(model_name))

    async def aclose(self) -> None:
        """Release what the provider holds."""
        await self.provider.aclose()


class CompactdModel(Model):
    """A model in front of another. What it does not do itself, the other does."""

    def __init__(self, model: Model) -> None:
        """`model`: sends the requests."""
        self.inner = model

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Item],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        *rest: Any,
        **named: Any,
    ) -> ModelResponse:
        """Send the request; after an overflow, smaller."""
        request = _request(input, tools, handoffs, named)
        while True:
            try:
                response = await self.inner.get_response(
                    system_instructions, input, model_settings, tools, output_schema, handoffs, *rest, **named
                )
            except Exception as error:
                smaller = None if request is None else await asyncio.to_thread(request.failed, error)
                if request is None or smaller is None:
                    raise
                input, model_settings = smaller, _limited(model_settings, request.max_tokens)
                continue
            if request is not None:
                request.answered(_usage(response.usage))
            return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Item],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        *rest: Any,
        **named: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Send the request; after an overflow, smaller, unless a part of the answer was already passed on."""
        request = _request(input, tools, handoffs, named)
        while True:
            stream = self.inner.stream_response(
                system_instructions, input, model_settings, tools, output_schema, handoffs, *rest, **named
            )
            smaller: list[Item] | None = None
            opening: list[TResponseStreamEvent] = []
            has_begun = request is None
            try:
                async with aclosing(stream):  # type: ignore[type-var]  # models return generators
                    async for event in stream:
                        kind = getattr(event, "type", None)
                        if not has_begun and kind in _OPENING:
                            opening.append(event)
                            continue
                        if not has_begun and request is not None and (error := _error_in(event)) is not None:
                            smaller = await asyncio.to_thread(request.rejected, error)
                            if smaller is not None:
                                break
                        has_begun = True
                        for early in opening:
                            yield early
                        opening.clear()
                        if request is not None and kind == "response.completed":
                            answer = getattr(event, "response", None)
                            request.answered(_usage(getattr(answer, "usage", None)))
                        yield event
            except Exception as error:
                if has_begun or request is None:
                    raise
                smaller = await asyncio.to_thread(request.failed, error)
                if smaller is None:
                    raise
            if smaller is None or request is None:
                for early in opening:
                    yield early
                return
            input, model_settings = smaller, _limited(model_settings, request.max_tokens)

    async def close(self) -> None:
        """Release what the model holds."""
        await self.inner.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.inner._cleanup_on_run_end(owner)

    def get_retry_advice(self, request: Any) -> Any:
        """Return the model's own advice."""
        return self.inner.get_retry_advice(request)


def _request(
    items: str | list[Item], tools: list[Any], handoffs: list[Any], named: Mapping[str, Any]
) -> Request | None:
    """Return what compactd's filter prepared for this model call, if it did."""
    request = current.get()
    if request is None or named.get("previous_response_id") or named.get("conversation_id"):
        return None
    if not request.is_of(items):
        return None
    request.conversation.note_tools(request.agent, tools, handoffs)
    return request


def _limited(settings: ModelSettings, max_tokens: int | None) -> ModelSettings:
    if max_tokens is None or (settings.max_tokens is not None and settings.max_tokens <= max_tokens):
        return settings
    return replace(settings, max_tokens=max_tokens)


def _error_in(event: Any) -> RequestError | None:
    """Return the provider's error, if a stream's event is one."""
    match getattr(event, "type", None):
        case "response.failed":
            error = getattr(event.response, "error", None)
        case "error":
            error = event
        case _:
            return None
    code, message = getattr(error, "code", None), getattr(error, "message", None)
    return RequestError(status=None, code=code, message=str(message or ""), body=Raw(bytes(NULL)))


def _usage(usage: Any) -> dict[str, Any] | None:
    """Return the SDK's or the provider's report in the form of the Responses API."""
    if usage is None or not getattr(usage, "input_tokens", 0):
        return None
    cached = getattr(getattr(usage, "input_tokens_details", None), "cached_tokens", 0)
    reasoning = getattr(getattr(usage, "output_tokens_details", None), "reasoning_tokens", 0)
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": cached or 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning or 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }

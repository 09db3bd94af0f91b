"""Read messages and render requests in a message format that is chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from msgspec import Raw

from compactd.core.history.projection import Projection
from compactd.formats.messages import neutral
from compactd.formats.messages.neutral_out import encode_message, render_neutral
from compactd.formats.messages.rendering import Rendered
from compactd.formats.messages.tools import encode_tool
from compactd.protocol.errors import FormatNotSupported
from compactd.protocol.messages import Message, Tool

__all__ = ["READABLE", "RENDERABLE", "Rendered", "read_messages", "render"]

ReadMessage = Callable[[Raw, str], Message]
"""A function that reads one message. Its arguments are the message and the message's path, for errors."""

READABLE = ("neutral", "openai", "openai_responses", "anthropic", "gemini")
"""The formats from which messages can be read."""

RENDERABLE = ("neutral", "openai", "openai_responses", "anthropic", "gemini")
"""The formats in which a request can be rendered."""


def read_messages(
    raws: Sequence[Raw], format: str | None = None, path: str = "$.messages"
) -> list[tuple[Message, Raw]]:
    """Return each of `raws` as (message, its bytes in neutral form), in order. O(bytes).

    `format` is the format of `raws`, by default neutral. A neutral message keeps the bytes that the client
    sent. Raise `InvalidParams` with the path of the bad field, which begins with `path`; `LimitExceeded` for
    too deep nesting; and `FormatNotSupported` with the list of formats.
    """
    if format in (None, "neutral"):
        return neutral.read_messages(raws, path)
    read_message = message_reader(format)
    read = []
    for index, raw in enumerate(raws):
        message = read_message(raw, f"{path}[{index}]")
        read.append((message, Raw(encode_message(message))))
    return read


def message_reader(format: str) -> ReadMessage:
    """Return the function that reads one message in the format. Raise `FormatNotSupported` with the list of
    formats.
    """
    if format == "neutral":
        return neutral.decode_message
    if format not in READABLE:
        raise _unsupported_format(format, READABLE)
    # Other formats are imported on first use, because most clients never need them.
    read: ReadMessage = import_module(f"compactd.formats.messages.{format}").read_message
    return read


def render(
    format: str | None,
    system: str | None,
    tools: Sequence[Tool],
    projection: Projection,
    model: str | None = None,
    *,
    with_reasoning: bool = False,
) -> Rendered:
    """Return the next request, including `system` prompt and `tools`, in the format `format` (by default
    neutral).

    In `openai`, the system prompt is the first message. `model` (`provider/id`, or the id alone) is the model
    of the request. If it is given, signed blocks of other providers are left out, and the rules for its
    generation of models are applied. If not, only the rules that all models of the provider share are
    applied. Set `with_reasoning` if the endpoint uses OpenAI's chat format and wants its models' thinking
    back (`core/models/lookup.py`). Raise `FormatNotSupported` with the list of formats. O(bytes).
    """
    match format or "neutral":
        case "neutral":
            return Rendered(
                system=system,
                messages=render_neutral(projection),
                tools=[encode_tool(tool) for tool in tools] or None,
            )
        case "openai":
            from compactd.formats.messages import openai_request

            return openai_request.render(system, tools, projection, model, with_reasoning=with_reasoning)
        case "openai_responses":
            from compactd.formats.messages import openai_responses_request

            return openai_responses_request.render(system, tools, projection, model)
        case "anthropic":
            from compactd.formats.messages import anthropic_request

            return anthropic_request.render(system, tools, projection, model)
        case "gemini":
            from compactd.formats.messages import gemini_request

            return gemini_request.render(system, tools, projection, model)
        case _:
            raise _unsupported_format(format, RENDERABLE)


def _unsupported_format(format: str | None, supported: Sequence[str]) -> FormatNotSupported:
    names = ", ".join(supported)
    return FormatNotSupported(
        f"the format {format!r} is not supported here; use one of {names}",
        format=format,
        supported=list(supported),
    )

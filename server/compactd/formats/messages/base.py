"""The message shapes by name: read into ours, and rendered as a request."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.core.history.projection import Projection
from compactd.formats.messages import neutral
from compactd.formats.messages.rendering import Rendered
from compactd.formats.messages.tools import encode_tool
from compactd.protocol.errors import FormatNotSupported
from compactd.protocol.messages import Message, Tool

__all__ = ["READABLE", "RENDERABLE", "Rendered", "read_messages", "render"]

READABLE = ("neutral", "openai", "openai_responses", "anthropic", "gemini")
"""Shapes that messages may come in."""

RENDERABLE = ("neutral", "openai", "openai_responses", "anthropic", "gemini")
"""Shapes that a request can be given in."""


def read_messages(
    raws: Sequence[Raw], format: str | None = None, path: str = "$.messages"
) -> list[tuple[Message, Raw]]:
    """Each of `raws` as (message, its bytes in neutral shape), in order, one for one.

    `format` is the shape they come in, by default ours; then the bytes are the client's own. Raises
    `InvalidParams` with the path of the bad field, `LimitExceeded` for nesting, `FormatNotSupported` with the
    list of those that are. Cost: O(bytes).
    """
    match format or "neutral":
        case "neutral":
            return neutral.read_messages(raws, path)
        # The other shapes are imported at the first need: a daemon answers before most clients ask for one.
        case "openai":
            from compactd.formats.messages import openai

            return openai.read_messages(raws, path)
        case "openai_responses":
            from compactd.formats.messages import openai_responses

            return openai_responses.read_messages(raws, path)
        case "anthropic":
            from compactd.formats.messages import anthropic

            return anthropic.read_messages(raws, path)
        case "gemini":
            from compactd.formats.messages import gemini

            return gemini.read_messages(raws, path)
        case _:
            raise _unsupported(format, READABLE)


def render(
    format: str | None,
    system: str | None,
    tools: Sequence[Tool],
    projection: Projection,
    model: str | None = None,
    *,
    with_reasoning: bool = False,
) -> Rendered:
    """The next request, `system` prompt and `tools` included, in the shape `format` (by default ours).

    `openai`: the system prompt is the first message. `model` (`provider/id`, or the id alone) is the one that
    the request is for: what another provider's signed is left out, and rules of one generation are kept;
    without it, only the rules that all models of the provider share. `with_reasoning`: the endpoint speaks
    OpenAI's chat shape and wants its models' thinking back (`core/models/lookup.py`).
    Raises `FormatNotSupported` with the list of those that are. Cost: O(bytes).
    """
    match format or "neutral":
        case "neutral":
            return Rendered(
                system=system,
                messages=neutral.render_neutral(projection),
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
            raise _unsupported(format, RENDERABLE)


def _unsupported(format: str | None, supported: Sequence[str]) -> FormatNotSupported:
    names = ", ".join(supported)
    return FormatNotSupported(
        f"the format {format!r} is not supported here; use one of {names}",
        format=format,
        supported=list(supported),
    )

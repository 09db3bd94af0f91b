"""The message shapes by name: read into ours, and rendered as a request."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.core.projection import Projection
from compactd.errors import FormatNotSupported, InvalidParams
from compactd.formats import neutral
from compactd.formats.rendering import Rendered
from compactd.formats.shapes import refuse_other_shape
from compactd.formats.tools import encode_tool
from compactd.messages import Message, Tool

__all__ = ["READABLE", "RENDERABLE", "Rendered", "read_given", "read_messages", "render"]

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
            from compactd.formats import openai

            return openai.read_messages(raws, path)
        case "openai_responses":
            from compactd.formats import openai_responses

            return openai_responses.read_messages(raws, path)
        case "anthropic":
            from compactd.formats import anthropic

            return anthropic.read_messages(raws, path)
        case "gemini":
            from compactd.formats import gemini

            return gemini.read_messages(raws, path)
        case _:
            raise _unsupported(format, READABLE)


def read_given(
    raws: Sequence[Raw], format: str | None = None, path: str = "$.messages"
) -> list[tuple[Message, Raw]]:
    """As `read_messages`, for messages of a client: without `format`, one in a provider's shape is refused.

    compactd's own shape keeps blocks that it does not know and passes over unknown fields, so a client that
    leaves `format` out would lose its provider's tool calls. Raises `InvalidParams`, which names the `format`
    to give. A message from which nothing is lost passes, and so does everything with `format: "neutral"`.
    """
    if format is not None:
        return read_messages(raws, format, path)
    try:
        read = neutral.read_messages(raws, path)
    except InvalidParams:
        for index, raw in enumerate(raws):
            refuse_other_shape(raw, f"{path}[{index}]")
        raise
    for index, (message, own) in enumerate(read):
        refuse_other_shape(own, f"{path}[{index}]", message)
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
    """The next request, `system` prompt and `tools` included, in the shape `format` (by default ours).

    `openai`: the system prompt is the first message. `model` (`provider/id`, or the id alone) is the one that
    the request is for: what another provider's signed is left out, and rules of one generation are kept;
    without it, only the rules that all models of the provider share. `with_reasoning`: the endpoint speaks
    OpenAI's chat shape and wants its models' thinking back (`core/lookup.py`). Raises `FormatNotSupported`
    with the list of those that are. Cost: O(bytes).
    """
    match format or "neutral":
        case "neutral":
            return Rendered(
                system=system,
                messages=neutral.render_neutral(projection),
                tools=[encode_tool(tool) for tool in tools] or None,
            )
        case "openai":
            from compactd.formats import openai_request

            return openai_request.render(system, tools, projection, model, with_reasoning=with_reasoning)
        case "openai_responses":
            from compactd.formats import openai_responses_request

            return openai_responses_request.render(system, tools, projection, model)
        case "anthropic":
            from compactd.formats import anthropic_request

            return anthropic_request.render(system, tools, projection, model)
        case "gemini":
            from compactd.formats import gemini_request

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

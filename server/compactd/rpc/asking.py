"""From the wire to the inside: what our methods' params ask of sessions."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.core.asked import CompactRequest
from compactd.core.intake import New, Report
from compactd.core.settings import GivenSettings, validate
from compactd.core.usage import normalise
from compactd.errors import InvalidParams
from compactd.formats.tools import decode_tools, encode_tool
from compactd.messages import Message, Tool
from compactd.rpc import wire


def model_of(model: str | wire.ModelRef | None) -> tuple[str | None, str | None]:
    """(name, base URL) of the model."""
    if model is None or isinstance(model, str):
        if model is not None and not model.strip():
            raise InvalidParams("model is empty; leave it out, or name one", "$.model")
        return model, None
    name = model.id if model.provider is None else f"{model.provider}/{model.id}"
    return name, model.base_url


def tools_of(raws: tuple[Raw, ...] | None) -> tuple[tuple[Tool, Raw], ...] | None:
    """The tools given, each with its bytes in our shape; None where none were."""
    if raws is None:
        return None
    tools = [tool for index, raw in enumerate(raws) for tool in decode_tools(raw, f"$.tools[{index}]")]
    return tuple((tool, encode_tool(tool)) for tool in tools)


def new(
    params: wire.AppendParams | wire.EndParams, read: Sequence[tuple[Message, Raw]], tokens: Sequence[int]
) -> New:
    """What is to be appended; `tokens` are of each message read."""
    own: list[Report | None] = [
        None if message.usage is None else normalise(message.usage, f"$.messages[{index}].usage")
        for index, (message, _) in enumerate(read)
    ]
    files = params.files
    return New(
        read=read,
        tokens=tokens,
        own_reports=own if any(report is not None for report in own) else (),
        report=None if params.usage == wire.NULL else normalise(params.usage, "$.usage"),
        epoch=params.epoch,
        stop_reason=params.stop_reason if isinstance(params, wire.EndParams) else None,
        files_read=files.read if files else (),
        files_modified=files.modified if files else (),
    )


def settings_of(given: GivenSettings | None) -> GivenSettings | None:
    """The settings given, if each is in its range; else `InvalidParams` with its path."""
    return None if given is None else validate(given)


def compact_request(params: wire.CompactParams) -> CompactRequest:
    """The compaction asked for. Raises `InvalidParams` for several budgets, or one that is not above 0."""
    keep_messages = params.keep_messages if params.keep_messages is not None else params.preserve_count
    budgets = {
        "keep_recent": params.keep_recent,
        "keep_messages": keep_messages,
        "target_tokens": params.target_tokens,
    }
    given = [name for name, value in budgets.items() if value is not None]
    if len(given) > 1:
        raise InvalidParams(f"{' and '.join(given)} exclude each other; give one budget", f"$.{given[1]}")
    for name in given:
        if budgets[name] is not None and not 0 < (budgets[name] or 0) <= 2**53:
            raise InvalidParams(f"{name} is {budgets[name]}; it must be above 0", f"$.{name}")
    return CompactRequest(
        trigger="manual",
        keep_recent=params.keep_recent,
        keep_messages=keep_messages,
        target_tokens=params.target_tokens,
        instructions=params.instructions,
        strategy=params.strategy,
        may_ask_model=params.model is not None,
        force=params.force is True,
    )

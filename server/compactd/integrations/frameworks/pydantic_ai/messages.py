"""Maps a message history of Pydantic AI to a session's messages. `shown.py` maps a view of them back.

One `ModelRequest` can hold several parts: a prompt, the results of several tools, feedback. Each of these is
a message of the session (a *unit*). A `ModelResponse` is one unit. Some parts are no units, because they are
not said in the conversation but set it up: the system prompt, changes of instructions and tools. They always
stay.

All functions are pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, Final

from pydantic_ai import messages as pai

from compactd.client import Json
from compactd.integrations.frameworks.history import History, NeutralMessage
from compactd.integrations.frameworks.pydantic_ai.blocks import (
    json_text,
    opaque,
    response_blocks,
    result_content,
    user_blocks,
)

WHOLE: Final = -1
"""In place of a part's index: all of a `ModelResponse`."""
_SETUP: Final = (
    pai.InstructionBaselinePart,
    pai.InstructionDeltaPart,
    pai.ToolAvailabilityDeltaPart,
    pai.CapabilityLoadDeltaPart,
    pai.ModelSettingsDeltaPart,
)
"""Parts that set a conversation up. Later parts of their kind are read as changes of them."""
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
_NOT_REPORTED: Final = frozenset((None, "function", "test"))
"""Providers of `FunctionModel` and `TestModel`, which only estimate what they report."""


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a history, in the order in which a provider is sent them: results before other parts."""

    messages: Sequence[pai.ModelMessage]
    places: Sequence[tuple[int, int]]
    """For each unit, the message that it is in, and the part of it, or `WHOLE`."""
    keys: Sequence[Hashable]

    def history(self) -> History:
        """Return what a mirror reads."""
        return History(self.keys, self.encode)

    def encode(self, index: int) -> NeutralMessage:
        """Return one unit in the neutral form. O(its size)."""
        message, part = self.places[index]
        host = self.messages[message]
        if isinstance(host, pai.ModelResponse):
            return _response(host)
        return _request_part(host.parts[part], _is_from_tools(self.messages, message))


def units_of(messages: Sequence[pai.ModelMessage]) -> Units:
    """Return the units of `messages`. Messages of unknown classes have none. O(parts)."""
    places, keys = _from(messages, 0)
    return Units(messages, places, keys)


def continued(units: Units, messages: Sequence[pai.ModelMessage]) -> Units | None:
    """Return the units of a history that continues the one of `units`: the same objects, then an answer. None
    for any other history. O(messages) comparisons.
    """
    count = len(units.messages)
    if not 0 < count < len(messages) or not isinstance(messages[count], pai.ModelResponse):
        return None
    if not all(map(is_, units.messages, messages)):
        return None
    places, keys = _from(messages, count)
    return Units(messages, [*units.places, *places], [*units.keys, *keys])


def _from(messages: Sequence[pai.ModelMessage], start: int) -> tuple[list[tuple[int, int]], list[Hashable]]:
    """Return (the places, the keys) of the units in the messages from index `start` on."""
    places: list[tuple[int, int]] = []
    keys: list[Hashable] = []
    waiting: list[tuple[int, int, Hashable]] = []
    """Parts of requests that follow each other: they are sent as one, and its results come first."""
    is_first = start == 0
    for at in range(start, len(messages)):
        message = messages[at]
        if isinstance(message, pai.ModelResponse):
            for *place, key in waiting:
                places.append((place[0], place[1]))
                keys.append(key)
            waiting.clear()
            response_key = tuple([_answer_key(part) for part in message.parts])
            if any(response_key):
                places.append((at, WHOLE))
                keys.append(response_key)
        elif isinstance(message, pai.ModelRequest):
            opening = opening_of(message) if is_first else 0
            is_first = False
            for index, part in enumerate(message.parts):
                if isinstance(part, pai.ToolReturnPart):
                    places.append((at, index))
                    keys.append(_result_key(part))
                elif index < opening or is_setup(part):
                    continue
                elif _is_bound_retry(part):
                    places.append((at, index))
                    keys.append(("retry", json_text(part)))
                else:
                    waiting.append((at, index, _prompt_key(messages, at, part)))
    for *place, key in waiting:
        places.append((place[0], place[1]))
        keys.append(key)
    return places, keys


def is_setup(part: object) -> bool:
    """Return whether a part of a request is no unit: it sets the conversation up, or holds for one request
    only.
    """
    if isinstance(part, pai.SystemPromptPart):
        return part.scope == "request" or part.context_id is not None
    return isinstance(part, _SETUP)


def opening_text(messages: Sequence[pai.ModelMessage]) -> str:
    """Return the system prompt that the first request opens with. O(its parts)."""
    at = first_request(messages)
    first = None if at is None else messages[at]
    opening = first.parts[: opening_of(first)] if isinstance(first, pai.ModelRequest) else ()
    return "\n\n".join(part.content for part in opening if isinstance(part, pai.SystemPromptPart))


# --- keys ---------------------------------------------------------------------------------------------


def _answer_key(part: object) -> Hashable:
    """Return a value that is equal as long as a part of an answer says the same; an empty one if it says
    nothing.
    """
    if isinstance(part, pai.ToolCallPart):
        return (part.tool_call_id, part.tool_name, _args_key(part.args))
    if isinstance(part, pai.TextPart):
        return part.content
    if isinstance(part, pai.ThinkingPart):
        return (part.content, part.signature) if part.content or part.signature else ()
    if isinstance(part, pai.FilePart):
        return (part.content.media_type, part.content.data)
    if isinstance(part, pai.SpeechPart):
        return ("speech", part.content) if part.content else ()
    return (type(part).__name__, json_text(part))


def _args_key(args: str | dict[str, Any] | None) -> Hashable:
    if args is None or isinstance(args, str):
        return args
    # Most arguments are flat. A tuple of them takes a quarter of the time of a text.
    return tuple(args.items()) if _SCALARS.issuperset(map(type, args.values())) else json_text(args)


def _result_key(part: pai.ToolReturnPart) -> Hashable:
    content = part.content
    if isinstance(content, str):
        return (part.tool_call_id, content, part.outcome)
    files = tuple([_item_key(file) for file in part.files])
    return (part.tool_call_id, part.model_response_str(wrap_if_error=False), part.outcome, files)


def _prompt_key(messages: Sequence[pai.ModelMessage], at: int, part: object) -> Hashable:
    if isinstance(part, pai.UserPromptPart):
        content = part.content
        said: Hashable = content if isinstance(content, str) else tuple([_item_key(item) for item in content])
        return ("user", said, _is_from_tools(messages, at))
    if isinstance(part, pai.SystemPromptPart):
        return ("system", part.content)
    if isinstance(part, pai.CompactionPart):
        return ("summary", part.content)
    return (type(part).__name__, json_text(part))


def _item_key(item: object) -> Hashable:
    match item:
        case str():
            return item
        case pai.BinaryContent():
            return (item.media_type, item.data)
        case pai.FileUrl():
            return (type(item).__name__, item.url)
        case pai.TextContent():
            return ("text", item.content)
        case _:
            return (type(item).__name__, json_text(item))


# --- the neutral form ---------------------------------------------------------------------------------


def _response(message: pai.ModelResponse) -> NeutralMessage:
    neutral: NeutralMessage = {"role": "assistant", "content": response_blocks(message)}
    if any(isinstance(part, pai.LoadCapabilityCallPart) for part in message.parts):
        neutral["meta"] = {"pinned": True}
    usage = _usage(message)
    if usage:
        neutral["usage"] = usage
    return neutral


def _usage(message: pai.ModelResponse) -> dict[str, Json] | None:
    """Return the provider's report. Its input includes what was read from and written to a cache."""
    given = message.usage
    if message.provider_name in _NOT_REPORTED or not given.has_values():
        return None
    read, write = given.cache_read_tokens, given.cache_write_tokens
    usage: dict[str, Json] = {
        "input_tokens": max(0, given.input_tokens - read - write),
        "output_tokens": given.output_tokens,
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "cache_write_1h_tokens": given.cache_write_1h_tokens,
        "reasoning_tokens": given.details.get("reasoning_tokens", 0),
    }
    own = (message.metadata or {}).get("__pydantic_ai__")
    size = own.get("context_input_tokens") if isinstance(own, dict) else None
    if isinstance(size, int):
        usage["context_tokens"] = size
    return usage


def _request_part(part: object, is_from_tools: bool) -> NeutralMessage:
    match part:
        case pai.ToolReturnPart():
            result: dict[str, Json] = {
                "type": "tool_result",
                "call_id": part.tool_call_id,
                "name": part.tool_name,
                "content": result_content(part),
            }
            if part.outcome in pai.ERROR_OUTCOMES:
                result["is_error"] = True
            if isinstance(part, pai.LoadCapabilityReturnPart):
                return {"role": "tool", "content": [result], "meta": {"pinned": True}}
            return {"role": "tool", "content": [result]}
        case pai.UserPromptPart():
            blocks: Json = user_blocks(part.content) or [{"type": "text", "text": ""}]
            if is_from_tools:
                return {"role": "user", "content": blocks, "meta": _others("tool")}
            return {"role": "user", "content": blocks}
        case pai.SystemPromptPart():
            return {"role": "system", "content": [{"type": "text", "text": part.content}]}
        case pai.RetryFeedbackPart():
            return _note(part.model_response(), "notification")
        case pai.CompactionPart():
            return _note(part.content or "", "summary")
        case pai.SpeechPart():
            return {"role": "user", "content": [{"type": "text", "text": part.content or ""}]}
    text, call_id = _retry(part)
    if call_id is not None:
        error: Json = {"type": "tool_result", "call_id": call_id, "content": text or "", "is_error": True}
        return {"role": "tool", "content": [error]}
    if text is not None:
        return _note(text, "notification")
    return {"role": "user", "content": [opaque(part)], "meta": _others("unknown")}


def _note(text: str, author: str) -> NeutralMessage:
    return {"role": "user", "content": [{"type": "text", "text": text}], "meta": _others(author)}


def _others(author: str) -> dict[str, Json]:
    """Say that no person wrote a message of role `user`."""
    return {"author": author, "synthetic": True}


def _retry(part: object) -> tuple[str | None, str | None]:
    """Return the text of a deprecated `RetryPromptPart`, and the call that it answers. The class is not named
    here, because the framework warns if it is.
    """
    if getattr(part, "part_kind", None) != "retry-prompt":
        return None, None
    respond = getattr(part, "model_response", None)
    text = respond() if callable(respond) else ""
    return text, getattr(part, "tool_call_id", None) if getattr(part, "tool_name", None) else None


def _is_bound_retry(part: object) -> bool:
    return getattr(part, "part_kind", None) == "retry-prompt" and bool(getattr(part, "tool_name", None))


def _is_from_tools(messages: Sequence[pai.ModelMessage], at: int) -> bool:
    """Return whether the prompts in a request may come from a tool: the framework puts what a tool returned
    as `ToolReturn(content=…)` into a prompt next to its result. A request that begins a run holds the user's
    own.
    """
    message = messages[at]
    if not any(isinstance(part, pai.ToolReturnPart) for part in message.parts):
        return False
    before = messages[at - 1] if at else None
    return before is None or message.run_id is None or before.run_id == message.run_id


def opening_of(request: pai.ModelRequest) -> int:
    """Return how many parts of the first request are the system prompt."""
    count = 0
    for part in request.parts:
        if not isinstance(part, pai.SystemPromptPart) or part.scope == "request":
            break
        count += 1
    return count


def first_request(messages: Sequence[pai.ModelMessage]) -> int | None:
    return next((at for at, message in enumerate(messages) if isinstance(message, pai.ModelRequest)), None)

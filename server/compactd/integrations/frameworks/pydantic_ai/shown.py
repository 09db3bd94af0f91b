"""Maps a view of a session back to a message history of Pydantic AI. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from pydantic_ai import messages as pai

from compactd.client import Json
from compactd.integrations.frameworks.history import ShownMessage
from compactd.integrations.frameworks.pydantic_ai.blocks import (
    Block,
    json_text,
    response_part_blocks,
    user_blocks,
)
from compactd.integrations.frameworks.pydantic_ai.messages import (
    WHOLE,
    Units,
    first_request,
    is_setup,
    opening_of,
)

MARK: Final = "compactd"
"""The key in the metadata of a `CompactionPart` that compactd wrote."""

_CHANGES: Final = (pai.InstructionBaselinePart, pai.InstructionDeltaPart)
"""Parts that `carried_changes` sees to."""

Part = pai.ModelRequestPart | pai.ModelResponse | None
"""What the view shows in place of a unit; None if it shows the unit itself."""
Kept = Mapping[int, Mapping[int, Part]]
"""The units that stay: message -> part -> what is shown."""


def shown_history(
    units: Units, items: Sequence[int | ShownMessage], *, conversation_id: str | None = None
) -> list[pai.ModelMessage]:
    """Return the history that says what the view's `items` say. Messages and parts that stay as they are, are
    the objects of `units.messages`. Summaries are `CompactionPart`s in requests of their own. O(parts).
    """
    kept: dict[int, dict[int, Part]] = {}
    written: list[tuple[int, pai.ModelMessage]] = []
    last = -1
    for item in items:
        if isinstance(item, int):
            message, part = units.places[item]
            kept.setdefault(message, {})[part] = None
        elif item.index is not None:
            message, part = units.places[item.index]
            kept.setdefault(message, {})[part] = _changed(units, item.index, item)
        else:
            new = _written(item, conversation_id)
            if new is not None:
                written.append((last, new))
            continue
        last = max(last, message)
    own: dict[int, set[int]] = {}
    for message, part in units.places:
        own.setdefault(message, set()).add(part)
    alone = _without_units(units, own, kept)
    dropped = set(range(len(units.messages))) - kept.keys() - alone
    history: list[pai.ModelMessage] = [new for at, new in written if at == -1]
    first = first_request(units.messages)
    first_at: int | None = None
    for at in sorted(kept.keys() | alone):
        if at == first:
            first_at = len(history)
        history.append(_rest(units.messages[at], own[at], kept[at]) if at in kept else units.messages[at])
        history.extend(new for after, new in written if after == at)
    if written and written[0][0] == -1:
        carried = [*_taken_opening(history, first_at), *carried_parts(units.messages, dropped)]
    else:
        carried = carried_parts(units.messages, dropped)
    head = history[0] if history else None
    if carried and isinstance(head, pai.ModelRequest):
        history[0] = replace(head, parts=[*carried, *head.parts])
    elif carried:
        history.insert(0, pai.ModelRequest(parts=carried, conversation_id=conversation_id))
    return _with_changes(history, carried_changes(units.messages, dropped))


def _with_changes(
    history: list[pai.ModelMessage], changes: Sequence[pai.InstructionDeltaPart]
) -> list[pai.ModelMessage]:
    """Add changes of instructions where the first requests end. Before a summary they would not count."""
    if not changes:
        return history
    count = next(
        (at for at, message in enumerate(history) if not isinstance(message, pai.ModelRequest)), len(history)
    )
    last = history[count - 1] if count else None
    if not isinstance(last, pai.ModelRequest):
        return [pai.ModelRequest(parts=list(changes)), *history]
    return [*history[: count - 1], replace(last, parts=[*last.parts, *changes]), *history[count:]]


def carried_changes(
    messages: Sequence[pai.ModelMessage], dropped: set[int]
) -> list[pai.InstructionDeltaPart]:
    """Return the changes of instructions in the messages `dropped` that are still in force. O(parts)."""
    newest: dict[str, tuple[bool, pai.InstructionDeltaPart]] = {}
    for at, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, pai.InstructionBaselinePart):
                for block in part.instructions:
                    newest.pop(str(block.id), None)
            elif isinstance(part, pai.InstructionDeltaPart):
                newest[str(part.id)] = (at in dropped, part)
    return [part for is_dropped, part in newest.values() if is_dropped]


def carried_parts(messages: Sequence[pai.ModelMessage], dropped: set[int]) -> list[pai.ModelRequestPart]:
    """Return the parts of the messages `dropped` that a shorter history still needs at its beginning: the
    system prompt, and what sets the conversation up. O(parts of these messages).
    """
    first = first_request(messages)
    carried: list[pai.ModelRequestPart] = []
    for at in sorted(dropped):
        message = messages[at]
        if isinstance(message, pai.ModelRequest):
            opening = opening_of(message) if at == first else 0
            for index, part in enumerate(message.parts):
                passes = isinstance(part, pai.SystemPromptPart) and part.scope == "request"
                if index < opening or (is_setup(part) and not passes and not isinstance(part, _CHANGES)):
                    carried.append(part)
        found = _discovered(message)
        if found:
            carried.append(pai.ToolAvailabilityDeltaPart(tools_added=found))
    return carried


def _taken_opening(history: list[pai.ModelMessage], at: int | None) -> list[pai.ModelRequestPart]:
    """Take the system prompt out of the first request, which is at the index `at` of `history`, and return
    it. It must come before a summary: the framework does not take it for the system prompt after one.
    """
    first = None if at is None else history[at]
    if at is None or not isinstance(first, pai.ModelRequest) or not opening_of(first):
        return []
    count = opening_of(first)
    history[at : at + 1] = [replace(first, parts=first.parts[count:])] if first.parts[count:] else []
    return list(first.parts[:count])


def _discovered(message: pai.ModelMessage) -> list[str]:
    """Return the tools that a message reveals because a search found them."""
    names: list[str] = []
    for part in message.parts:
        if isinstance(part, pai.ToolSearchReturnPart | pai.NativeToolSearchReturnPart):
            names.extend(match["name"] for match in part.discovered_tools)
    return names


def _without_units(units: Units, own: Mapping[int, set[int]], kept: Kept) -> set[int]:
    """Return the messages without units that stay: those that follow a message which stays, and the last
    message.
    """
    first = units.places[0][0] if units.places else -1
    follows = first in kept or not units.places
    staying: set[int] = set()
    for at in range(len(units.messages)):
        if at in own:
            follows = at in kept
        elif follows or at == len(units.messages) - 1:
            staying.add(at)
    return staying


def _rest(message: pai.ModelMessage, own: set[int], parts: Mapping[int, Part]) -> pai.ModelMessage:
    """Return a message with those of its units that stay. `own`: all of its units."""
    if isinstance(message, pai.ModelResponse):
        changed = parts[WHOLE]
        return changed if isinstance(changed, pai.ModelResponse) else message
    if own == parts.keys() and not any(parts.values()):
        return message
    rest: list[pai.ModelRequestPart] = []
    for index, part in enumerate(message.parts):
        if index not in own:
            rest.append(part)
        elif index in parts:
            new = parts[index]
            rest.append(part if new is None or isinstance(new, pai.ModelResponse) else new)
    return replace(message, parts=rest)


def _changed(units: Units, index: int, shown: ShownMessage) -> Part:
    """Return a unit as the view shows it; None if only call ids differ, which the framework sees to."""
    message, part = units.places[index]
    host = units.messages[message]
    blocks = shown.blocks()
    if _without_ids(blocks) == _without_ids(_decoded(units.encode(index)["content"])):
        return None
    if isinstance(host, pai.ModelResponse):
        return replace(host, parts=_answer_parts(host, blocks))
    old = host.parts[part]
    if isinstance(old, pai.ToolReturnPart):
        inner = blocks[0].get("content", "") if blocks else ""
        items = _items(old.files, _blocks_in(inner))
        # Not the class of a search or a load: their content is no text.
        return pai.ToolReturnPart(
            tool_name=old.tool_name,
            content=items[0] if len(items) == 1 and isinstance(items[0], str) else items,
            tool_call_id=old.tool_call_id,
            metadata=old.metadata,
            timestamp=old.timestamp,
            outcome=old.outcome,
        )
    if isinstance(old, pai.UserPromptPart):
        items = _items([] if isinstance(old.content, str) else old.content, blocks)
        return replace(old, content=items[0] if len(items) == 1 and isinstance(items[0], str) else items)
    if isinstance(old, pai.SystemPromptPart | pai.CompactionPart):
        return replace(old, content=_text(blocks))
    return None


def _items(old: Sequence[pai.UserContent], blocks: Sequence[Block]) -> list[pai.UserContent]:
    """Return what `blocks` show as the content of a prompt or result. Files are the objects in `old`."""
    rest = [item for item in old if not isinstance(item, str)]
    items: list[pai.UserContent] = []
    for block in blocks:
        same = next((item for item in rest if [block] == _decoded(user_blocks([item]))), None)
        if same is not None:
            rest.remove(same)
            items.append(same)
        elif block["type"] == "text":
            items.append(str(block["text"]))
    return items


def _decoded(blocks: object) -> list[Block]:
    """Return blocks as they come back from the daemon."""
    decoded: list[Block] = msgspec.json.decode(msgspec.json.encode(blocks))
    return decoded


def _without_ids(blocks: Sequence[Block]) -> list[Block]:
    return [{key: value for key, value in block.items() if key != "call_id"} for block in blocks]


def _answer_parts(host: pai.ModelResponse, blocks: Sequence[Block]) -> list[pai.ModelResponsePart]:
    """Return the parts of an answer that `blocks` show. Unchanged parts are the host's own."""
    parts: list[pai.ModelResponsePart] = []
    rest = list(host.parts)
    for block in blocks:
        same = next(
            (
                part
                for part in rest
                if _without_ids([block]) == _without_ids(_decoded(response_part_blocks(part)))
            ),
            None,
        )
        if same is None:
            same = _changed_part(rest, block)
            if same is not None:
                parts.append(same)
            continue
        rest.remove(same)
        parts.append(same)
    return parts


def _changed_part(rest: list[pai.ModelResponsePart], block: Block) -> pai.ModelResponsePart | None:
    if block["type"] == "text":
        return pai.TextPart(str(block["text"]))
    for part in rest:
        if isinstance(part, pai.ToolCallPart) and part.tool_call_id == block.get("call_id"):
            arguments = block.get("arguments")
            return pai.ToolCallPart(
                tool_name=part.tool_name,
                args=arguments if isinstance(arguments, dict | str) else json_text(arguments),
                tool_call_id=part.tool_call_id,
            )
    return None


def _text(blocks: Sequence[Block]) -> str:
    """Return the text of blocks, and of results in them."""
    texts: list[str] = []
    for block in blocks:
        if block["type"] == "tool_result":
            texts.append(_text(_blocks_in(block.get("content"))))
        else:
            texts.append(str(block.get("text", "")))
    return "\n".join(text for text in texts if text)


def _blocks_in(content: Json) -> list[Block]:
    """Return the content of a result as blocks."""
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    return [{"type": "text", "text": content}] if isinstance(content, str) else []


def _written(shown: ShownMessage, conversation_id: str | None) -> pai.ModelMessage | None:
    """Return a message that only the view has. An added result is None: the framework adds one, too."""
    if shown.role == "tool":
        return None
    text = _text(shown.blocks())
    if shown.role == "assistant":
        return pai.ModelResponse(parts=[pai.TextPart(text)], conversation_id=conversation_id)
    summary = pai.CompactionPart(text, metadata={MARK: True})
    return pai.ModelRequest(parts=[summary], conversation_id=conversation_id)

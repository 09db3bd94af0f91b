"""The projection: repair the view so that every provider accepts it as a request (law 1).

A view may contain calls without results (an unfinished batch, an interrupted turn), results without calls,
and results that do not directly follow their call. Every provider refuses those. The projection repairs them
and lists what it did in `repairs`; the view itself does not change. Calls and results are matched in
`tool_pairs.py`. The repaired messages are still in compactd's own format, not yet in a provider's. (Rules:
docs/dev/behaviour.md, "Time travel" and law 1.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.entries import EntryId, Item
from compactd.core.history.tool_pairs import BlockPlace, is_blank, match
from compactd.core.history.tool_pairs import Pending as Pending
from compactd.core.tokens.counting import Counter, block_tokens
from compactd.protocol.messages import Block, Message, Role, ToolCall, ToolResult

if TYPE_CHECKING:
    from compactd.core.history.outline import Outline

INTERRUPTED = "[no result: the tool call was interrupted]"
"""The text of the error result that is added for a call without a result."""


class Repair(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One repair that the projection made so that providers accept the request."""

    kind: str
    """`missing_result`: an error result was added for a call without a result · `orphan_result`: a result
    without its call was left out · `duplicate_result`: a further result of an answered call was left out ·
    `moved_result`: a result that did not directly follow its call was moved there · `renamed_call`: a
    `call_id` that was already in use got a suffix · `empty_message`: a message without content was left
    out."""
    entry_id: EntryId | None = None
    """The message that was repaired. For `missing_result` and `renamed_call`, the message that contains the
    call."""
    call_id: str | None = None
    """The call id as the client gave it."""


class Projected(Struct, frozen=True, kw_only=True):
    """One message of the request."""

    message: Message
    entry_id: EntryId | None = None
    """The entry of the message; None for an error result that was added."""
    source: Raw | None = None
    """The client's own bytes, if the message is unchanged."""
    model: str | None = None
    """The session's model when the message came; None for an error result that was added."""
    instead: Raw | None = None
    """What the request contains instead of the message: a provider's own summary, as a JSON list of blocks or
    items in the format of the request. None for the message itself."""


class Projection(Struct, frozen=True, kw_only=True):
    """The messages of the next request."""

    messages: tuple[Projected, ...]
    """The messages in order. Every call is followed by its result before any other content, `call_id`s are
    unique, and no message is empty."""
    repairs: tuple[Repair, ...]
    """The repairs in the order in which they were made."""
    tokens: int
    """The estimated tokens of `messages`: the tokens of the view's items, minus what was left out, plus what
    was added."""


def project(items: Sequence[Item], counter: Counter) -> Projection:
    """Return the messages of the next request for the view's `items`, with all repairs.

    `counter` must be the session's counter, which counted the items. The order is kept, except that a result
    which does not directly follow its call is moved there. In a user message with results and other content,
    the results count as coming first, because a provider's format puts them first. O(blocks); only what is
    added or left out is counted.
    """
    return _Projector(items, counter).run()


def with_provider_summary(projection: Projection, items: Sequence[Item]) -> Projection:
    """Return `projection`, which is that of `items`, with the provider's own summary in place of compactd's.
    Its first message must be the summary, and there must be one of the provider. O(messages)."""
    first, *others = projection.messages
    own = items[0].provider
    assert own is not None
    given = msgspec.structs.replace(first, instead=own.items)
    return msgspec.structs.replace(projection, messages=(given, *others))


def projected_tokens(items: Sequence[Item], outline: Outline, counter: Counter) -> int:
    """Return the value of `project(items, counter).tokens`, computed faster from the outline of `items`.
    O(messages with results that are left out or moved, and the text of these results)."""
    total = outline.visible_tokens
    for index in outline.left_out.keys() | outline.moved.keys():
        total += _shown_tokens(items, outline, index, counter) - outline.tokens(index)
    missing = sum(outline.unanswered.values())
    return total + (missing * counter.count(INTERRUPTED) if missing else 0)


def _shown_tokens(items: Sequence[Item], outline: Outline, index: int, counter: Counter) -> int:
    """Return the tokens that a message has in the request, if some of its results are left out or moved."""
    content = items[index].message.content
    left_out, moved = outline.left_out.get(index, ()), frozenset(outline.moved.get(index, ()))
    gone = moved.union(left_out)
    others = [block for at, block in enumerate(content) if at not in gone]
    away = [content[at] for at in left_out]
    if all(is_blank(block) for block in others):
        if not moved:
            return 0
        away += others
    return max(0, outline.tokens(index) - sum(block_tokens(block, counter) for block in away))


def _only_results(message: Message) -> bool:
    return all(isinstance(block, ToolResult) or is_blank(block) for block in message.content)


class _Projector:
    """The state of one call of `project`."""

    def __init__(self, items: Sequence[Item], counter: Counter) -> None:
        self._items = items
        self._counter = counter
        self._matched = match(items)
        self._messages: list[Projected] = []
        self._repairs: list[Repair] = []
        self._tokens = 0
        self._moved: set[BlockPlace] = set()
        self._used_ids: set[str] = set()
        self._next_suffix: dict[str, int] = {}
        self._new_ids: dict[BlockPlace, str] = {}

    def run(self) -> Projection:
        for index, item in enumerate(self._items):
            self._add(index, item)
        return Projection(
            messages=tuple(self._messages), repairs=tuple(self._repairs), tokens=max(0, self._tokens)
        )

    def _add(self, index: int, item: Item) -> None:
        if all(is_blank(block) for block in item.message.content):
            self._repair("empty_message", item.entry_id)
            return
        content: list[Block] = []
        calls: list[tuple[int, ToolCall]] = []
        left_out, moved = 0, False
        for at, block in enumerate(item.message.content):
            if isinstance(block, ToolCall):
                block = self._unique((index, at), item, block)
                calls.append((at, block))
            elif isinstance(block, ToolResult):
                if (index, at) in self._moved:
                    moved = True
                    continue
                kind = self._matched.unpaired.get((index, at))
                if kind is not None:
                    self._repair(kind, item.entry_id, block.call_id)
                    left_out += block_tokens(block, self._counter)
                    continue
                block = self._with_name((index, at), block)
            content.append(block)
        stays = not all(is_blank(block) for block in content)
        if stays:
            self._messages.append(_project_item(item, tuple(content)))
        else:
            left_out += sum(block_tokens(block, self._counter) for block in content)
        if stays or moved:
            self._tokens += max(0, item.tokens - left_out)
        if calls:
            self._complete(index, item, calls)

    def _complete(self, index: int, item: Item, calls: Sequence[tuple[int, ToolCall]]) -> None:
        """Add results of `calls` directly after the message `index`, which contains the calls: an error
        result for each call without a result, and the results that are too far behind their call."""
        in_place_to = self._results_end(index)
        late: dict[int, list[Block]] = {}
        for at, call in calls:
            place = self._matched.result_of.get((index, at))
            if place is None:
                self._repair("missing_result", item.entry_id, self._given_id((index, at)))
                self._tokens += self._counter.count(INTERRUPTED)
                self._messages.append(Projected(message=_interrupted_result(call)))
            elif place[0] > in_place_to:
                moved = self._items[place[0]]
                result = moved.message.content[place[1]]
                if isinstance(result, ToolResult):
                    self._repair("moved_result", moved.entry_id, result.call_id)
                    self._moved.add(place)
                    late.setdefault(place[0], []).append(self._with_name(place, result))
        for source, results in late.items():
            self._messages.append(_project_item(self._items[source], tuple(results), role="tool"))

    def _results_end(self, index: int) -> int:
        """Return the index of the last message after `index` whose results directly follow the message at
        `index`."""
        for at in range(index + 1, len(self._items)):
            message = self._items[at].message
            # This message has other content and may contain results too; a provider's shape puts them first.
            if not _only_results(message):
                return at
        return len(self._items) - 1

    def _unique(self, place: BlockPlace, item: Item, call: ToolCall) -> ToolCall:
        call_id = call.call_id or "call"
        while call_id in self._used_ids:
            number = self._next_suffix.get(call.call_id, 2)
            self._next_suffix[call.call_id] = number + 1
            call_id = f"{call.call_id or 'call'}-{number}"
        self._used_ids.add(call_id)
        if call_id == call.call_id:
            return call
        self._repair("renamed_call", item.entry_id, call.call_id)
        self._new_ids[place] = call_id
        result = self._matched.result_of.get(place)
        if result is not None:
            self._new_ids[result] = call_id
        return msgspec.structs.replace(call, call_id=call_id)

    def _with_name(self, place: BlockPlace, result: ToolResult) -> ToolResult:
        call_id = self._new_ids.get(place)
        return result if call_id is None else msgspec.structs.replace(result, call_id=call_id)

    def _given_id(self, place: BlockPlace) -> str:
        block = self._items[place[0]].message.content[place[1]]
        return block.call_id if isinstance(block, ToolCall) else ""

    def _repair(self, kind: str, entry_id: EntryId, call_id: str | None = None) -> None:
        self._repairs.append(Repair(kind=kind, entry_id=entry_id, call_id=call_id))


def _interrupted_result(call: ToolCall) -> Message:
    result = ToolResult(call_id=call.call_id, name=call.name, content=INTERRUPTED, is_error=True)
    return Message(role="tool", content=(result,))


def _project_item(item: Item, content: tuple[Block, ...], role: Role | None = None) -> Projected:
    """Return `item` as a message of the request, with `content`. If the content is unchanged, the client's
    bytes are kept; otherwise the message is rewritten, with `role` if given."""
    given = item.message.content
    if len(content) == len(given) and all(a is b or a == b for a, b in zip(content, given, strict=True)):
        return Projected(message=item.message, entry_id=item.entry_id, source=item.source, model=item.model)
    message = msgspec.structs.replace(item.message, content=content, role=role or item.message.role)
    return Projected(message=message, entry_id=item.entry_id, model=item.model)

"""An index of a view's messages for planning, updated with each message, so that a plan need not scan them.

`OutlineBuilder` adds one message after another, each in O(message) time and 26 bytes of memory. Its method
`outline` returns a copy of the current state. Calls and results are matched as in `tool_pairs.match`. Cuts
are safe, that is, separate no call from its result, by the rules of `core/planning/cut_points.py`. Tests
check that this module agrees with both. (Rules: docs/dev/behaviour.md, "Time travel"; docs/specs.md,
"opal.md", "1. Find Cut Point".)
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.history.entries import EntryId, Item
from compactd.core.history.message_kinds import MessageKind, is_request, kind_in
from compactd.protocol.messages import Role, Text, ToolCall, ToolResult

CODES: Final[Mapping[MessageKind | Role, int]] = {
    "user": ord("u"),
    "bash": ord("b"),
    "assistant": ord("a"),
    "system": ord("s"),
    "result": ord("r"),
    "tool": ord("r"),
}
"""The byte for each kind of message in `Outline.kinds` and `Outline.cuts`."""

KIND_OF: Final[Mapping[int, MessageKind]] = {code: kind for kind, code in CODES.items() if kind != "tool"}

BASH: Final = CODES["bash"]
RESULT: Final = CODES["result"]

CLOSING: Final = frozenset(("user", "assistant"))
"""Roles of the messages that close earlier tool calls, if they contain more than results. A closed call is no
longer waiting for a result."""

END: Final = ord("e")
"""The code in `Outline.cuts` for the cut after the last message, which keeps nothing."""

UNSAFE: Final = 0

MAX_OUTLINE_TOKENS: Final = 1 << 40
"""A message counts as at most this many tokens. Real messages have fewer, but a journal that compactd did not
write may claim more."""


class Outline(Struct, frozen=True, kw_only=True):
    """What a plan needs to know about the messages of a view.

    A message is named by its index in the view's items. Cut `n` is the place before message `n`: a compaction
    with this cut keeps message `n` and what follows. A cut is safe if it separates no call from its result. A
    batch is a set of messages that are connected by calls and results.
    """

    ids: tuple[EntryId, ...]
    kinds: bytes
    """The kind of each message, as a code of `CODES`."""
    cuts: bytes
    """For each cut, from 0 to the number of messages: `UNSAFE`, or the kind of the first kept message as a
    code of `CODES`."""
    sums: array[int]
    """For each cut, the tokens of the messages before it."""
    batch_links: array[int]
    """For each message, the index of the next message of its batch. The last one points to the first, and a
    message without a connection to others points to itself."""
    unanswered: Mapping[int, int]
    """Messages with calls that have no result, and the number of these calls."""
    left_out: Mapping[int, tuple[int, ...]]
    """Messages with results that answer no call, and the indices of the blocks with these results."""
    moved: Mapping[int, tuple[int, ...]]
    """Messages with results that do not directly follow their call, and the indices of the blocks with these
    results."""
    visible_tokens: int
    """The tokens of all messages that are not empty."""
    pinned: tuple[int, ...]
    """Messages that their own `meta` pins, in ascending order."""
    request: int | None
    """The newest request of a person, shell commands included; None if there is none."""
    typed_request: int | None
    """The newest request of a person that is not a shell command; None if there is none."""

    def __len__(self) -> int:
        return len(self.kinds)

    def kind(self, index: int) -> MessageKind:
        """Return the kind of a message."""
        return KIND_OF[self.kinds[index]]

    def tokens(self, index: int) -> int:
        """Return the tokens of one message, without the error results that the projection adds for calls
        without a result."""
        return self.sums[index + 1] - self.sums[index]

    def is_safe(self, cut: int) -> bool:
        """Return whether a cut before the message `cut` separates no tool call from its result."""
        return self.cuts[cut] != UNSAFE

    def safe(self, first: int, last: int) -> Iterator[int]:
        """Return an iterator over the safe cuts from `first` to `last`, both inclusive, in ascending
        order."""
        return compress(range(first, last + 1), self.cuts[first : last + 1])

    def first_safe(self, first: int, kinds: Iterable[MessageKind]) -> int | None:
        """Return the first safe cut at or after `first` whose first kept message is of one of these kinds;
        None if there is none."""
        found = [at for kind in kinds if (at := self.cuts.find(CODES[kind], first)) >= 0]
        return min(found, default=None)

    def last_safe(self, first: int, last: int, kinds: Iterable[MessageKind]) -> int | None:
        """Return the last safe cut from `first` to `last`, both inclusive, after which no message is left or
        the first message left is of one of `kinds`. Return None if there is no such cut."""
        codes = (END, *(CODES[kind] for kind in kinds))
        found = max(self.cuts.rfind(code, first, max(0, last + 1)) for code in codes)
        return found if found >= 0 else None

    def newest(self, kind: MessageKind, first: int, last: int) -> int | None:
        """Return the newest message of this kind from `first` (inclusive) to `last` (exclusive); None if
        there is none."""
        found = self.kinds.rfind(CODES[kind], first, max(0, last))
        return found if found >= 0 else None

    @property
    def smallest_tail_start(self) -> int:
        """The last safe cut that keeps at least one message; 0 if no cut is safe."""
        return max(0, len(self.cuts[:-1].rstrip(b"\0")) - 1)

    def with_smaller(self, index: int, saved_tokens: int) -> Outline:
        """Return the outline of the same messages if one of them takes `saved_tokens` less. O(messages)."""
        sums = self.sums[: index + 1]
        sums.extend(tokens - saved_tokens for tokens in self.sums[index + 1 :])
        return replace(self, sums=sums, visible_tokens=self.visible_tokens - saved_tokens)

    def batch(self, index: int) -> frozenset[int]:
        """Return the batch of a message: this message and all that are connected with it by calls and
        results. A safe cut never separates them."""
        members, at = [index], self.batch_links[index]
        while at != index:
            members.append(at)
            at = self.batch_links[at]
        return frozenset(members)


class OutlineBuilder:
    """A builder of an `Outline`, message by message. Only one thread may use it at a time."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.count = 0
        """The number of messages that were added."""
        self._ids: list[EntryId] = []
        self._kinds, self._cuts = bytearray(), bytearray()
        self._sums, self._ring, self._root = array("q", (0,)), array("i"), array("i")
        self._waiting: dict[str, tuple[int, int]] = {}
        """For each call id, the newest message with such calls and how many of them have no result yet."""
        self._unanswered: dict[int, int] = {}
        self._left_out: dict[int, list[int]] = {}
        self._moved: dict[int, list[int]] = {}
        self._pinned: list[int] = []
        self._shown = 0
        self._request: int | None = None
        self._spoken: int | None = None
        self._closer = -1
        """The last message that closed the calls before it. Only calls of this message can still be open."""
        self._last_other = -1
        """The last message that contains more than results."""
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Add the next message. O(its blocks). A result whose call is not in the message directly before also
        costs one byte of copying for each message in between."""
        message, index = item.message, self.count
        self.count = index + 1
        role, meta = message.role, message.meta
        self._ring.append(index)
        self._root.append(index)
        calls: dict[str, int] | None = None
        has_result = has_text = has_other = False
        for at, block in enumerate(message.content):
            if isinstance(block, Text):
                if block.text and not block.text.isspace():
                    has_text = True
            elif isinstance(block, ToolResult):
                has_result = True
                self._answer(block.call_id, index, at)
            else:
                has_other = True
                if isinstance(block, ToolCall):
                    calls = {} if calls is None else calls
                    calls[block.call_id] = calls.get(block.call_id, 0) + 1
        code = CODES[role if meta is None else kind_in(message, False)]
        if has_result:
            code = RESULT
        self._kinds.append(code)
        self._cuts.append(UNSAFE if code == RESULT else code)
        tokens = item.tokens
        if not 0 <= tokens <= MAX_OUTLINE_TOKENS:
            tokens = min(max(0, tokens), MAX_OUTLINE_TOKENS)
        self._sums.append(self._sums[-1] + tokens)
        self._ids.append(item.entry_id)
        if has_text or has_other:
            self._shown += tokens
            self._last_other = index
            if role in CLOSING:
                self._closer = index
        elif has_result:
            self._shown += tokens
        if calls is not None:
            self._unanswered[index] = sum(calls.values())
            for call_id, count in calls.items():
                self._waiting[call_id] = (index, count)
        if meta is not None and meta.pinned:
            self._pinned.append(index)
        if has_text and is_request(message):
            self._request = index
            if code != BASH:
                self._spoken = index

    def outline(self) -> Outline:
        """Return a copy of the current state. O(messages). The copy takes 14 bytes and a reference per
        message."""
        count, is_open = self.count, self._closer in self._unanswered
        safe = self._cuts[: self._closer + 1] if is_open else self._cuts
        return Outline(
            ids=tuple(self._ids),
            kinds=bytes(self._kinds),
            cuts=bytes(safe) + (bytes(count - self._closer) if is_open else bytes((END,))),
            sums=self._sums[:],
            batch_links=self._ring[:],
            unanswered=dict(self._unanswered),
            left_out={index: tuple(blocks) for index, blocks in self._left_out.items()},
            moved={index: tuple(blocks) for index, blocks in self._moved.items()},
            visible_tokens=self._shown,
            pinned=tuple(self._pinned),
            request=self._request,
            typed_request=self._spoken,
        )

    def _answer(self, call_id: str, index: int, at: int) -> None:
        """Match the result in block `at` of the message at `index` with its call. The cuts between the two
        become unsafe."""
        found = self._waiting.get(call_id)
        if found is None:
            self._left_out.setdefault(index, []).append(at)
            return
        call, count = found
        if count > 1:
            self._waiting[call_id] = (call, count - 1)
        else:
            del self._waiting[call_id]
        if self._unanswered[call] > 1:
            self._unanswered[call] -= 1
        else:
            del self._unanswered[call]
        if self._last_other > call:
            self._moved.setdefault(index, []).append(at)
        if call + 1 < index:
            self._cuts[call + 1 :] = bytes(index - call - 1)
        self._join(call, index)

    def _join(self, one: int, other: int) -> None:
        """Merge the batches of two messages."""
        first, second = self._find(one), self._find(other)
        if first != second:
            self._root[second] = first
            ring = self._ring
            ring[one], ring[other] = ring[other], ring[one]

    def _find(self, index: int) -> int:
        root = self._root
        while (above := root[index]) != index:
            root[index] = root[above]
            index = root[index]
        return index

"""What a plan asks of a view's messages, one by one, kept up as they come: a plan then looks nothing over.

`Outlining` takes in one message after the other, each in the cost of that message and 26 bytes of memory;
its `outline` is all of it as it stands, copied at the speed of memory. Which result answers which call is
told as `pairs.match` tells it, where a cut may be as the laws of `cuts.py` say: the tests hold this against
them. (Rules: docs/dev/behaviour.md, "Time travel"; docs/specs.md, "opal.md", "1. Find Cut Point".)
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId, Item
from compactd.core.history.message_kinds import Kind, is_request, kind_in
from compactd.protocol.messages import Role, Text, ToolCall, ToolResult

CODES: Final[Mapping[Kind | Role, int]] = {
    "user": ord("u"),
    "bash": ord("b"),
    "assistant": ord("a"),
    "system": ord("s"),
    "result": ord("r"),
    "tool": ord("r"),
}
"""Of each kind of message, in `kinds` and `cuts`."""

KIND_OF: Final[Mapping[int, Kind]] = {code: kind for kind, code in CODES.items() if kind != "tool"}

BASH: Final = CODES["bash"]
RESULT: Final = CODES["result"]

CLOSING: Final = frozenset(("user", "assistant"))
"""Whose messages close the calls before them, where they hold something beside results."""

END: Final = ord("e")
"""In `cuts`: behind the last message, where nothing is kept."""

UNSAFE: Final = 0

MOST_TOKENS: Final = 1 << 40
"""Of one message. No message has more, but a stranger's journal may say so."""


class Outline(Struct, frozen=True, kw_only=True):
    """The messages of a view, as a plan sees them. Indices into the view's items."""

    ids: tuple[EntryId, ...]
    kinds: bytes
    """What each message is to a cut."""
    cuts: bytes
    """For each cut, 0 to the number of messages: `UNSAFE`, or what stays first."""
    sums: array[int]
    """Tokens of the messages before each cut."""
    ring: array[int]
    """For each message another one of its batch, round in a circle; itself where it is alone."""
    unanswered: Mapping[int, int]
    """Messages with calls that have no result, and how many those are."""
    left_out: Mapping[int, tuple[int, ...]]
    """Messages with results that answer no call, and which blocks those are."""
    moved: Mapping[int, tuple[int, ...]]
    """Messages with results that stand apart from their call, and which blocks those are."""
    shown: int
    """Tokens of all messages but empty ones."""
    pinned: tuple[int, ...]
    """Messages that their `meta` pins, rising."""
    request: int | None
    """The newest request."""
    spoken: int | None
    """The newest one that is no shell command."""

    def __len__(self) -> int:
        return len(self.kinds)

    def kind(self, index: int) -> Kind:
        """What the message is to a cut."""
        return KIND_OF[self.kinds[index]]

    def tokens(self, index: int) -> int:
        """Of one message, as it stands."""
        return self.sums[index + 1] - self.sums[index]

    def is_safe(self, cut: int) -> bool:
        """Whether all laws allow the cut."""
        return self.cuts[cut] != UNSAFE

    def safe(self, first: int, last: int) -> Iterator[int]:
        """The safe cuts from `first` to `last`, both included, rising."""
        return compress(range(first, last + 1), self.cuts[first : last + 1])

    def first_safe(self, first: int, kinds: Iterable[Kind]) -> int | None:
        """The first safe cut from `first` on that keeps a message of these kinds first."""
        found = [at for kind in kinds if (at := self.cuts.find(CODES[kind], first)) >= 0]
        return min(found, default=None)

    def last_safe(self, first: int, last: int, kinds: Iterable[Kind]) -> int | None:
        """The last safe cut from `first` to `last`, both included, that keeps a message of these kinds first,
        or nothing."""
        codes = (END, *(CODES[kind] for kind in kinds))
        found = max(self.cuts.rfind(code, first, max(0, last + 1)) for code in codes)
        return found if found >= 0 else None

    def newest(self, kind: Kind, first: int, last: int) -> int | None:
        """The newest message of this kind from `first` up to, not including, `last`."""
        found = self.kinds.rfind(CODES[kind], first, max(0, last))
        return found if found >= 0 else None

    @property
    def last_batch(self) -> int:
        """Where the smallest tail that is not empty begins; 0 where no cut is safe."""
        return max(0, len(self.cuts[:-1].rstrip(b"\0")) - 1)

    def batch(self, index: int) -> frozenset[int]:
        """All messages with a call or a result that belong to this one's: never parted."""
        members, at = [index], self.ring[index]
        while at != index:
            members.append(at)
            at = self.ring[at]
        return frozenset(members)


class Outlining:
    """An outline that is kept up message by message. One thread at a time."""

    __slots__ = (
        "_closer",
        "_cuts",
        "_ids",
        "_kinds",
        "_last_other",
        "_left_out",
        "_moved",
        "_pinned",
        "_request",
        "_ring",
        "_root",
        "_shown",
        "_spoken",
        "_sums",
        "_unanswered",
        "_waiting",
        "count",
    )

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.count = 0
        """Messages that were taken in."""
        self._ids: list[EntryId] = []
        self._kinds, self._cuts = bytearray(), bytearray()
        self._sums, self._ring, self._root = array("q", (0,)), array("i"), array("i")
        self._waiting: dict[str, tuple[int, int]] = {}
        """By call id the newest message with such calls, and how many of them no result answered yet."""
        self._unanswered: dict[int, int] = {}
        self._left_out: dict[int, list[int]] = {}
        self._moved: dict[int, list[int]] = {}
        self._pinned: list[int] = []
        self._shown = 0
        self._request: int | None = None
        self._spoken: int | None = None
        self._closer = -1
        """The last message that closed the calls before it: its own alone may be open."""
        self._last_other = -1
        """The last message that holds something beside results."""
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Takes in the next message. O(its blocks); a late result takes as long as copying a byte for each
        message since its call."""
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
        if not 0 <= tokens <= MOST_TOKENS:
            tokens = min(max(0, tokens), MOST_TOKENS)
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
        """All of it as it stands. O(messages), 14 bytes and a name of each copied."""
        count, is_open = self.count, self._closer in self._unanswered
        safe = self._cuts[: self._closer + 1] if is_open else self._cuts
        return Outline(
            ids=tuple(self._ids),
            kinds=bytes(self._kinds),
            cuts=bytes(safe) + (bytes(count - self._closer) if is_open else bytes((END,))),
            sums=self._sums[:],
            ring=self._ring[:],
            unanswered=dict(self._unanswered),
            left_out={index: tuple(blocks) for index, blocks in self._left_out.items()},
            moved={index: tuple(blocks) for index, blocks in self._moved.items()},
            shown=self._shown,
            pinned=tuple(self._pinned),
            request=self._request,
            spoken=self._spoken,
        )

    def _answer(self, call_id: str, index: int, at: int) -> None:
        """Takes in the result in block `at` of the message at `index`."""
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
        """The two messages are of one batch."""
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


def outline_of(items: Iterable[Item]) -> Outline:
    """The outline of these messages. O(blocks)."""
    return Outlining(items).outline()

"""The tool outputs of a session that were reduced: their originals, and which message shows which of them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import msgspec

from compactd.core.history.entries import (
    Appended,
    EntryId,
    Item,
    OutputLink,
    Reduced,
    ReductionObserved,
)
from compactd.core.history.lazy_message import Decode, LazyMessage
from compactd.protocol.messages import Block, Message, Text, ToolResult

MAX_WAITING = 64
"""How many calls can wait for their result at once. Agents run a few at the same time."""


class ReductionCounts:
    """How many outputs were reduced, and by how much, in tokens."""

    def __init__(self) -> None:
        self.count = 0
        self.tokens_before = 0
        self.tokens_after = 0

    def add(self, before: int, after: int) -> None:
        """Count one output."""
        self.count += 1
        self.tokens_before += before
        self.tokens_after += after


class ReducedOutputs:
    """The reduced outputs of a session, folded from its entries one by one."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self.entries: dict[EntryId, Reduced] = {}
        """By entry id, oldest first."""
        self.items: dict[EntryId, Item] = {}
        """The originals as tool messages, by entry id."""
        self.of_call: dict[str, EntryId] = {}
        """The newest output of each call id."""
        self._waiting: dict[str, None] = {}
        """The newest calls with a reduced output that no message shows yet, oldest first."""
        self.links: dict[EntryId, tuple[OutputLink, ...]] = {}
        """By message, the reduced outputs that it shows."""
        self.shown_in: dict[EntryId, tuple[EntryId, ...]] = {}
        """By output, the messages that show it. More than one if the conversation has branches."""
        self.loose: dict[EntryId, None] = {}
        """The outputs that came since the view last changed other than by an append, and that no message
        shows yet."""
        self.done = ReductionCounts()
        self.observed = ReductionCounts()
        self.by_rule: dict[str, ReductionCounts] = {}
        """Outputs, reduced and observed, by the rules that acted. An output counts for each of its rules."""

    def add(self, entry: Reduced) -> None:
        """Take an output that was reduced."""
        self.entries[entry.id] = entry
        self.items[entry.id] = Item(
            entry_id=entry.id,
            body=LazyMessage(entry.message, self._decode),
            tokens=entry.tokens[0],
            source=entry.message,
            kind="output",
        )
        if entry.call_id is not None:
            self.of_call[entry.call_id] = entry.id
            self._waiting.pop(entry.call_id, None)
            self._waiting[entry.call_id] = None
            if len(self._waiting) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]
        self.loose[entry.id] = None
        if entry.rules:
            # Otherwise it is whole, and has an entry because another output refers to it.
            self._count(self.done, entry)

    def note_observed(self, entry: ReductionObserved) -> None:
        """Count an output that would have been reduced."""
        self._count(self.observed, entry)

    def _count(self, counts: ReductionCounts, entry: Reduced | ReductionObserved) -> None:
        for one in (counts, *(self.by_rule.setdefault(rule, ReductionCounts()) for rule in entry.rules)):
            one.add(entry.tokens[0], entry.tokens_shown)

    def before(self, parent: EntryId | None) -> EntryId | None:
        """Return the entry that another one follows. A writer that counts ids, such as a hook, may have named
        an output instead of the entry before it."""
        for _ in range(len(self.entries)):
            if parent not in self.entries:
                break
            parent = self.entries[parent].parent
        return parent

    def note_appended(self, entry: Appended, path: Container[EntryId]) -> None:
        """Take the links of a new message that follows `path`. If another program than the daemon wrote it,
        such as a hook, look for results of the calls that wait. O(links), or O(message × waiting calls)."""
        links = tuple([link for link in entry.outputs if link.output in self.entries])
        if not links and self._waiting:
            raw = bytes(entry.message)
            if any(call_id.encode() in raw for call_id in self._waiting):
                links = self.find_links(self._decode(entry.message), path)
        if not links:
            return
        self.links[entry.id] = links
        for link in links:
            self.shown_in[link.output] = (*self.shown_in.get(link.output, ()), entry.id)
            self.loose.pop(link.output, None)
            self._waiting.pop(self.entries[link.output].call_id or "", None)

    def note_view_changed(self) -> None:
        """Forget which outputs wait for their message: another view is shown from now on."""
        self.loose.clear()

    def release(self) -> None:
        """Free the texts."""
        self.entries.clear()
        self.items.clear()

    def originals_of(self, entry_id: EntryId) -> tuple[EntryId, ...]:
        """Return the outputs that a message shows reduced, in its order."""
        return tuple(dict.fromkeys(link.output for link in self.links.get(entry_id, ())))

    def find_links(self, message: Message, path: Container[EntryId]) -> tuple[OutputLink, ...]:
        """Return the links of a message that will be appended to `path`: to the newest output of the same
        call that no message of the path shows yet. O(blocks)."""
        if not self.of_call:
            return ()
        found: list[OutputLink] = []
        for at, block in enumerate(message.content):
            output = self.of_call.get(block.call_id) if isinstance(block, ToolResult) else None
            if output is None or any(shown in path for shown in self.shown_in.get(output, ())):
                continue
            found.append(OutputLink(at, None, output, _says(block, self.entries[output].shown)))
        return tuple(found)

    def on_path(self, path: Container[EntryId]) -> list[EntryId]:
        """Return the outputs that belong to a path, oldest first: those that came after one of its entries,
        and those that one of its messages shows. O(outputs) look-ups."""
        return [
            entry_id
            for entry_id, entry in self.entries.items()
            if entry.parent is None
            or entry.parent in path
            or any(shown in path for shown in self.shown_in.get(entry_id, ()))
        ]

    def restore(self, entry_id: EntryId, message: Message) -> Message:
        """Return the message of an entry with its reduced texts replaced by the originals. O(message)."""
        texts = {
            (link.block, link.part): text_of_output(self.items[link.output].decoded().message)
            for link in self.links.get(entry_id, ())
            if link.is_exact and link.output in self.items
        }
        return replace_texts(message, texts) if texts else message


def text_of_output(original: Message) -> str:
    """Return the text of the original of a reduced output."""
    for block in original.content:
        if isinstance(block, ToolResult) and isinstance(block.content, str):
            return block.content
    return ""


def replace_texts(message: Message, texts: Mapping[tuple[int, int | None], str]) -> Message:
    """Return `message` with texts of its tool results replaced. The keys are (index of the result, index of
    the text in the result's blocks, or None for the whole result). O(blocks)."""
    content = list(message.content)
    for (at, part), text in texts.items():
        block = content[at] if at < len(content) else None
        if not isinstance(block, ToolResult):
            continue
        if part is None or isinstance(block.content, str):
            content[at] = msgspec.structs.replace(block, content=text)
        else:
            inner = _with_text(block.content, part, text)
            content[at] = msgspec.structs.replace(block, content=inner)
    return msgspec.structs.replace(message, content=tuple(content))


def _with_text(blocks: Sequence[Block], part: int, text: str) -> tuple[Block, ...]:
    changed = list(blocks)
    block = changed[part] if part < len(changed) else None
    if isinstance(block, Text):
        changed[part] = msgspec.structs.replace(block, text=text)
    return tuple(changed)


def _says(block: Block, text: str) -> bool:
    if not isinstance(block, ToolResult):
        return False
    match block.content:
        case str() as said:
            return said == text
        case (Text(text=said),):
            return said == text
        case _:
            return False

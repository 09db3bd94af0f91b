"""What a redaction makes of a journal: messages without their contents, and nothing of them anywhere else.

The contents go, the structure stays: role, blocks, calls and their results, so that every view of the
session is as valid as before. Words of the redacted messages are looked for in whatever the session keeps
of its messages beside them: summaries, stubs, file lists, titles, prompts that waited.
(Contract, `session/redact`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from compactd.core.entries import (
    Appended,
    Compacted,
    CompactionEnded,
    Entry,
    EntryId,
    Item,
    ModelSet,
    Opened,
    Pruned,
    Queued,
    SettingsSet,
    Stub,
    summary_message,
    with_stub,
)
from compactd.core.fileops import MAX_PATH_CHARS
from compactd.core.record import EVMTS, HEADINGS, LEAD, NATURE, NONE
from compactd.core.scrub import MARK, Scrubber, scrubber
from compactd.core.visible import file_name
from compactd.messages import (
    Block,
    CompactionResult,
    Document,
    Message,
    Meta,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

MARK_DOCUMENT = Document(media_type="text/plain", text=MARK)
ARGUMENTS = Raw(b'{"redacted":"%s"}' % MARK.encode())
"""A redacted call's arguments: an object, as providers want it."""

ARGUMENTS_TEXT = Raw(msgspec.json.encode(bytes(ARGUMENTS).decode()))
"""The same as OpenAI's string."""


UNCOUNTED = -1
"""Tokens of a stub whose text was changed."""

_Step = TypeVar("_Step", Compacted, Pruned)


class Codec(Struct, frozen=True):
    """How messages are read, written and counted."""

    decode: Callable[[Raw], Message]
    encode: Callable[[Message], bytes]
    count: Callable[[Message], int]
    estimator: str
    """The name of what `count` counts with."""


def blanked(message: Message) -> Message:
    """`message` with a mark in the place of whatever it says; what it is stays.

    Thinking loses its signature with its text. A picture, and a block that only one provider reads, can hold
    no mark: a text stands there, or a document where nobody said anything, so that what was no request is
    none now (law 6). Usage, ids and the flags of `meta` stay.
    """
    meta = message.meta
    is_said = any(isinstance(block, Text) and block.text.strip() for block in message.content)
    mark = Text(text=MARK) if is_said else MARK_DOCUMENT
    return msgspec.structs.replace(
        message,
        content=tuple(_blanked(block, mark) for block in message.content),
        meta=None
        if meta is None
        else Meta(
            type=meta.type,
            kind=meta.kind,
            synthetic=meta.synthetic,
            pinned=meta.pinned,
            compaction_id=meta.compaction_id,
        ),
    )


def _blanked(block: Block, mark: Block) -> Block:
    match block:
        case Text(text=text) if not text.strip():
            return Text(text="")
        case Text():
            return Text(text=MARK)
        case Thinking():
            return Thinking(text=MARK)
        case ToolCall(call_id=call_id, name=name, arguments=arguments):
            is_text = bytes(arguments).lstrip()[:1] == b'"'
            return ToolCall(call_id=call_id, name=name, arguments=ARGUMENTS_TEXT if is_text else ARGUMENTS)
        case ToolResult():
            return msgspec.structs.replace(block, content=MARK)
        case Document():
            return MARK_DOCUMENT
        case _:
            return mark


def redaction(entries: Sequence[Entry], entry_ids: frozenset[EntryId], codec: Codec) -> dict[int, Entry]:
    """The entries that a redaction of these messages changes, by their place in `entries`, a whole journal.

    In the copies, every word of at least 6 code points that the messages hold and no other message, setting
    or id does, and every line that is theirs alone, gives way to the mark. Tokens of what changed are counted
    anew. Cost: O(bytes of the journal).
    """
    changed: dict[int, Entry] = {}
    raws: dict[EntryId, Raw] = {}
    gone: list[Message] = []
    for seq, entry in enumerate(entries):
        if not isinstance(entry, Appended):
            continue
        raws[entry.id] = entry.message
        if entry.id in entry_ids:
            gone.append(codec.decode(entry.message))
            message = blanked(gone[-1])
            changed[seq] = msgspec.structs.replace(
                entry, message=Raw(codec.encode(message)), tokens=(codec.count(message), codec.estimator)
            )
    said = [raws[entry_id] for entry_id in entry_ids if entry_id in raws]
    scrub = scrubber(
        [form for raw in said for text in strings(raw) for form in _forms(text)],
        _others(entries, entry_ids, gone),
        [text for entry in entries for text in _copies(entry)],
        entry_ids,
    )
    cleaning = _Cleaning(entry_ids, raws, frozenset(bytes(raw) for raw in said), scrub, codec)
    for seq, entry in enumerate(entries):
        before = changed.get(seq, entry)
        after = cleaning.cleaned(before)
        if after is not before:
            changed[seq] = after
    return changed


def strings(raw: bytes | Raw) -> Iterator[str]:
    """Every text in a JSON value, names and numbers too; a text that is JSON itself also by its parts."""
    yield from _strings(msgspec.json.decode(raw), 0)


def _strings(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "[", '"') and depth < _NESTED:
            try:
                inner = msgspec.json.decode(value)
            except (msgspec.DecodeError, RecursionError):
                return
            yield from _strings(inner, depth + 1)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(name, depth)
            yield from _strings(inner, depth)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, depth)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _forms(text: str) -> Iterator[str]:
    """A text as it was said, and, where it may be a file's name that a summary lists in quotes, as listed."""
    yield text
    if len(text) <= MAX_PATH_CHARS and (listed := file_name(text)) != text:
        yield listed[1:-1]


_TAGS = "read-files modified-files Conversation Summary messages compacted user assistant system failed"

_NESTED = 3
"""Texts in texts that are looked into."""


def _others(
    entries: Sequence[Entry], entry_ids: frozenset[EntryId], redacted: Iterable[Message]
) -> Iterator[str]:
    """What stays in the journal: other messages, settings, names, ids; and what every record consists of."""
    yield "\n".join((LEAD, NATURE, NONE, *HEADINGS, *(heading for heading, _ in EVMTS.sections), _TAGS))
    for message in redacted:
        for block in message.content:
            if isinstance(block, ToolCall):
                yield f"{block.name}\n{block.call_id}"
            elif isinstance(block, ToolResult):
                yield f"{block.name or ''}\n{block.call_id}"
        yield f"{message.id or ''}\n{message.stop_reason or ''}"
        if message.usage is not None:
            yield bytes(message.usage).decode("utf-8", "replace")
    for entry in entries:
        match entry:
            case Opened():
                yield "\n".join((entry.id, entry.parent_session_id or "", entry.working_dir or ""))
            case ModelSet():
                yield f"{entry.model or ''}\n{entry.base_url or ''}"
            case SettingsSet():
                yield entry.system_prompt or ""
                yield from strings(entry.compaction)
                for tool in entry.tools or ():
                    yield from strings(tool)
            case Appended() if entry.id not in entry_ids:
                yield from strings(entry.message)
                yield "\n".join((*entry.read, *entry.modified))
            case _:
                pass


def _copies(entry: Entry) -> Iterator[str]:
    """The texts of an entry that may repeat what a message said."""
    match entry:
        case Compacted():
            yield entry.summary
            yield "\n".join((*entry.read_files, *entry.modified_files, entry.asked))
            yield from _of_result(entry.result)
            yield from (text for stub in entry.stubs for _, text in stub.texts)
        case Pruned():
            yield from (text for stub in entry.stubs for _, text in stub.texts)
        case CompactionEnded():
            yield entry.reason
        case SettingsSet(title=str() as title):
            yield title
        case Queued():
            yield from strings(entry.message)
        case Appended():
            yield "\n".join((*entry.read, *entry.modified))
        case _:
            pass


def _of_result(result: CompactionResult) -> Iterator[str]:
    yield result.reason
    yield "\n".join((*result.read_files, *result.modified_files))
    if result.retention is not None:
        yield "\n".join(result.retention.lost)


class _Cleaning(Struct, frozen=True):
    """One journal's copies, without the words."""

    entry_ids: frozenset[EntryId]
    raws: dict[EntryId, Raw]
    """Every message as it stood."""
    gone: frozenset[bytes]
    """Those that are redacted."""
    scrub: Scrubber
    codec: Codec

    def cleaned(self, entry: Entry) -> Entry:
        """`entry` without the words: itself where it held none."""
        replace, scrub = msgspec.structs.replace, self.scrub
        after: Entry
        match entry:
            case Compacted():
                short = replace(
                    entry,
                    summary=scrub.text(entry.summary),
                    read_files=scrub.paths(entry.read_files),
                    modified_files=scrub.paths(entry.modified_files),
                    asked=scrub.text(entry.asked),
                    result=self._result(entry.result),
                    stubs=self._stubs(entry.stubs),
                )
                if short == entry:
                    return entry
                tokens = self.codec.count(summary_message(short))
                after = replace(self._counted(short), summary_tokens=tokens)
            case Pruned():
                cut = replace(entry, stubs=self._stubs(entry.stubs))
                after = entry if cut == entry else self._counted(cut)
            case CompactionEnded():
                after = replace(entry, reason=scrub.text(entry.reason))
            case SettingsSet(title=str() as title):
                after = replace(entry, title=scrub.text(title))
            case Queued():
                after = replace(entry, message=self._queued(entry.message))
            case Appended() if entry.id in self.entry_ids:
                after = replace(entry, read=scrub.paths(entry.read), modified=scrub.paths(entry.modified))
            case _:
                return entry
        return entry if after == entry else after

    def _result(self, result: CompactionResult) -> CompactionResult:
        kept = result.retention
        return msgspec.structs.replace(
            result,
            reason=self.scrub.text(result.reason),
            read_files=self.scrub.paths(result.read_files),
            modified_files=self.scrub.paths(result.modified_files),
            retention=kept
            and msgspec.structs.replace(kept, lost=tuple(self.scrub.text(fact) for fact in kept.lost)),
        )

    def _stubs(self, stubs: tuple[Stub, ...]) -> tuple[Stub, ...]:
        return tuple(self._stub(stub) for stub in stubs)

    def _stub(self, stub: Stub) -> Stub:
        is_gone = stub.entry_id in self.entry_ids
        texts = tuple((at, MARK if is_gone else self.scrub.text(text)) for at, text in stub.texts)
        if texts == stub.texts and not is_gone:
            return stub
        return Stub(stub.entry_id, texts, UNCOUNTED)

    def _counted(self, entry: _Step) -> _Step:
        """`entry` with its stubs counted anew, all by one estimator."""
        stubs = tuple(
            Stub(stub.entry_id, stub.texts, self.codec.count(self._shown(stub))) for stub in entry.stubs
        )
        return msgspec.structs.replace(entry, stubs=stubs, estimator=self.codec.estimator)

    def _shown(self, stub: Stub) -> Message:
        message = self.codec.decode(self.raws[stub.entry_id])
        is_gone = stub.entry_id in self.entry_ids
        whole = Item(entry_id=stub.entry_id, body=blanked(message) if is_gone else message, tokens=0)
        return with_stub(whole, stub).message

    def _queued(self, raw: Raw) -> Raw:
        """A prompt that waits, or waited and became the message that is redacted."""
        message = self.codec.decode(raw)
        if bytes(raw) in self.gone:
            return Raw(self.codec.encode(blanked(message)))
        if all(self.scrub.text(text) == text for text in strings(raw)):
            return raw
        content = tuple(self._waiting(block) for block in message.content)
        return Raw(self.codec.encode(msgspec.structs.replace(message, content=content)))

    def _waiting(self, block: Block) -> Block:
        """A block of a prompt that waits: of a text the words, of another the whole."""
        if isinstance(block, Text):
            return Text(text=self.scrub.text(block.text))
        said = strings(self.codec.encode(Message(role="user", content=(block,))))
        is_clean = all(self.scrub.text(text) == text for text in said)
        return block if is_clean else _blanked(block, MARK_DOCUMENT)

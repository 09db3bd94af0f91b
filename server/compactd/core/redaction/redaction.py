"""Redact messages of a journal: remove their contents, and every trace of the contents elsewhere in the
journal.

The structure of the messages stays (role, blocks, calls and results), so that every view is as valid as
before. Words of the redacted messages are also searched in the copies: everything that the session derives
from messages, such as summaries, stubs, file lists, titles and prompts that waited. If a model summarised
such a message, the summary is written again without a model, because the model may have used other words for
the same. (protocol.md, "session/redact".)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.entries import (
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
    Reduced,
    SettingsSet,
    Stub,
    summary_message,
    with_stub,
)
from compactd.core.redaction.blank_message import MARK_DOCUMENT, blank, blanked_block, message_words
from compactd.core.redaction.reduced_outputs import (
    blanked_output,
    clean_output,
    clean_shown,
    copied_texts,
    own_message,
    with_linked,
    with_links,
)
from compactd.core.redaction.remaining_words import has_words, possible_secrets
from compactd.core.redaction.scrub import MARK, Scrubber, scrubber
from compactd.core.redaction.summaries import WRITTEN, SummaryRewriter
from compactd.core.text.escape_invisible import file_name
from compactd.core.text.quoting import neutralise
from compactd.core.text.summary_format import EVMTS, HEADINGS, LEAD, NATURE, NONE, OLD_NATURES
from compactd.core.work.file_operations import MAX_PATH_CHARS
from compactd.protocol.messages import Block, CompactionResult, Message, Text, ToolCall, ToolResult
from compactd.protocol.wire import Cleaned, Left

UNCOUNTED = -1
"""The token count of a stub whose text was changed and not yet counted."""

_Step = TypeVar("_Step", Compacted, Pruned)


class Codec(Struct, frozen=True):
    """How messages are decoded, encoded and counted."""

    decode: Callable[[Raw], Message]
    encode: Callable[[Message], bytes]
    count: Callable[[Message], int]
    estimator: str
    """The name of the estimator that `count` uses."""


class Redaction(Struct, frozen=True, kw_only=True):
    """What a redaction changes in a journal."""

    changes: dict[int, Entry]
    """The entries that change, by their index in the journal."""
    waiting: dict[int, Entry]
    """The changed records among those that wait to be written, by their index."""
    cleaned: tuple[Cleaned, ...]
    left: tuple[Left, ...]
    fingerprints: tuple[str | bytes, ...]
    """What identifies the redacted messages and the rewritten summaries: ids, bytes, texts."""
    entry_ids: tuple[EntryId, ...]
    """The redacted messages and originals of reduced outputs, oldest first."""


def redact(
    entries: Sequence[Entry],
    entry_ids: frozenset[EntryId],
    codec: Codec,
    waiting: Sequence[Entry] = (),
) -> Redaction:
    """Redact the messages `entry_ids` in `entries`, a whole journal, and in `waiting`, the records that wait
    to be written. If a message shows a reduced tool output, both are redacted.

    In the copies (summaries, stubs, file lists, titles, waiting prompts), the mark replaces every word that
    occurs in the messages but in no other message, setting or id, and every line that only the redacted
    messages contain. Words with 6 code points and more are replaced anywhere; shorter ones only as separate
    words. A model's summary of the messages is written again by `extract`. Tokens of what changed are counted
    again. O(bytes of the journal), and an extract for each such summary.
    """
    changed: dict[int, Entry] = {}
    raws: dict[EntryId, Raw] = {}
    gone: list[Message] = []
    arguments: list[Raw] = []
    entries = with_links(entries, codec.decode)
    entry_ids = with_linked(entries, entry_ids)
    for seq, entry in enumerate(entries):
        if not isinstance(entry, Appended | Reduced):
            continue
        raws[entry.id] = entry.message
        if entry.id not in entry_ids:
            continue
        gone.append(codec.decode(entry.message))
        if isinstance(entry, Reduced):
            arguments.append(entry.arguments)
            changed[seq] = blanked_output(entry, codec)
        else:
            message = blank(gone[-1])
            changed[seq] = msgspec.structs.replace(
                entry, message=Raw(codec.encode(message)), tokens=(codec.count(message), codec.estimator)
            )
    said = [*(raws[entry_id] for entry_id in entry_ids if entry_id in raws), *arguments]
    texts = [form for raw in said for text in strings(raw) for form in _forms(text)]
    both = (*entries, *waiting)
    scrub = scrubber(
        texts,
        _other_texts(both, entry_ids, gone, codec),
        [text for entry in both for text in _copies(entry, codec)],
        entry_ids,
    )
    cleaning = _Cleaning(entry_ids, raws, frozenset(bytes(raw) for raw in said), scrub, codec)
    remaker = SummaryRewriter(entry_ids, codec.decode, codec.count, cleaning.recount_stubs)
    is_written = any(
        isinstance(entry, Compacted) and (entry.result.strategy == WRITTEN or entry.provider is not None)
        for entry in entries
    )
    for seq, entry in enumerate(entries):
        before = changed.get(seq, entry)
        after = cleaning.clean(before)
        after = remaker.remake(after, before) if is_written else after
        if after is not before:
            changed[seq] = after
    remaker.release()
    later = {at: _clean_waiting_record(entry, cleaning) for at, entry in enumerate(waiting)}
    later = {at: entry for at, entry in later.items() if entry is not waiting[at]}
    summaries = (
        entry.summary
        for before, after in ((entries, changed), (waiting, later))
        for at, entry in enumerate(before)
        if at in after and isinstance(entry, Compacted)
    )
    return Redaction(
        changes=changed,
        waiting=later,
        cleaned=tuple(_cleaned_places(entries, changed, entry_ids)),
        left=tuple(_remaining_places(both, entry_ids, gone, codec)),
        fingerprints=(*_recognised_strings(entries, gone, entry_ids), *summaries),
        entry_ids=tuple(entry_id for entry_id in raws if entry_id in entry_ids),
    )


def _clean_waiting_record(entry: Entry, cleaning: _Cleaning) -> Entry:
    """Return a record that waits to be written, without the redacted words. A waiting summary is replaced
    completely, because it covers what was said before it."""
    after = cleaning.clean(entry)
    if isinstance(after, Compacted):
        return msgspec.structs.replace(after, summary=MARK, provider=None)
    return after


def _recognised_strings(
    entries: Sequence[Entry], gone: Sequence[Message], entry_ids: frozenset[EntryId]
) -> Iterator[str | bytes]:
    asked = [entry for entry in entries if isinstance(entry, Appended | Reduced) and entry.id in entry_ids]
    for entry, message in zip(asked, gone, strict=True):
        if isinstance(entry, Appended) and entry.client_id:
            yield entry.client_id
        # A message that already said nothing cannot be recognised by its content.
        if message_words(message) != message_words(blank(message)):
            yield bytes(entry.message)
            yield message_words(message)


def _cleaned_places(
    entries: Sequence[Entry], changed: Mapping[int, Entry], entry_ids: frozenset[EntryId]
) -> Iterator[Cleaned]:
    """Return what the redaction of `entry_ids` cleaned: for each kind of stored data, the entries that were
    changed. `changed` has the new entries by their index in `entries`."""
    places: dict[str, list[EntryId]] = {
        "messages": [e.id for e in entries if isinstance(e, Appended) and e.id in entry_ids],
        "reduced outputs": [e.id for e in entries if isinstance(e, Reduced) and e.id in entry_ids],
    }
    places = {where: ids for where, ids in places.items() if ids or where == "messages"}
    for seq, after in changed.items():
        named = after.id if isinstance(after, Appended | Compacted | Pruned | Reduced) else None
        for where in _differences(entries[seq], after):
            if where == "reduced outputs" and named in entry_ids:
                continue  # it is listed already, as what was redacted
            ids = places.setdefault(where, [])
            if named is not None:
                ids.append(named)
    return (Cleaned(where=where, entry_ids=tuple(ids)) for where, ids in places.items())


def _differences(before: Entry, after: Entry) -> Iterator[str]:
    match before, after:
        case Compacted(), Compacted():
            if before.summary != after.summary:
                yield "summary"
            if before.provider != after.provider:
                yield "provider summary"
            if before.stubs != after.stubs:
                yield "stubs"
            if (before.read_files, before.modified_files) != (after.read_files, after.modified_files):
                yield "file lists"
            if before.result != after.result:
                yield "compaction result"
        case Pruned(), Pruned():
            yield "stubs"
        case CompactionEnded(), CompactionEnded():
            yield "error text"
        case SettingsSet(), SettingsSet():
            yield "title"
        case Queued(), Queued():
            yield "waiting prompts"
        case Appended(), Appended():
            if (before.read, before.modified) != (after.read, after.modified):
                yield "file lists"
            if before.outputs and before.message != after.message:
                yield "reduced outputs"
        case Reduced(), Reduced():
            yield "reduced outputs"
        case _:
            pass


def _remaining_places(
    entries: Sequence[Entry],
    entry_ids: frozenset[EntryId],
    gone: Sequence[Message],
    codec: Codec,
) -> Iterator[Left]:
    """Yield the kinds of stored data that still contain a word of the redacted messages which may be a secret
    (`possible_secrets`). Copies of messages are not examined, because they are cleaned."""
    said = (codec.encode(_without_names(message)) for message in gone)
    wanted = possible_secrets(text for raw in said for text in strings(raw))
    if not wanted:
        return
    others: list[EntryId] = []
    is_set = is_named = False
    for entry in entries:
        match entry:
            case Appended() if entry.id not in entry_ids:
                if has_words(wanted, strings(own_message(entry, codec))):
                    others.append(entry.id)
            case Reduced() if entry.id not in entry_ids:
                if has_words(wanted, (*strings(entry.message), *strings(entry.arguments))):
                    others.append(entry.id)
            case SettingsSet():
                tools = (text for tool in entry.tools or () for text in strings(tool))
                is_set |= has_words(wanted, (entry.system_prompt or "", *strings(entry.compaction), *tools))
            case Opened():
                is_set |= has_words(wanted, (entry.working_dir or "", entry.real_dir or ""))
            case ModelSet():
                is_set |= has_words(wanted, (entry.base_url or "",))
            case _:
                pass
    for message in gone:
        is_named |= has_words(wanted, tuple(_names_in(message)))
    if others:
        why = "these messages contain a word of the redacted ones; redact them too if it reveals the secret"
        yield Left(where="messages", why=why, entry_ids=tuple(others))
    if is_set:
        why = "a current or earlier system prompt, tool or setting contains a word of the redacted messages"
        yield Left(where="settings", why=f"{why}; only the client can replace it")
    if is_named:
        yield Left(
            where="names", why="message ids, call ids and tool names stay, so that the next request is valid"
        )


def _without_names(message: Message) -> Message:
    """Return the parts of a redacted message that are removed, that is, the message without tool names and
    call ids."""
    content = tuple(
        msgspec.structs.replace(block, name="", call_id="")
        if isinstance(block, ToolCall | ToolResult)
        else block
        for block in message.content
    )
    return Message(role=message.role, content=content)


def _names_in(message: Message) -> Iterator[str]:
    """Yield the parts of a redacted message that stay: its id, tool names and call ids."""
    yield message.id or ""
    for block in message.content:
        if isinstance(block, ToolCall | ToolResult):
            yield f"{block.name or ''}\n{block.call_id}"


def strings(raw: bytes | Raw) -> Iterator[str]:
    """Yield every text in a JSON value, including names and numbers. If a text is JSON itself, also yield its
    parts."""
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
    """Yield the spellings in which a text may occur: unchanged; as a summary quotes it, with signs that break
    its structure; and as a summary lists it, if it may be a file name."""
    yield text
    if (as_quoted := "\n".join(map(neutralise, text.splitlines()))) != text:
        yield as_quoted
    if len(text) <= MAX_PATH_CHARS and (listed := file_name(text)) != text:
        yield listed[1:-1]


_TAGS = "read-files modified-files Conversation Summary messages compacted user assistant system failed"

_NESTED = 3
"""How many levels of JSON inside texts are searched."""


def _other_texts(
    entries: Sequence[Entry], entry_ids: frozenset[EntryId], redacted: Iterable[Message], codec: Codec
) -> Iterator[str]:
    """Yield the texts that stay in the journal: other messages, settings, names, ids, and the fixed text of
    summaries."""
    yield "\n".join(
        (LEAD, NATURE, *OLD_NATURES, NONE, *HEADINGS, *(heading for heading, _ in EVMTS.sections), _TAGS)
    )
    for message in redacted:
        yield from _names_in(message)
        yield message.stop_reason or ""
        if message.usage is not None:
            yield bytes(message.usage).decode("utf-8", "replace")
    for entry in entries:
        match entry:
            case Opened():
                folders = (entry.working_dir or entry.imported_dir or "", entry.real_dir or "")
                yield "\n".join((entry.id, entry.parent_session_id or "", *folders))
            case ModelSet():
                yield f"{entry.model or ''}\n{entry.base_url or ''}"
            case SettingsSet():
                yield entry.system_prompt or ""
                yield from strings(entry.compaction)
                for tool in entry.tools or ():
                    yield from strings(tool)
            case Appended() if entry.id not in entry_ids:
                yield from strings(own_message(entry, codec))
            case Reduced():
                yield f"{entry.name}\n{entry.call_id or ''}"
                if entry.id not in entry_ids:
                    yield from strings(entry.message)
                    yield from strings(entry.arguments)
            case _:
                pass


def _copies(entry: Entry, codec: Codec) -> Iterator[str]:
    """Yield the texts of an entry that may repeat what a message said."""
    match entry:
        case Compacted():
            yield entry.summary
            yield "\n".join((*entry.read_files, *entry.modified_files))
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
            yield from copied_texts(entry, codec)
        case Reduced():
            yield from copied_texts(entry, codec)
        case _:
            pass


def _of_result(result: CompactionResult) -> Iterator[str]:
    yield result.reason
    yield "\n".join((*result.read_files, *result.modified_files))
    if result.retention is not None:
        yield "\n".join(result.retention.lost)
    yield "\n".join(result.unfounded or ())
    yield "\n".join(result.remarks or ())
    yield "\n".join(one.path for one in result.files_to_reread or ())


class _Cleaning(Struct, frozen=True):
    """How to remove the words of the redacted messages from the copies in one journal."""

    entry_ids: frozenset[EntryId]
    raws: dict[EntryId, Raw]
    """Every message as it was before the redaction, as bytes."""
    gone: frozenset[bytes]
    """The redacted messages as they were before the redaction, as bytes."""
    scrub: Scrubber
    codec: Codec

    def clean(self, entry: Entry) -> Entry:
        """Return `entry` without the words of the redacted messages; `entry` itself if it contained none."""
        replace, scrub = msgspec.structs.replace, self.scrub
        after: Entry
        match entry:
            case Compacted():
                short = replace(
                    entry,
                    summary=scrub.text(entry.summary),
                    read_files=scrub.paths(entry.read_files),
                    modified_files=scrub.paths(entry.modified_files),
                    result=self._result(entry.result),
                    stubs=self._stubs(entry.stubs),
                )
                if short == entry:
                    return entry
                tokens = self.codec.count(summary_message(short))
                after = replace(self.recount_stubs(short), summary_tokens=tokens)
            case Pruned():
                cut = replace(entry, stubs=self._stubs(entry.stubs))
                after = entry if cut == entry else self.recount_stubs(cut)
            case CompactionEnded():
                after = replace(entry, reason=scrub.text(entry.reason))
            case SettingsSet(title=str() as title):
                after = replace(entry, title=scrub.text(title))
            case Queued():
                after = replace(entry, message=self._clean_queued(entry.message))
            case Appended():
                # The client reports files with the last message of a call, so they may belong to another
                # message.
                after = replace(entry, read=scrub.paths(entry.read), modified=scrub.paths(entry.modified))
                after = after if entry.id in self.entry_ids else clean_shown(after, scrub, self.codec)
            case Reduced() if entry.id not in self.entry_ids:
                after = clean_output(entry, scrub, self.codec.count)
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
            unfounded=self.scrub.paths(result.unfounded) if result.unfounded else result.unfounded,
            remarks=self.scrub.paths(result.remarks) if result.remarks else result.remarks,
            files_to_reread=tuple(
                msgspec.structs.replace(one, path=self.scrub.text(one.path)) for one in result.files_to_reread
            )
            if result.files_to_reread
            else result.files_to_reread,
        )

    def _stubs(self, stubs: tuple[Stub, ...]) -> tuple[Stub, ...]:
        return tuple(self._stub(stub) for stub in stubs)

    def _stub(self, stub: Stub) -> Stub:
        is_gone = stub.entry_id in self.entry_ids
        texts = tuple((at, MARK if is_gone else self.scrub.text(text)) for at, text in stub.texts)
        if texts == stub.texts and not is_gone:
            return stub
        return Stub(stub.entry_id, texts, UNCOUNTED)

    def recount_stubs(self, entry: _Step) -> _Step:
        """Return `entry` with all its stubs counted again by the codec's estimator."""
        stubs = tuple(
            Stub(stub.entry_id, stub.texts, self.codec.count(self._stub_message(stub)))
            for stub in entry.stubs
        )
        return msgspec.structs.replace(entry, stubs=stubs, estimator=self.codec.estimator)

    def _stub_message(self, stub: Stub) -> Message:
        message = self.codec.decode(self.raws[stub.entry_id])
        is_gone = stub.entry_id in self.entry_ids
        whole = Item(entry_id=stub.entry_id, body=blank(message) if is_gone else message, tokens=0)
        return with_stub(whole, stub).message

    def _clean_queued(self, raw: Raw) -> Raw:
        """Return a prompt that waits without the words of the redacted messages. A prompt that waited and
        became a redacted message is blanked."""
        message = self.codec.decode(raw)
        if bytes(raw) in self.gone:
            return Raw(self.codec.encode(blank(message)))
        if all(self.scrub.text(text) == text for text in strings(raw)):
            return raw
        content = tuple(self._clean_waiting(block) for block in message.content)
        return Raw(self.codec.encode(msgspec.structs.replace(message, content=content)))

    def _clean_waiting(self, block: Block) -> Block:
        """Return a block of a waiting prompt without the words of the redacted messages. A text loses only
        the words; any other block that contains one is replaced as a whole."""
        if isinstance(block, Text):
            return Text(text=self.scrub.text(block.text))
        said = strings(self.codec.encode(Message(role="user", content=(block,))))
        is_clean = all(self.scrub.text(text) == text for text in said)
        return block if is_clean else blanked_block(block, MARK_DOCUMENT)

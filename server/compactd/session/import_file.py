"""Import of session files: other agents' sessions, message lists, and compactd's own journals (protocol.md,
"session/import").

A worker reads the file, counts its tokens and builds the session in memory. Then the whole session is written
to the store.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from compactd.core.budget.recorded_window import accepted_sizes, window_by_file
from compactd.core.history.append import AppendRequest, Report, plan_append
from compactd.core.history.entries import (
    Appended,
    Compacted,
    Entry,
    EntryId,
    ModelSet,
    Opened,
    Pruned,
    Reduced,
    SettingsSet,
    UsageReported,
    is_summary,
    summary_message,
)
from compactd.core.history.projection import Pending
from compactd.core.models.observed import recorded_window
from compactd.core.redaction.blank_message import message_words
from compactd.core.text.message_text import join_text_blocks
from compactd.core.tokens.counting import messages_tokens, system_tokens, tool_tokens
from compactd.formats.files.detect import detect, read
from compactd.formats.files.directory_session import gather
from compactd.formats.files.repair import Reported, split_prompt, with_reports
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.source import read_source
from compactd.formats.messages.tools import decode_tool
from compactd.protocol.errors import CompactdError, InvalidParams
from compactd.protocol.messages import CompactionResult, Message
from compactd.protocol.wire import ImportResult
from compactd.session.file_bills import FileBills
from compactd.session.follower import decode_entries
from compactd.session.host import SessionHost
from compactd.session.import_filter import ImportFilter
from compactd.session.manager import VERSION, Sessions
from compactd.session.session import Session
from compactd.storage.hook_files import message_key, read_redacted
from compactd.storage.journal_records import as_appended, scan
from compactd.storage.memory_journal import MemoryJournal
from compactd.storage.migrate import FORMAT, upgrade, version_of

AUTO = ("auto", None)

TellProgress = Callable[[float, str], None]
"""A function that is called with the share that is done (0 to 1) and the current phase, from any thread."""

NAMED = 10
"""The most entry ids that a warning lists."""

_MESSAGES_PER_REPORT = 500
"""The number of messages between two progress reports."""


async def import_session(
    sessions: Sessions,
    source: str | bytes,
    format: str | None,
    tell: TellProgress,
    home: Path,
    session_id: str | None = None,
) -> ImportResult:
    """Create a session from `source`, which is a path or the content of a session file. The session is on
    disk when this returns. It gets a new id, or `session_id`, which must be free.

    `format` is the file's format; with `auto` or None it is detected. `tell` gets the progress. `home` is the
    data folder: content that was redacted there gives a warning. Raises `InvalidParams` if there is no file
    or it contains no messages, and `LimitExceeded`, `FormatNotSupported`, `StorageFailed`. O(bytes), in a
    worker.
    """
    session_id = session_id or secrets.token_hex(8)

    def made() -> tuple[Session, ImportResult]:
        data = read_file(source) if isinstance(source, str) else source
        session, result = make_session(sessions.world, session_id, data, plain_format(format), tell)
        warnings = (*result.warnings, *find_redacted(session, home))
        return session, msgspec.structs.replace(result, warnings=warnings)

    session, result = await sessions.world.in_worker(made)
    tell(0.9, "writing")
    adopting = asyncio.ensure_future(sessions.adopt(session))
    try:
        await asyncio.shield(adopting)
    except asyncio.CancelledError:
        await asyncio.wait((adopting,))
        if adopting.exception() is None:
            await sessions.delete(session_id)  # the client never learnt its id
        raise
    await sessions.world.in_worker(lambda: keep_time(sessions, session, source))
    return result


def keep_time(sessions: Sessions, session: Session, source: str | bytes) -> None:
    """Give the session's file the time of its last message, so that `session/list` shows when the
    conversation took place and not when it was imported. If no message has a time, the time of the imported
    file is used. Blocks.
    """
    stored, now = sessions.store.file_of(session.id), sessions.world.now()
    messages = (item.message for item in session.state.originals.values())
    times = [at for message in messages if (at := message.created_at) is not None and at <= now]
    with suppress(OSError):  # the time is only shown
        if not times and isinstance(source, str):
            times = [Path(source).stat().st_mtime]
        if stored is not None and times:
            os.utime(stored, (now, max(times)))


def plain_format(format: str | None) -> str | None:
    """Return the format's name as the readers spell it."""
    return None if format is None else format.replace("_", "-")


def read_file(path: str) -> bytes:
    """Return the content of the session file at `path`, or the combined content of the files in the folder
    `path`.
    """
    if not Path(path).is_absolute() or "\0" in path:
        raise InvalidParams(f"{path!r} is not an absolute path; give an absolute path", "$.path")
    return gather(Path(path), read_source(Path(path)))


def make_session(
    world: SessionHost, session_id: str, data: bytes, format: str | None, tell: TellProgress
) -> tuple[Session, ImportResult]:
    """Return a session that exists only in memory, and what the client is told about it."""
    if not data.strip():
        raise InvalidParams("the file or content is empty", "$.content")
    tell(0.05, "reading")
    warnings: list[str] = []
    if format == "compactd" or (format in AUTO and detect(data) == "compactd"):
        filter = ImportFilter(world)
        own = _from_journal(world, session_id, data, filter, warnings)
        if own is not None:
            return own, result_of(own, "compactd", filter, warnings)
    file = read(data, format)
    if not file.messages:
        raise InvalidParams(f"the file contains no messages that could be read as {file.format}", "$.content")
    warnings += file.warnings
    tell(0.3, "counting")
    filter = ImportFilter(world)
    session = _from_other_program(world, session_id, file, filter, warnings, tell)
    return session, result_of(session, file.format, filter, warnings)


def result_of(session: Session, format: str, filter: ImportFilter, warnings: Sequence[str]) -> ImportResult:
    """Return what the client is told about an imported session."""
    return ImportResult(
        session_id=session.id,
        format=format,
        message_count=len(session.state.items),
        warnings=(*filter.warnings(), *warnings),
        ignored_settings=filter.ignored,
    )


def find_redacted(session: Session, home: Path) -> Iterator[str]:
    """Yield a warning if messages contain what was redacted in another session of the data folder `home`.
    O(messages) if anything was ever redacted.
    """
    redacted = read_redacted(home)
    if not redacted:
        return
    found = [
        entry.id
        for entry in session.entries
        if isinstance(entry, Appended)
        and redacted.contains(message_key(message_words(session.state.originals[entry.id].message)))
    ]
    if found:
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        yield (
            f"{', '.join(found[:NAMED])}{more}: these messages contain what session/redact removed from "
            "another session. Redact them here too to remove it again."
        )


# --- compactd's journals ----------------------------------------------------------------------------


def _from_journal(
    world: SessionHost, session_id: str, data: bytes, filter: ImportFilter, warnings: list[str]
) -> Session | None:
    """Return a session with the entries of a compactd journal (`data`), under the new id `session_id`.

    Return None if the journal is damaged: then only its messages can be imported. Adds to `warnings`.
    """
    found = scan(data)
    if found.damage is not None or not found.records:
        return None
    try:
        steps = FORMAT.steps_from(version_of(found.records[0]).v)
        records = upgrade([as_appended(record) for record in found.records], steps)
        entries = filter.entries(decode_entries(records), session_id)
        if not _is_numbered(entries):
            return None
        session = Session(world, session_id, MemoryJournal(), entries, persistent=False)
    except (CompactdError, msgspec.MsgspecError, LookupError, ValueError, TypeError) as error:
        warnings.append(
            f"the journal's entries contradict each other ({error}): only its messages were imported"
        )
        return None
    if found.end < len(data):
        warnings.append(f"the last {len(data) - found.end} bytes are an incomplete record and were ignored")
    return session


def _is_numbered(entries: Sequence[Entry]) -> bool:
    """Return true if the journal begins with `Opened` and its entries have the ids e1, e2 … in order. New
    entries continue this numbering.
    """
    ids = [entry.id for entry in entries if isinstance(entry, Appended | Compacted | Pruned | Reduced)]
    return isinstance(entries[0], Opened) and ids == [f"e{number + 1}" for number in range(len(ids))]


# --- other programs' sessions -----------------------------------------------------------------------


def _from_other_program(
    world: SessionHost,
    session_id: str,
    file: SessionFile,
    filter: ImportFilter,
    warnings: list[str],
    tell: TellProgress,
) -> Session:
    """Return a compactd session with another program's messages.

    A summary in the file becomes a compaction: the messages before the summary are only in the history, those
    after it are in the view.
    """
    now = world.now()
    entries: list[Entry] = [
        Opened(v=VERSION, id=session_id, at=now, imported_dir=file.working_dir, is_imported=True)
    ]
    prompt, messages = split_prompt(file)
    lines = tuple(with_reports(filter.lines(messages), warnings))
    if file.model is not None:
        entries.append(_model_of(world, file, warnings))
    session = Session(world, session_id, MemoryJournal(), entries, persistent=False)
    _add(
        session,
        SettingsSet(
            at=now,
            system_prompt=filter.system_prompt(prompt),
            title=file.title,
            tools=file.tools or None,
            fixed_tokens=(
                system_tokens(prompt, session.counter),
                sum(tool_tokens(decode_tool(raw), session.counter) for raw in file.tools),
            ),
        ),
    )
    first_kept, prompts = dict(file.first_kept), len(file.messages) - len(messages)
    pinned = dict(file.pinned)
    ids: list[EntryId] = []
    count = 0
    bills = FileBills(file)
    for batch in _batches(lines):
        if is_summary(batch[0][0]):
            count += 1
            place = len(ids) + prompts
            for report in bills.before(place, session.state.epoch):
                _add(session, report)
            kept = first_kept.get(place, -1) - prompts
            stayed = [ids[at - prompts] for at in pinned.get(place, ()) if prompts <= at < place]
            first = ids[kept] if 0 <= kept < len(ids) else None
            entry = _compaction_of(session, batch[0][0], count, first, stayed)
            _add(session, entry)
            ids.append(entry.id)
            batch = batch[1:]
        ids += _append(session, batch, now, bills, len(ids) + prompts)
        tell(0.3 + 0.6 * len(ids) / max(1, len(lines)), "counting")
    for report in bills.rest(session.state.epoch):
        _add(session, report)
    if count:
        warnings.append(
            f"the file contains {count} {'summary' if count == 1 else 'summaries'} by another program: the "
            "messages that were summarised are in the history, but not in the context. session/undo restores "
            "them to the context"
        )
    session.pending = Pending(session.state.path_items())
    session.last_sent_epoch = session.state.epoch
    return session


def _model_of(world: SessionHost, file: SessionFile, warnings: list[str]) -> ModelSet:
    """Return the entry that sets the file's model, with the context window that the file records for it."""
    found = world.lookup(file.model, None)
    accepted = accepted_sizes(message for message, _ in file.messages[file.model_from :])
    recorded = window_by_file(file.evidence, accepted, None if found is None else recorded_window(found))
    warnings += recorded.doubts
    return ModelSet(
        at=world.now(),
        model=file.model,
        recorded_window=recorded.window,
        recorded_source=recorded.source,
    )


def _batches(lines: Sequence[Reported]) -> list[Sequence[Reported]]:
    """Split the messages into batches of at most `_MESSAGES_PER_REPORT`. A summary always begins a batch."""
    starts = [i for i, (message, _, _) in enumerate(lines) if is_summary(message)]
    cuts = sorted({0, *starts, *range(0, len(lines), _MESSAGES_PER_REPORT)})
    return [lines[a:b] for a, b in zip(cuts, [*cuts[1:], len(lines)], strict=True)]


def _append(
    session: Session, lines: Sequence[Reported], now: float, bills: FileBills, place: int
) -> tuple[EntryId, ...]:
    """Append messages and their usage reports. `place` is the position of the first message in the file."""
    reports: list[Report | None] = [report for _, _, report in lines]
    intake = plan_append(
        session.state,
        AppendRequest(
            read=[(message, raw) for message, raw, _ in lines],
            tokens=messages_tokens([message for message, _, _ in lines], session.counter),
            own_reports=reports,
        ),
        at=now,
        estimator=session.counter.name,
        handed_epoch=session.state.epoch,
    )
    messages = iter(intake.messages)
    message: Message | None = None
    for entry in intake.entries:
        if isinstance(entry, Appended):
            message = next(messages)
            place += 1
            _add(session, msgspec.structs.replace(entry, at=message.created_at or now), message)
        elif isinstance(entry, UsageReported) and message is not None:
            for report in bills.reports(entry, message, place - 1):
                _add(session, report)
        else:
            _add(session, entry)
    return intake.entry_ids


def _add(session: Session, entry: Entry, message: Message | None = None) -> None:
    session.entries.append(entry)
    session.state.apply(entry, message)


def _compaction_of(
    session: Session, message: Message, number: int, first_kept: EntryId | None, stayed: Sequence[EntryId]
) -> Compacted:
    """Return a compaction entry for `message`, the summary with which another program replaced older
    messages.

    `number` counts the file's summaries from 1. `first_kept` is the first of the newest messages that the
    program kept. `stayed` are older messages that the program kept as well.
    """
    state = session.state
    start = state.path.index(first_kept) if first_kept in state.originals else len(state.path)
    tail = [state.originals[i] for i in state.path[start:] if i in state.originals]
    older = set(state.path[:start])
    pinned = [state.originals[i] for i in stayed if i in state.originals and i in older]
    kept = [*pinned, *tail]
    meta = message.meta
    entry = Compacted(
        id=state.next_id,
        at=message.created_at or session.host.now(),
        compaction_id=f"imported-{number}",
        epoch=state.epoch + 1,
        summary=join_text_blocks(message.content, "\n\n"),
        summary_tokens=0,
        result=CompactionResult(compacted=True),
        parent=state.leaf,
        first_kept=tail[0].entry_id if tail else None,
        pinned=tuple(item.entry_id for item in pinned),
        read_files=meta.read_files if meta is not None else (),
        modified_files=meta.modified_files if meta is not None else (),
        estimator=session.counter.name,
    )
    tokens = session.count_message(summary_message(entry))
    after = sum(state.fixed) + tokens + sum(item.tokens for item in kept)
    result = CompactionResult(
        compacted=True,
        compaction_id=entry.compaction_id,
        strategy="summarize",
        messages_before=len(state.items),
        messages_after=1 + len(kept),
        messages_removed=max(0, len(state.items) - len(kept)),
        tokens_before=state.estimated_size,
        tokens_after=after,
        tokens_saved=max(0, state.estimated_size - after),
        first_kept_entry_id=entry.first_kept,
        kept_messages=len(tail),
        pinned_entry_ids=entry.pinned,
        read_files=entry.read_files,
        modified_files=entry.modified_files,
        created_at=entry.at,
    )
    return msgspec.structs.replace(entry, summary_tokens=tokens, result=result)

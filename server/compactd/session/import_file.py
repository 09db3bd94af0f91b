"""Session files become sessions: those of other agents, lists of messages, and our own, compactions and all.

The whole of a file is read, counted and folded beside the loop, then written in one go. (protocol.md,
"session/import".)
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd._runtime.garbage import without_collector
from compactd.core.budget.recorded_window import accepted_sizes, window_by_file
from compactd.core.history.append import New, Report, take
from compactd.core.history.entries import (
    Appended,
    Compacted,
    Entry,
    EntryId,
    ModelSet,
    Opened,
    Pruned,
    SettingsSet,
    is_summary,
    summary_message,
)
from compactd.core.history.projection import Pending
from compactd.core.models.observed import recorded_window
from compactd.core.redaction.blank import content_of
from compactd.core.tokens.counting import messages_tokens, system_tokens, tool_tokens
from compactd.formats.files.detect import detect, read
from compactd.formats.files.directory_session import gathered
from compactd.formats.files.repair import Reported, split_prompt, with_reports
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.source import bytes_of
from compactd.formats.messages.tools import decode_tool
from compactd.protocol.errors import CompactdError, InvalidParams
from compactd.protocol.messages import CompactionResult, Message, Text
from compactd.protocol.settings import IgnoredSetting
from compactd.session.follower import decode_entries
from compactd.session.host import World
from compactd.session.import_filter import ImportFilter
from compactd.session.manager import VERSION, Sessions
from compactd.session.session import Session
from compactd.storage.hook_files import key_of, redacted_here
from compactd.storage.memory_journal import MemoryJournal
from compactd.storage.migrate import FORMAT, upgraded, version_of
from compactd.storage.records import bare, scan

AUTO = ("auto", None)

Tell = Callable[[float, str], None]
"""Takes the share that is done, and what is done now; from whatever thread."""

NAMED = 10
"""Entries that a warning names."""

_TOLD_EVERY = 500
"""Messages between two words about the progress."""


class Imported(Struct, frozen=True, kw_only=True):
    """A session that was made of a file."""

    session: Session
    format: str
    warnings: tuple[str, ...]
    ignored: tuple[IgnoredSetting, ...]
    """Settings of the file that are not in force."""


class _Made(Struct, frozen=True, kw_only=True):
    """A new session, in memory alone."""

    session: Session
    format: str
    warnings: tuple[str, ...]
    ignored: tuple[IgnoredSetting, ...]


async def import_session(
    sessions: Sessions, source: str | bytes, format: str | None, tell: Tell, home: Path
) -> Imported:
    """A new session with what stands in `source`, a path or the bytes themselves; durable when it returns.

    `format`: as `formats.detect.read`. `home`: the data folder, which knows what was redacted. Raises
    `InvalidParams` for what is no file, or holds no messages; `LimitExceeded`, `FormatNotSupported`,
    `StorageFailed`. Cost: O(bytes), in a worker.
    """
    session_id = secrets.token_hex(8)

    def made() -> _Made:
        data = _read_file(source) if isinstance(source, str) else source
        with without_collector():
            done = _made(sessions.world, session_id, data, _plain(format), tell)
            return msgspec.structs.replace(
                done, warnings=(*done.warnings, *_brought_back(done.session, home))
            )

    new = await sessions.world.in_worker(made)
    tell(0.9, "writing")
    adopting = asyncio.ensure_future(sessions.adopt(new.session))
    try:
        session = await asyncio.shield(adopting)
    except asyncio.CancelledError:
        await asyncio.wait((adopting,))
        if adopting.exception() is None:
            await sessions.delete(session_id)  # nobody knows its id
        raise
    return Imported(session=session, format=new.format, warnings=new.warnings, ignored=new.ignored)


def _plain(format: str | None) -> str | None:
    return None if format is None else format.replace("_", "-")


def _read_file(path: str) -> bytes:
    """What the session at `path` holds: a regular file that the user can read, or a folder of them."""
    if not Path(path).is_absolute() or "\0" in path:
        raise InvalidParams(f"{path!r} is no absolute path; the daemon has no folder of its own", "$.path")
    return gathered(Path(path), bytes_of(Path(path)))


def _made(world: World, session_id: str, data: bytes, format: str | None, tell: Tell) -> _Made:
    if not data.strip():
        raise InvalidParams("there is nothing in it", "$.content")
    tell(0.05, "reading")
    warnings: list[str] = []
    if format == "compactd" or (format in AUTO and detect(data) == "compactd"):
        filter = ImportFilter(world)
        own = _own(world, session_id, data, filter, warnings)
        if own is not None:
            return _made_of(own, "compactd", filter, warnings)
    file = read(data, format)
    if not file.messages:
        raise InvalidParams(f"it holds no messages that could be read as {file.format}", "$.content")
    warnings += file.warnings
    tell(0.3, "counting")
    filter = ImportFilter(world)
    session = _foreign(world, session_id, file, filter, warnings, tell)
    return _made_of(session, file.format, filter, warnings)


def _made_of(session: Session, format: str, filter: ImportFilter, warnings: Sequence[str]) -> _Made:
    told = (*filter.warnings(), *warnings)
    return _Made(session=session, format=format, warnings=told, ignored=filter.ignored)


def _brought_back(session: Session, home: Path) -> Iterator[str]:
    """A warning if messages say the same as some that were redacted here. O(messages) if any was."""
    redacted = redacted_here(home)
    if not redacted:
        return
    found = [
        entry.id
        for entry in session.entries
        if isinstance(entry, Appended)
        and redacted.holds(key_of(content_of(session.fold.originals[entry.id].message)))
    ]
    if found:
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        yield (
            f"{', '.join(found[:NAMED])}{more}: the file brings back what session/redact took out of a "
            "session here. The words are in this session again; redact these messages to take them out."
        )


# --- our own journals -------------------------------------------------------------------------------


def _own(
    world: World, session_id: str, data: bytes, filter: ImportFilter, warnings: list[str]
) -> Session | None:
    """The session of a journal of ours under another id; None where only its messages can be read."""
    found = scan(data)
    if found.damage is not None or not found.records:
        return None
    try:
        steps = FORMAT.steps_from(version_of(found.records[0]).v)
        records = upgraded([bare(record) for record in found.records], steps)
        entries = filter.entries(decode_entries(records), session_id)
        if not _is_numbered(entries):
            return None
        session = Session(world, session_id, MemoryJournal(), entries, persistent=False)
    except (CompactdError, msgspec.MsgspecError, LookupError, ValueError, TypeError) as error:
        warnings.append(f"the journal does not fit together ({error}): only its messages were read")
        return None
    if found.end < len(data):
        warnings.append(f"the last {len(data) - found.end} bytes are no whole record and were left out")
    return session


def _is_numbered(entries: Sequence[Entry]) -> bool:
    """Entries are called e1, e2 … in their order, as the next ones will be."""
    ids = [entry.id for entry in entries if isinstance(entry, Appended | Compacted | Pruned)]
    return isinstance(entries[0], Opened) and ids == [f"e{number + 1}" for number in range(len(ids))]


# --- other programs' sessions -----------------------------------------------------------------------


def _foreign(
    world: World, session_id: str, file: SessionFile, filter: ImportFilter, warnings: list[str], tell: Tell
) -> Session:
    """A session of ours with these messages.

    A summary of the other program's becomes a compaction: what it stands for is in the history, what comes
    after it in the view.
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
    for batch in _batches(lines):
        if is_summary(batch[0][0]):
            count += 1
            place = len(ids) + prompts
            kept = first_kept.get(place, -1) - prompts
            stayed = [ids[at - prompts] for at in pinned.get(place, ()) if prompts <= at < place]
            first = ids[kept] if 0 <= kept < len(ids) else None
            entry = _compacted(session, batch[0][0], count, first, stayed)
            _add(session, entry)
            ids.append(entry.id)
            batch = batch[1:]
        ids += _append(session, batch, now)
        tell(0.3 + 0.6 * len(ids) / max(1, len(lines)), "counting")
    if count:
        warnings.append(
            f"{count} earlier {'summary' if count == 1 else 'summaries'} of the other program: what "
            "came before is in the history, not in the context; session/undo brings it back"
        )
    session.pending = Pending(session.fold.path_items())
    session.handed_epoch = session.fold.epoch
    return session


def _model_of(world: World, file: SessionFile, warnings: list[str]) -> ModelSet:
    """The model that the file names, with the window that the file shows for it."""
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
    """The messages in pieces, a summary always the first of its piece."""
    starts = [i for i, (message, _, _) in enumerate(lines) if is_summary(message)]
    cuts = sorted({0, *starts, *range(0, len(lines), _TOLD_EVERY)})
    return [lines[a:b] for a, b in zip(cuts, [*cuts[1:], len(lines)], strict=True)]


def _append(session: Session, lines: Sequence[Reported], now: float) -> tuple[EntryId, ...]:
    reports: list[Report | None] = [report for _, _, report in lines]
    intake = take(
        session.fold,
        New(
            read=[(message, raw) for message, raw, _ in lines],
            tokens=messages_tokens([message for message, _, _ in lines], session.counter),
            own_reports=reports,
        ),
        at=now,
        estimator=session.counter.name,
        handed_epoch=session.fold.epoch,
    )
    messages = iter(intake.messages)
    for entry in intake.entries:
        if isinstance(entry, Appended):
            message = next(messages)
            _add(session, msgspec.structs.replace(entry, at=message.created_at or now), message)
        else:
            _add(session, entry)
    return intake.entry_ids


def _add(session: Session, entry: Entry, message: Message | None = None) -> None:
    session.entries.append(entry)
    session.fold.apply(entry, message)


def _compacted(
    session: Session, message: Message, number: int, first_kept: EntryId | None, stayed: Sequence[EntryId]
) -> Compacted:
    """The compaction that another program's summary tells of; `stayed`: older messages that it kept."""
    state = session.fold
    start = state.path.index(first_kept) if first_kept in state.originals else len(state.path)
    tail = [state.originals[i] for i in state.path[start:] if i in state.originals]
    older = set(state.path[:start])
    pinned = [state.originals[i] for i in stayed if i in state.originals and i in older]
    kept = [*pinned, *tail]
    meta = message.meta
    entry = Compacted(
        id=state.next_id,
        at=message.created_at or session.world.now(),
        compaction_id=f"imported-{number}",
        epoch=state.epoch + 1,
        summary="\n\n".join(block.text for block in message.content if isinstance(block, Text)),
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
        tokens_before=state.estimated,
        tokens_after=after,
        tokens_saved=max(0, state.estimated - after),
        first_kept_entry_id=entry.first_kept,
        kept_messages=len(tail),
        pinned_entry_ids=entry.pinned,
        read_files=entry.read_files,
        modified_files=entry.modified_files,
        created_at=entry.at,
    )
    return msgspec.structs.replace(entry, summary_tokens=tokens, result=result)

"""Redaction: remove a secret from a session, from its history, and from every file of compactd that contains
it.

This is the one exception to "nothing is deleted" (protocol.md, "session/redact"). `storage/word_holders.py`
lists what happens to each kind of file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from compactd.core.history.entries import Appended, Compacted, Entry, EntryId, Redacted
from compactd.core.history.projection import Pending
from compactd.core.history.state import SessionState, replay
from compactd.core.redaction.redaction import Codec, Redaction
from compactd.core.redaction.redaction import redact as cleaned_of
from compactd.formats.files.journal_messages import decoder_of
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import InvalidParams, SessionBusy
from compactd.protocol.wire import Cleaned, Left, RedactResult
from compactd.session.follower import decode_entries
from compactd.session.session import Session
from compactd.session.slot import ExclusiveOperation
from compactd.storage import files
from compactd.storage.hook_files import HookFiles, HookIsBusy, is_mirror, message_key, remember_redacted
from compactd.storage.outside_copies import left_outside

_log = logging.getLogger("compactd.redacting")

_FORKED = "another session of this agent (a fork) contains the same messages; redact them there too"


async def redact(session: Session, entry_ids: Sequence[EntryId], home: Path | None = None) -> RedactResult:
    """Replace the content of these messages by a marker text, in memory and on disk.

    Returns which files and texts were cleaned, and which could not be. When this returns, the journal on disk
    is a new file without the redacted content. `home` is the data folder, in which hooks also keep copies of
    messages; with None these copies stay.

    Call this in the session's queue, so that earlier requests are done and later ones wait. The redaction
    runs to its end even if the caller is cancelled. Raises `SessionBusy`, `SessionLocked`,
    `StorageFailed` (then the messages are unchanged), and `InvalidParams` for an id that is not a message.
    """
    session.require_idle()
    session.require_journal()
    _check(session, entry_ids)
    # A prepared summary could repeat the redacted content, and so could that of a compaction that begins now.
    session.drop_preparation()
    running = session.operation = ExclusiveOperation(session.emit, "", None)
    task = asyncio.ensure_future(_carry_out(session, running, tuple(dict.fromkeys(entry_ids)), home))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        task.exception()
        raise


async def _carry_out(
    session: Session, running: ExclusiveOperation, entry_ids: tuple[EntryId, ...], home: Path | None
) -> RedactResult:
    journal, world = session.require_journal(), session.host
    entries, counter = tuple(session.entries), session.counter
    codec = Codec(decoder_of(entries), encode_message, session.count_message, counter.name)
    home = home if session.persistent else None
    hook = HookFiles(home, session.id) if home is not None and is_mirror(session.id) else None

    def made() -> tuple[Redaction, dict[int, bytes]]:
        if hook is None:
            done = cleaned_of(entries, frozenset(entry_ids), codec)
        else:
            done = _with_hook(hook, entries, frozenset(entry_ids), codec)
        return done, {seq: msgspec.json.encode(entry) for seq, entry in done.changes.items()}

    try:
        done, records = await world.in_worker(made)
        # Clean the journal last: if the process is killed before, the journal still has the messages, so the
        # redaction can be repeated.
        if session.snapshots is not None:
            await session.snapshots.forget()
        await journal.replace(records)
        if home is not None:
            await world.in_worker(partial(_remember, home, done))
        for seq, entry in done.changes.items():
            session.entries[seq] = entry
        await _rebuild_state(session)
        marker = Redacted(at=world.now(), entry_ids=done.entry_ids, epoch=session.state.epoch + 1)
        await session.wait_durable(session.write(marker))
    finally:
        session.operation = None
        running.end()
    session.emit_usage()
    outside = () if home is None else await world.in_worker(lambda: left_outside(home, session.id))
    return RedactResult(
        redacted=len(done.entry_ids),
        cleaned=(*done.cleaned, *_removed_stores(session, hook is not None)),
        left=(*done.left, *outside),
    )


def _with_hook(
    hook: HookFiles, entries: Sequence[Entry], entry_ids: frozenset[EntryId], codec: Codec
) -> Redaction:
    """Remove the messages `entry_ids` from the files that the hook keeps about this session, and return the
    redaction of the session's entries. Raises `SessionBusy`, `StorageFailed`.
    """
    try:
        with hook.lock():
            waiting = hook.waiting_records()
            # Waiting entries get new ids when the journal gets them, so `entry_ids` cannot mean them.
            records = decode_entries(waiting)
            done = cleaned_of(entries, entry_ids, codec, [_with_id(one, "waiting") for one in records])
            keys = [message_key(one) for one in done.fingerprints]
            hook.redact(
                keys,
                {
                    at: msgspec.json.encode(_with_id(entry, _id_of(records[at])))
                    for at, entry in done.waiting.items()
                },
            )
            others = tuple(
                Left(where="mirror", why=_FORKED, path=str(path)) for path in hook.other_journals(keys)
            )
            done = msgspec.structs.replace(done, left=(*done.left, *others))
    except HookIsBusy:
        raise SessionBusy(
            "A hook of this session's agent is running. Send the request again.", holder="hook"
        ) from None
    except OSError as refused:
        raise files.storage_failed(
            "The redacted messages could not be removed from the hook's files", refused
        ) from refused
    return done


def _remember(home: Path, done: Redaction) -> None:
    """Store hashes of the redacted content, so that a later import of the same content gives a warning. A
    failure is only logged.
    """
    try:
        remember_redacted(home, [message_key(one) for one in done.fingerprints])
    except (HookIsBusy, OSError) as failed:
        _log.warning(
            "the hashes of the redacted messages could not be stored, so importing them again will give no "
            "warning: %s",
            failed,
        )


def _with_id(entry: Entry, entry_id: EntryId) -> Entry:
    """Return `entry`, a message or compaction, with the id `entry_id`. Other entries stay the same: a hook
    writes none.
    """
    match entry:
        case Appended() | Compacted():
            return msgspec.structs.replace(entry, id=entry_id)
        case _:
            return entry


def _id_of(entry: Entry) -> EntryId:
    return entry.id if isinstance(entry, Appended | Compacted) else ""


def _removed_stores(session: Session, has_hook: bool) -> tuple[Cleaned, ...]:
    """Return the stores that a redaction removes as a whole: search index, hook files and snapshots. They may
    not have contained the redacted content.
    """
    names = ("index",) if session.persistent else ()
    names = (*names, "hook") if has_hook else names
    return tuple(Cleaned(where=name) for name in (*names, *(("snapshots",) if session.snapshots else ())))


def _check(session: Session, entry_ids: Sequence[EntryId]) -> None:
    if not entry_ids:
        raise InvalidParams("entry_ids is empty; name the messages to redact", "$.entry_ids")
    for index, entry_id in enumerate(entry_ids):
        if entry_id not in session.state.originals and entry_id not in session.state.outputs.entries:
            raise InvalidParams(
                f"{entry_id!r} is not a message of this session; session/history lists them",
                f"$.entry_ids[{index}]",
            )


async def _rebuild_state(session: Session) -> None:
    """Rebuild the session's state in a worker, then apply the entries that were written meanwhile."""
    entries, counter = tuple(session.entries), session.counter

    def folded() -> tuple[SessionState, Pending]:
        state = replay(entries, decoder_of(entries))
        state.recount(counter.name, session.count_message)
        return state, Pending(state.path_items())

    state, pending = await session.host.in_worker(folded)
    before, facts = session.state, session.drop_facts()
    session.state, session.pending = state, pending
    for entry in session.entries[len(entries) :]:
        session.state.apply(entry)
        if isinstance(entry, Appended):
            pending.add(state.originals[entry.id].message)
    session.last_sent_epoch = min(session.last_sent_epoch, session.state.epoch)
    session.refresh()
    await session.host.in_worker(before.release)
    if facts is not None:
        await session.host.in_worker(facts.release)

"""A secret that was pasted leaves the session: its view, its history, its copies, and every file of ours.

`storage/holders.py` says what becomes of each file.

The one exception to "nothing is deleted". (protocol.md, "session/redact".)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from compactd._runtime.garbage import without_collector
from compactd.core.history.entries import Appended, Compacted, Entry, EntryId, Redacted
from compactd.core.history.projection import Pending
from compactd.core.history.state import Fold, fold
from compactd.core.redaction.redaction import Cleaned, Codec, Left, Redaction
from compactd.core.redaction.redaction import redact as cleaned_of
from compactd.formats.files.journal import decoder_of
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import InvalidParams, SessionBusy
from compactd.session.follower import decode_entries
from compactd.session.session import Session
from compactd.session.slot import Running
from compactd.storage import files
from compactd.storage.copies import copies_of
from compactd.storage.hook_files import HookFiles, HookIsBusy, is_mirror, key_of, remember_redacted

_log = logging.getLogger("compactd.redacting")

_FORKED = "another session of this agent took in the same messages, as a fork does; redact them there too"


class Outcome(msgspec.Struct, frozen=True):
    """What a redaction did."""

    count: int
    """Messages."""
    cleaned: tuple[Cleaned, ...]
    left: tuple[Left, ...]


async def redact(session: Session, entry_ids: Sequence[EntryId], home: Path | None = None) -> Outcome:
    """Replaces what these messages say by a mark, here and on the disk, and tells what was cleaned and
    what cannot be. `home` is the data folder, where hooks keep words too; none where there is none.

    Durable when it returns: the journal's file is another one then, and nothing of the words is left in
    it. Run it in the session's line: what came before is in, what comes after waits. Once begun it is carried
    out, cancelled or not. Raises `SessionBusy`, `SessionLocked`, `StorageFailed` (then the messages stand as
    they were), `InvalidParams` for an id that is no message.
    """
    session.free()
    session.writable()
    _check(session, entry_ids)
    # No compaction may begin meanwhile: it would write down again what is to go.
    running = session.running = Running(session.emit, "", None)
    task = asyncio.ensure_future(_carried_out(session, running, tuple(dict.fromkeys(entry_ids)), home))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        task.exception()
        raise


async def _carried_out(
    session: Session, running: Running, entry_ids: tuple[EntryId, ...], home: Path | None
) -> Outcome:
    journal, world = session.writable(), session.world
    entries, counter = tuple(session.entries), session.counter
    codec = Codec(decoder_of(entries), encode_message, session.count_message, counter.name)
    home = home if session.persistent else None
    hook = HookFiles(home, session.id) if home is not None and is_mirror(session.id) else None

    def made() -> tuple[Redaction, dict[int, bytes]]:
        with without_collector():
            if hook is None:
                done = cleaned_of(entries, frozenset(entry_ids), codec)
            else:
                done = _with_hook(hook, entries, frozenset(entry_ids), codec)
            return done, {seq: msgspec.json.encode(entry) for seq, entry in done.changes.items()}

    try:
        done, records = await world.in_worker(made)
        # Whatever may hold the words goes before the journal: if we are killed meanwhile, it still says that
        # they are there.
        if session.snapshots is not None:
            await session.snapshots.forget()
        await journal.replace(records)
        if home is not None:
            await world.in_worker(partial(_remembered, home, done))
        for seq, entry in done.changes.items():
            session.entries[seq] = entry
        await _fold_again(session)
        marker = Redacted(at=world.now(), entry_ids=entry_ids, epoch=session.fold.epoch + 1)
        await session.durable(session.write(marker))
    finally:
        session.running = None
        running.end()
    session.tell_usage()
    outside = () if home is None else await world.in_worker(lambda: copies_of(home, session.id))
    return Outcome(
        len(entry_ids),
        (*done.cleaned, *_removed(session, hook is not None)),
        (*done.left, *(Left(where=copy.kind, why=copy.why, path=copy.path) for copy in outside)),
    )


def _with_hook(
    hook: HookFiles, entries: Sequence[Entry], entry_ids: frozenset[EntryId], codec: Codec
) -> Redaction:
    """The redaction of a session that a hook mirrors; what the hook keeps is cleaned when it returns."""
    try:
        with hook.locked():
            waiting = hook.waiting()
            # Their ids are given anew when they are written: none of them is one that is redacted.
            records = decode_entries(waiting)
            done = cleaned_of(entries, entry_ids, codec, [_with_id(one, "waiting") for one in records])
            keys = [key_of(one) for one in done.known_by]
            hook.redact(
                keys,
                {
                    at: msgspec.json.encode(_with_id(entry, _id_of(records[at])))
                    for at, entry in done.waiting.items()
                },
            )
            others = tuple(Left(where="mirror", why=_FORKED, path=str(path)) for path in hook.others(keys))
            done = msgspec.structs.replace(done, left=(*done.left, *others))
    except HookIsBusy:
        raise SessionBusy(
            "a hook of this session's agent is at work: send the request again", holder="hook"
        ) from None
    except OSError as refused:
        raise files.storage_failed("What the hook keeps could not be cleaned", refused) from refused
    return done


def _remembered(home: Path, done: Redaction) -> None:
    """So that an import can tell. The redaction is done already and does not fail for this."""
    try:
        remember_redacted(home, [key_of(one) for one in done.known_by])
    except (HookIsBusy, OSError) as failed:
        _log.warning("what was redacted could not be remembered for imports: %s", failed)


def _with_id(entry: Entry, entry_id: EntryId) -> Entry:
    """The same record under another id. A hook writes messages and compactions."""
    match entry:
        case Appended() | Compacted():
            return msgspec.structs.replace(entry, id=entry_id)
        case _:
            return entry


def _id_of(entry: Entry) -> EntryId:
    return entry.id if isinstance(entry, Appended | Compacted) else ""


def _removed(session: Session, has_hook: bool) -> tuple[Cleaned, ...]:
    """What went as a whole, whether it held the words or not."""
    names = ("index",) if session.persistent else ()
    names = (*names, "hook") if has_hook else names
    return tuple(Cleaned(where=name) for name in (*names, *(("snapshots",) if session.snapshots else ())))


def _check(session: Session, entry_ids: Sequence[EntryId]) -> None:
    if not entry_ids:
        raise InvalidParams("entry_ids is empty; name the messages to redact", "$.entry_ids")
    for index, entry_id in enumerate(entry_ids):
        if entry_id not in session.fold.originals:
            raise InvalidParams(
                f"{entry_id!r} is no message of this session; session/history lists them",
                f"$.entry_ids[{index}]",
            )


async def _fold_again(session: Session) -> None:
    """Folds the session's entries anew, beside the loop; what comes meanwhile is taken in at the end."""
    entries, counter = tuple(session.entries), session.counter

    def folded() -> tuple[Fold, Pending]:
        with without_collector():
            state = fold(entries, decoder_of(entries))
            state.recount(counter.name, session.count_message)
            return state, Pending(state.path_items())

    state, pending = await session.world.in_worker(folded)
    before, facts = session.fold, session.facts
    session.fold, session.pending, session.facts = state, pending, None
    for entry in session.entries[len(entries) :]:
        session.fold.apply(entry)
        if isinstance(entry, Appended):
            pending.add(state.originals[entry.id].message)
    session.handed_epoch = min(session.handed_epoch, session.fold.epoch)
    session.refresh()
    await session.world.in_worker(before.release)
    if facts is not None:
        await session.world.in_worker(facts.release)

"""A secret that was pasted leaves the session: its view, its history, its copies, its file.

The one exception to "nothing is deleted". (Contract, `session/redact`.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from compactd.collector import without_collector
from compactd.core.entries import Appended, Entry, EntryId, Redacted
from compactd.core.fold import Fold, fold
from compactd.core.projection import Pending
from compactd.core.redaction import Codec, redaction
from compactd.errors import InvalidParams
from compactd.formats.journalled import decoder_of
from compactd.formats.neutral_out import encode_message
from compactd.running import Running
from compactd.session import Session


async def redact(session: Session, entry_ids: Sequence[EntryId]) -> int:
    """Replaces what these messages say by a mark, here and on the disk: how many they were.

    Durable when it returns: the journal's file is another one then, and nothing of the words is left in
    it. Run it in the session's line: what came before is in, what comes after waits. Once begun it is carried
    out, cancelled or not. Raises `SessionBusy`, `SessionLocked`, `StorageFailed` (then nothing was changed),
    `InvalidParams` for an id that is no message.
    """
    session.free()
    session.writable()
    _check(session, entry_ids)
    # No compaction may begin meanwhile: it would write down again what is to go.
    running = session.running = Running(session, "", None)
    task = asyncio.ensure_future(_carried_out(session, running, tuple(dict.fromkeys(entry_ids))))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        task.exception()
        raise


async def _carried_out(session: Session, running: Running, entry_ids: tuple[EntryId, ...]) -> int:
    journal, world = session.writable(), session.world
    entries, counter = tuple(session.entries), session.counter
    codec = Codec(decoder_of(entries), encode_message, session.count_message, counter.name)

    def made() -> tuple[dict[int, Entry], dict[int, bytes]]:
        with without_collector():
            changes = redaction(entries, frozenset(entry_ids), codec)
            return changes, {seq: msgspec.json.encode(entry) for seq, entry in changes.items()}

    try:
        changes, records = await world.in_worker(made)
        await journal.replace(records)
        for seq, entry in changes.items():
            session.entries[seq] = entry
        await _fold_again(session)
        if session.snapshots is not None:
            await session.snapshots.forget()
        marker = Redacted(at=world.now(), entry_ids=entry_ids, epoch=session.fold.epoch + 1)
        await session.durable(session.write(marker))
    finally:
        session.running = None
        running.end()
    session.tell_usage()
    return len(entry_ids)


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

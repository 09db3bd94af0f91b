"""A session that another process writes, kept up to date by reading along."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from compactd.core.entries import Entry
from compactd.errors import CompactdError, SessionCorrupt
from compactd.session import Session
from compactd.store.base import Follower

FOLLOW_S = 0.3
"""How often such a session is read again; clients may count on 1 s (contract.md)."""

_decode = msgspec.json.Decoder(Entry).decode


def decode_entries(records: Sequence[bytes | memoryview]) -> list[Entry]:
    """The entries of a journal's records, oldest first. O(records).

    Raises `SessionCorrupt` for a record that is whole but of no kind that this version knows.
    """
    entries: list[Entry] = []
    for record in records:
        try:
            entries.append(_decode(record))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SessionCorrupt(
                f"Record {len(entries) + 1} of the session's journal cannot be understood: {error}. "
                "Nothing was changed; a newer version of compactd may have written it.",
                line=len(entries) + 1,
                readable_before=len(entries),
            ) from None
    return entries


@contextmanager
def fitting() -> Iterator[None]:
    """For what makes a session of entries. Raises `SessionCorrupt` where they do not fit together, though
    each is whole: no daemon wrote them so, a stranger may have."""
    try:
        yield
    except (LookupError, ValueError, TypeError, RecursionError) as error:
        raise SessionCorrupt(
            "The records of the session's journal do not fit together: it was changed by hand, or made by "
            "somebody else. Nothing was changed; `compactd doctor` reads it."
        ) from error


class Following:
    """Reads along with the owner of `session` until it is stopped."""

    def __init__(self, session: Session, follower: Follower) -> None:
        self._session = session
        self._follower = follower
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Ends the reading."""
        self._task.cancel()
        await asyncio.wait((self._task,))
        self._follower.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FOLLOW_S)
            try:
                await self._read_on()
            except CompactdError as error:
                # Deleted or damaged under us: what was read stays readable here.
                self._session.world.notice(
                    f"session {self._session.id} is no longer followed: {error.message}"
                )
                return

    async def _read_on(self) -> None:
        session = self._session
        news = await session.world.in_worker(self._follower.poll)
        if not news.records:
            return
        entries = await session.world.in_worker(lambda: decode_entries(news.records))
        if news.first_seq == len(session.entries):
            session.follow(entries)
        else:
            session.entries[news.first_seq :] = entries
            session.reload()
        session.tell_usage()

"""What a long computation leaves behind, given back: decoded messages that no request shows, free memory.

Behind a compaction of 0.5M tokens the process held 8 to 17 times the session's journal; with this 5 to 6, of
which the loaded modules are half (measured 2026-11). What went into the summary is read again at the next
compaction, in a worker.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from compactd.core.ondemand import OnDemand
from compactd.formats.journalled import decoder_of
from compactd.session import Session

PIECE = 500
"""Messages looked at between two turns of the loop: less than a millisecond."""

_resting: set[asyncio.Task[None]] = set()
"""Tasks, so that somebody holds them."""


def rest_soon(session: Session) -> None:
    """Lets go of what the session does not need now, once everybody who waits was answered."""
    task = asyncio.get_running_loop().create_task(rest(session))
    _resting.add(task)
    task.add_done_callback(_resting.discard)


async def rest(session: Session) -> None:
    """Makes the messages that the next request does not show bytes again, as in a session that was opened
    from its file, and gives free memory back. O(messages), in pieces."""
    state, decode = session.fold, decoder_of(session.entries)
    shown = frozenset(item.entry_id for item in state.items)
    ids = tuple(state.originals)
    for start in range(0, len(ids), PIECE):
        await asyncio.sleep(0)
        if session.fold is not state or session.is_closed:
            return
        for entry_id in ids[start : start + PIECE]:
            item = state.originals[entry_id]
            if entry_id not in shown and item.is_decoded and item.source is not None:
                body = OnDemand(item.source, decode)
                state.originals[entry_id] = msgspec.structs.replace(item, body=body)
    with suppress(RuntimeError):  # the workers may be gone by now: the process ends
        await session.world.in_worker(give_back)


def give_back() -> None:
    """Gives the memory that is free back to the system, where the C library keeps it (glibc does). Some
    milliseconds, not holding the interpreter."""
    try:
        import ctypes

        trim = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, AttributeError, TypeError):
        return  # another C library, another system
    trim(0)

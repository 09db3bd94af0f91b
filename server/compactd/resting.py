"""What a long computation leaves behind, given back: decoded messages that no request shows, free memory.

Behind a compaction of 2M tokens the process held 19 times the session's journal more than before the session;
with this 5 to 6, of which 1 is the journal's bytes and 1 what is known of the messages (measured 2026-11).
What went into the summary is read again at the next compaction, in a worker.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial

import msgspec

from compactd.core.ondemand import OnDemand
from compactd.core.units import FactCache
from compactd.formats.journalled import decoder_of
from compactd.session import Session

PIECE = 500
"""Messages looked at between two turns of the loop: less than a millisecond."""

WORKERS = 3
"""Threads that compute, each with a heap of its own."""
MEETING_S = 0.005
"""So long one that is idle waits for the others: another session may be waiting for it."""
PIECE_BYTES = 100_000
"""Large enough that its freeing looks at the heap's end, small enough to come from the heap."""
TRIM_THRESHOLD = -1
"""`M_TRIM_THRESHOLD` of mallopt(3)."""
KEPT_BYTES = 64 << 20
"""Of a heap's end at other times: a compaction that gives back each array and asks for it again is slower."""

_resting: set[asyncio.Task[None]] = set()
"""Tasks, so that somebody holds them."""


def rest_soon(session: Session) -> None:
    """Lets go of what the session does not need now, once everybody who waits was answered."""
    task = asyncio.get_running_loop().create_task(rest(session))
    _resting.add(task)
    task.add_done_callback(_resting.discard)


async def rest(session: Session) -> None:
    """Makes the messages that the next request does not show bytes again, as in a session that was opened
    from its file, packs what is known of them, and gives free memory back. O(messages), in pieces."""
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
        await session.world.in_worker(partial(settle, session.facts))
        meeting = threading.Barrier(WORKERS)
        work = partial(give_back, meeting)
        await asyncio.gather(*(session.world.in_worker(work) for _ in range(WORKERS)))


def settle(facts: FactCache | None) -> None:
    """Packs what a compaction unpacked. O(messages)."""
    if facts is not None:
        with facts.lock:
            facts.settle()


def give_back(meeting: threading.Barrier) -> None:
    """Gives the memory that is free back to the system, where the C library keeps it (glibc does). Some
    milliseconds, not holding the interpreter.

    `malloc_trim` leaves the end of each thread's own heap alone (glibc 2.36, seen 2026-11: 16 MB behind a
    compaction of 0.6M tokens): each worker, at the `meeting` of all, frees a piece under a low threshold,
    which cuts its heap.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        trim, adjust, allocate, free = libc.malloc_trim, libc.mallopt, libc.malloc, libc.free
    except (ImportError, OSError, AttributeError, TypeError):
        return  # another C library, another system
    allocate.restype, allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    free.restype, free.argtypes = None, (ctypes.c_void_p,)
    place = 0
    if threading.current_thread() is not threading.main_thread():
        with suppress(threading.BrokenBarrierError):
            place = meeting.wait(MEETING_S)
    adjust(TRIM_THRESHOLD, 0)
    free(allocate(PIECE_BYTES))
    adjust(TRIM_THRESHOLD, KEPT_BYTES)
    if place == 0:
        # What is free between two things that are not.
        trim(0)

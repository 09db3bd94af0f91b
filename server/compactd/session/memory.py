"""What a long computation leaves behind, given back: decoded messages that no request shows, free memory.

Behind a compaction of 2M tokens the process held 19 times the session's journal more than before the session.
What went into the summary is read again at the next compaction, in a worker.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache, partial
from weakref import WeakKeyDictionary, WeakSet

from msgspec import Struct

from compactd.core.extract.facts import FactCache
from compactd.core.history.lazy_message import OnDemand
from compactd.session.session import Session

PIECE = 500
"""Messages looked at between two turns of the loop: less than a millisecond."""

WORKERS = 4
"""The daemon's threads that compute, each with a heap of its own."""
MEETING_S = 0.005
"""So long one that is idle waits for the others: another session may be waiting for it."""
EVERY_S = 5.0
"""Between two times that memory is given back behind compactions: each holds up whoever asks meanwhile by 5
to 20 ms, and of a hundred compactions at once one ends each second (2026-11)."""
MEETINGS, PAUSE_S = 8, 0.1
"""Meetings at most until each of them was there, and what is between two."""
PIECE_BYTES = 100_000
"""Large enough that its freeing looks at the heap's end, small enough to come from the heap."""
TRIM_THRESHOLD = -1
"""`M_TRIM_THRESHOLD` of mallopt(3)."""
KEPT_BYTES = 64 << 20
"""Of a heap's end at other times: a compaction that gives back each array and asks for it again is slower."""

InWorker = Callable[[Callable[[], None]], Awaitable[None]]

_threshold = threading.Lock()
"""The C library has one for all heaps."""
_resting: set[asyncio.Task[None]] = set()
"""Tasks, so that somebody holds them."""
_next_at: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""By each loop's own clock, before when its process does not give memory back again."""
_waiting: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
"""Loops in which somebody waits for that moment."""


def rest_soon(session: Session) -> None:
    """Lets go of what the session does not need now, once everybody who waits was answered."""
    task = asyncio.get_running_loop().create_task(rest(session))
    _resting.add(task)
    task.add_done_callback(_resting.discard)


async def rest(session: Session) -> None:
    """Packs what is known of the messages, makes those that the next request does not show bytes again, as in
    a session that was opened from its file, and gives free memory back. O(messages), in pieces."""
    # First what goes: what stays then fills its gaps.
    with suppress(RuntimeError):  # the workers may be gone by now: the process ends
        await session.world.in_worker(partial(settle, session.facts))
    state = session.fold
    shown = frozenset(item.entry_id for item in state.items)
    ids = tuple(state.originals)
    for start in range(0, len(ids), PIECE):
        await asyncio.sleep(0)
        if session.fold is not state or session.is_closed:
            return
        for entry_id in ids[start : start + PIECE]:
            item = state.originals[entry_id]
            if entry_id not in shown and isinstance(item.body, OnDemand):
                # In its place: an object more for each would stand amid what goes, and keep that.
                item.body.let_go()
    await _give_back_in_time(session.world.in_worker)


async def _give_back_in_time(in_worker: InWorker) -> None:
    """As `give_all_back`, once in `EVERY_S`: the first that is too early waits, and does it for all."""
    loop = asyncio.get_running_loop()
    if loop in _waiting:
        return
    _waiting.add(loop)
    try:
        await asyncio.sleep(max(0.0, _next_at.get(loop, 0.0) - loop.time()))
    finally:
        _waiting.discard(loop)
    _next_at[loop] = loop.time() + EVERY_S
    await give_all_back(in_worker)


async def give_all_back(in_worker: InWorker) -> None:
    """Gives free memory back to the system, that of each worker too."""
    reached: set[int | None] = set()
    with suppress(RuntimeError):  # the workers may be gone by now: the process ends
        for _ in range(MEETINGS):
            work = partial(give_back, threading.Barrier(WORKERS), reached)
            await asyncio.gather(*(in_worker(work) for _ in range(WORKERS)))
            if len(reached) >= WORKERS or threading.main_thread().ident in reached:
                break
            # One was busy, or the machine is, and another came twice.
            await asyncio.sleep(PAUSE_S)
        # Once nobody holds what this was done with.
        asyncio.get_running_loop().call_later(PAUSE_S, drop_spares)


def settle(facts: FactCache | None) -> None:
    """Packs what a compaction unpacked. O(messages)."""
    if facts is not None:
        with facts.lock:
            facts.settle()


def give_back(meeting: threading.Barrier, reached: set[int | None]) -> None:
    """Gives the memory that is free back to the system, where the C library keeps it (glibc does). Some
    milliseconds, not holding the interpreter.

    `malloc_trim` leaves the end of each thread's own heap alone (glibc 2.36, seen 2026-11: 16 MB behind a
    compaction of 0.6M tokens): each worker, at the `meeting` of all, frees a piece under a low threshold,
    which cuts its heap. Adds who did to `reached`.
    """
    heap = _heap()
    if heap is None:
        reached.add(threading.main_thread().ident)
        return
    reached.add(threading.get_ident())
    place = 0
    if threading.current_thread() is not threading.main_thread():
        with suppress(threading.BrokenBarrierError):
            place = meeting.wait(MEETING_S)
    if place == 0:
        drop_spares()
    with _threshold:
        heap.adjust(TRIM_THRESHOLD, 0)
        heap.free(heap.allocate(PIECE_BYTES))
        heap.adjust(TRIM_THRESHOLD, KEPT_BYTES)
    if place == 0:
        # What is free between two things that are not.
        heap.trim(0)


def drop_spares() -> None:
    """Has Python let go of its spare tuples, lists and dicts, each of which keeps a megabyte from the system
    that nothing else is in: a full collection does. It is to look at nothing: that would hold the loop
    (`_runtime/garbage.py`)."""
    gc.freeze()
    gc.collect()


class _Heap(Struct, frozen=True):
    """Functions of the C library."""

    trim: Callable[[int], object]
    adjust: Callable[[int, int], object]
    allocate: Callable[[int], object]
    free: Callable[[object], object]


@cache
def _heap() -> _Heap | None:
    """None for another C library than glibc, or another system. Once: each `CDLL` makes classes that stay."""
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        heap = _Heap(libc.malloc_trim, libc.mallopt, libc.malloc, libc.free)
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    libc.free.restype, libc.free.argtypes = None, (ctypes.c_void_p,)
    return heap

"""Free memory after a compaction: drop decoded messages and return free heap memory to the system.

Messages that the next request does not contain become bytes again. The next compaction decodes them in a
worker. The heap functions work only with glibc; elsewhere `release_free_memory` does nothing.
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
from compactd.core.history.lazy_message import LazyMessage
from compactd.session.session import Session

PIECE = 500
"""The number of messages that are processed before the event loop gets a turn. This takes less than a
millisecond."""

WORKERS = 4
"""The number of the daemon's worker threads. Each thread has its own heap."""
WORKER_WAIT_S = 0.005
"""Seconds that an idle worker waits for the other workers in `release_free_memory`. It is short, because
another session may need the worker."""
MIN_RELEASE_INTERVAL_S = 5.0
"""The least seconds between two returns of memory to the system. Each return delays other requests by 5 to 20
ms (measured 2026-11)."""
MEETINGS, PAUSE_S = 8, 0.1
"""The most rounds in which every worker is asked to trim its heap, and the seconds between two rounds. The
rounds end when each worker has done so."""
PIECE_BYTES = 100_000
"""The size of the block that a worker frees to trim its heap: large enough that freeing it trims the heap's
top, small enough that malloc takes it from the heap."""
TRIM_THRESHOLD = -1
"""The number of the parameter `M_TRIM_THRESHOLD` of mallopt(3)."""
USUAL_TRIM_BYTES = 64 << 20
"""The trim threshold in bytes, except during `release_free_memory`. A lower threshold slows compactions,
which free and allocate large arrays."""

InWorker = Callable[[Callable[[], None]], Awaitable[None]]

_threshold = threading.Lock()
"""A lock for changes of the C library's trim threshold, which applies to all heaps."""
_resting: set[asyncio.Task[None]] = set()
"""The running `free_memory` tasks, referenced so that they are not garbage-collected."""
_next_at: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""For each event loop, the earliest time (by its clock) of the next return of memory."""
_waiting: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
"""The event loops in which a task already waits for the time in `_next_at`."""


def release_memory_soon(session: Session) -> None:
    """Start `free_memory` as a background task, which runs after the waiting requests."""
    task = asyncio.get_running_loop().create_task(free_memory(session))
    _resting.add(task)
    task.add_done_callback(_resting.discard)


def release_closed_soon(in_worker: InWorker) -> None:
    """Return the memory of a closed session to the system, as a background task, within
    `MIN_RELEASE_INTERVAL_S` and some tenths of a second.
    """
    task = asyncio.get_running_loop().create_task(_release_at_interval(in_worker))
    _resting.add(task)
    task.add_done_callback(_resting.discard)


async def free_memory(session: Session) -> None:
    """Free memory that the session does not need until its next compaction.

    Packs the facts that were found in messages, turns messages that the next request does not contain into
    bytes again, and returns free memory to the system. O(messages), in pieces between which the event loop
    runs.
    """
    # Free first, so that the packed facts fill the gaps.
    with suppress(RuntimeError):  # the workers are gone if the process is ending
        await session.host.in_worker(partial(settle, session.facts))
    if not session.reducing.locked():
        session.drop_shown_view()  # it is of the view before the compaction
    state = session.state
    shown = frozenset(item.entry_id for item in state.items)
    ids = tuple(state.originals)
    for start in range(0, len(ids), PIECE):
        await asyncio.sleep(0)
        if session.state is not state or session.is_closed:
            return
        for entry_id in ids[start : start + PIECE]:
            item = state.originals[entry_id]
            if entry_id not in shown and isinstance(item.body, LazyMessage):
                # Change the object in place: new small objects between freed ones would pin their memory.
                item.body.drop_decoded()
    await _release_at_interval(session.host.in_worker)


async def _release_at_interval(in_worker: InWorker) -> None:
    """Call `release_all_memory`, at most once per `MIN_RELEASE_INTERVAL_S`. If the last call is too recent,
    wait. If another task already waits, return at once.
    """
    loop = asyncio.get_running_loop()
    if loop in _waiting:
        return
    _waiting.add(loop)
    try:
        await asyncio.sleep(max(0.0, _next_at.get(loop, 0.0) - loop.time()))
    finally:
        _waiting.discard(loop)
    _next_at[loop] = loop.time() + MIN_RELEASE_INTERVAL_S
    await release_all_memory(in_worker)


async def release_all_memory(in_worker: InWorker) -> None:
    """Return free memory to the system, including the free memory in each worker's heap. `in_worker` runs a
    function in a worker thread.
    """
    reached: set[int | None] = set()
    with suppress(RuntimeError):  # the workers are gone if the process is ending
        for _ in range(MEETINGS):
            work = partial(release_free_memory, threading.Barrier(WORKERS), reached)
            await asyncio.gather(*(in_worker(work) for _ in range(WORKERS)))
            if len(reached) >= WORKERS or threading.main_thread().ident in reached:
                break
            # One worker was busy, and another one ran twice.
            await asyncio.sleep(PAUSE_S)
        # Later, when the objects of this function are free as well.
        asyncio.get_running_loop().call_later(PAUSE_S, drop_spares)


def settle(facts: FactCache | None) -> None:
    """Pack the cached facts again, because a compaction has unpacked them. O(messages)."""
    if facts is not None:
        with facts.lock:
            facts.settle()


def release_free_memory(meeting: threading.Barrier, reached: set[int | None]) -> None:
    """Return free memory to the system if the C library is glibc. Takes milliseconds and releases the GIL.

    Run this in every worker at once. `malloc_trim` does not trim the top of each thread's own heap (glibc
    2.36, seen 2026-11). So each worker frees a block while the trim threshold is 0, which trims its heap. The
    workers wait for each other at `meeting`, so that no worker runs this twice. Adds the thread's id to
    `reached`; without glibc, adds the main thread's id.
    """
    heap = _heap()
    if heap is None:
        reached.add(threading.main_thread().ident)
        return
    reached.add(threading.get_ident())
    place = 0
    if threading.current_thread() is not threading.main_thread():
        with suppress(threading.BrokenBarrierError):
            place = meeting.wait(WORKER_WAIT_S)
    if place == 0:
        drop_spares()
    with _threshold:
        heap.adjust(TRIM_THRESHOLD, 0)
        heap.free(heap.allocate(PIECE_BYTES))
        heap.adjust(TRIM_THRESHOLD, USUAL_TRIM_BYTES)
    if place == 0:
        # Also return free pages between used ones.
        heap.trim(0)


def drop_spares() -> None:
    """Make Python drop its free lists of tuples, lists and dicts, which pin memory, by a full collection.

    All objects are frozen first, so the collection has nothing to examine and does not block the event loop.
    """
    gc.freeze()
    gc.collect()


class _Heap(Struct, frozen=True):
    """The functions of glibc that manage its heaps."""

    trim: Callable[[int], object]
    adjust: Callable[[int, int], object]
    allocate: Callable[[int], object]
    free: Callable[[object], object]


@cache
def _heap() -> _Heap | None:
    """Return glibc's heap functions, or None for another C library. The result is cached, because each `CDLL`
    creates classes.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        heap = _Heap(libc.malloc_trim, libc.mallopt, libc.malloc, libc.free)
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    libc.free.restype, libc.free.argtypes = None, (ctypes.c_void_p,)
    return heap

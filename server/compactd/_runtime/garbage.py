"""Turn Python's garbage collector off during long computations.

A collection visits all objects that were created since the previous collection, and blocks the event loop
meanwhile. It would find no garbage, because messages are values without reference cycles.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_running = 0


@contextmanager
def without_collector() -> Iterator[None]:
    """Run a block without garbage collection in the whole process. If several threads are in such blocks,
    collection begins again when the last thread leaves its block.

    Objects that exist at that moment are excluded from all later collections. Reference counting still frees
    them.
    """
    global _running
    with _lock:
        _running += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0:
                gc.freeze()
                gc.enable()

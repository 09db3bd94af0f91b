"""Settings of the Python interpreter: how threads take turns, and when garbage is collected."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SWITCH_INTERVAL_S: Final = 0.0005
"""Seconds after which a busy worker thread must release the GIL, so that the event loop can run. With
Python's default, the event loop would wait up to 5 ms each time."""

GC_THRESHOLDS: Final = (10_000, 100, 50)
"""The thresholds of Python's garbage collector. They are high because a collection blocks the event loop: up
to 19 ms for 50,000 young objects. Messages contain no reference cycles, so a collection would find nothing in
them."""


def set_up_interpreter() -> None:
    """Set the thread switch interval and the thresholds of the garbage collector, and exclude all objects
    that exist now from later collections. Call this once, when the process begins to serve.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


@contextmanager
def paused_gc() -> Iterator[None]:
    """Collect no garbage in this block. Use it for work that creates many objects and no reference cycles:
    the collector would look at all of them again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

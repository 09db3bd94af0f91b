"""A moment in which other threads get the interpreter, for loops of short calls that let go of it.

Whoever wants the interpreter asks for it when it has waited for a whole interval (`sys.setswitchinterval`),
and the wait begins anew each time the holder lets go, if only for a microsecond (CPython 3.11 to 3.13,
`take_gil`). numpy and tiktoken let go at each call: a loop of such calls, each shorter than the interval,
keeps everybody else waiting to its end (54 ms seen, 2026-11).
"""

from __future__ import annotations

import threading
from typing import Final

BREATH_S: Final = 20e-6
"""Timers are later by up to 50 µs: long enough for whoever waits to wake."""

_never = threading.Lock()
_never.acquire()


def breathe() -> None:
    """Lets others go on. About 0.1 ms: to be called every 1 to 5 ms."""
    _never.acquire(timeout=BREATH_S)

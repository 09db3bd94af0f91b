"""Let other threads run during a loop of short calls.

Each call of numpy or tiktoken releases the GIL only for a moment. A waiting thread requests the GIL only
after it has waited a whole switch interval (`sys.setswitchinterval`), and its wait starts again each time
that another thread releases the GIL (CPython 3.11 to 3.13, `take_gil`). So a loop of such calls can block all
other threads.
"""

from __future__ import annotations

import threading
from typing import Final

YIELD_S: Final = 20e-6
"""How long `yield_gil` sleeps, in seconds. The system's timer adds up to 50 µs. A waiting thread can wake in
this time."""

_never = threading.Lock()
"""A lock that is never released, so that waiting for it is a sleep."""
_never.acquire()


def yield_gil() -> None:
    """Let other threads take the GIL. This takes about 0.1 ms; call it every 1 to 5 ms."""
    _never.acquire(timeout=YIELD_S)

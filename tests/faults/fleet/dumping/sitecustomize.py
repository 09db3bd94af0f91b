"""Loaded by each node: SIGUSR1 writes the stacks of all tasks to stderr."""

from __future__ import annotations

import asyncio
import signal
import sys
from types import FrameType


def _dump(number: int, frame: FrameType | None) -> None:
    for task in asyncio.all_tasks(asyncio._get_running_loop()):
        task.print_stack(file=sys.stderr)
    sys.stderr.flush()


signal.signal(signal.SIGUSR1, _dump)

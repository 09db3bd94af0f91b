"""Which files an agent may want to read again after a compaction: those that the last turns worked on, and
whether they are on disk as the session saw them last. Advice: nothing is read for the agent.

Only regular files below the session's working directory are looked at, wherever their names lead. A file
system that hangs holds a thread of its own, never the loop, nor the workers that others wait for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from compactd.core.extract.recent_files import Seen, last_files, shows
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import FileState, RereadAdvice

if TYPE_CHECKING:
    from compactd.session.session import Session

DEADLINE_S = 0.5
"""What was not looked at by then is `unknown`."""

READ_BYTES = 1_000_000
"""A larger file is not compared: `unknown`, with its size."""

_log = logging.getLogger("compactd.rereading")

_hanging: set[threading.Thread] = set()
MOST_HANGING = 4
"""Threads that may hang at once; then nothing is looked at."""


async def files_to_reread(session: Session) -> tuple[RereadAdvice, ...]:
    """The advice for this session as it stands; empty where it has no working directory. Takes `DEADLINE_S`
    at most, beside a worker's time for the last turns' messages."""
    folder = session.working_dir
    if not folder:
        return ()
    items = session.fold.path_items()
    try:
        seen = await session.world.in_worker(lambda: last_files(items))
    except CompactdError as error:
        # A record that holds no message: whoever asks for that message is told.
        _log.warning("no advice what to read again: %s", error.message)
        return ()
    except Exception:
        # Advice is never worth a compaction.
        _log.exception("no advice what to read again")
        return ()
    return await looked_at(seen, folder)


async def looked_at(
    seen: Sequence[Seen], folder: str, deadline_s: float = DEADLINE_S
) -> tuple[RereadAdvice, ...]:
    """What is on disk of `seen`, in its order; those outside `folder` are left out."""
    inside = [one for one in seen if _is_below(one.path, folder)]
    _hanging.difference_update([thread for thread in _hanging if not thread.is_alive()])
    if not inside or len(_hanging) >= MOST_HANGING:
        return tuple(RereadAdvice(path=one.path, state="unknown") for one in inside)
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    found: dict[str, RereadAdvice | None] = {}

    def look() -> None:
        with suppress(OSError, ValueError):
            root = os.path.realpath(folder)
            for one in inside:
                found[one.path] = _look(one, root)
        with suppress(RuntimeError):  # the loop may be gone by now
            loop.call_soon_threadsafe(done.set)

    # Not one of the workers: those are joined at the end, and this may hang for ever.
    thread = threading.Thread(target=look, name="compactd-reread", daemon=True)
    thread.start()
    try:
        async with asyncio.timeout(deadline_s):
            await done.wait()
    except TimeoutError:
        _hanging.add(thread)
    unknown = partial(RereadAdvice, state="unknown")
    told = [(found.get(one.path, unknown(path=one.path))) for one in inside]
    return tuple(advice for advice in told if advice is not None)


def _is_below(path: str, folder: str) -> bool:
    """Whether a path is below `folder` by its letters."""
    if not path or "\0" in path or path.startswith("~"):
        return False
    whole = os.path.normpath(_joined(folder, path))
    return whole.startswith(os.path.normpath(folder).rstrip("/") + "/")


def _joined(folder: str, path: str) -> str:
    return path if path.startswith("/") else f"{folder}/{path}"


def _look(one: Seen, root: str) -> RereadAdvice | None:
    """One file; none where its name leads outside `root`."""
    from pathlib import Path

    try:
        whole = os.path.realpath(_joined(root, one.path))
        # A path may name the folder by another of its names (a link, /private/tmp).
        if not whole.startswith(root.rstrip("/") + "/"):
            return None
        about = Path(whole).stat()
        if not stat.S_ISREG(about.st_mode):
            return RereadAdvice(path=one.path, state="unknown")
        size = about.st_size
        if one.text is None or size > READ_BYTES:
            return RereadAdvice(path=one.path, state="unknown", size_bytes=size)
        # Not waiting for a writer, where the file became a pipe meanwhile.
        with os.fdopen(os.open(whole, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            raw = file.read(READ_BYTES + 1)
        same = shows(one.text, raw.decode("utf-8", "replace"))
    except FileNotFoundError:
        return RereadAdvice(path=one.path, state="missing")
    except OSError:
        return RereadAdvice(path=one.path, state="unknown")
    state: FileState = "unknown" if same is None else "unchanged" if same else "changed"
    return RereadAdvice(path=one.path, state=state, size_bytes=size)

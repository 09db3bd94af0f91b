"""Advice after a compaction: which files the agent may want to read again.

These are the files that the last turns used. For each file, the advice says whether it has changed on disk
since the session last saw it. No content of a file is added to the conversation. Only regular files below the
session's working directory are examined, after links are followed. If a file system hangs, it blocks only a
separate thread, not the event loop or the workers.
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

from compactd.core.extract.recent_files import SeenFile, last_files, matches_disk
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import FileState, RereadAdvice

if TYPE_CHECKING:
    from compactd.session.session import Session

DEADLINE_S = 0.5
"""The time limit for all files, in seconds. A file that was not examined by then is `unknown`."""

READ_BYTES = 1_000_000
"""The maximum size in bytes of a file that is compared. A larger file is `unknown`, and its size is given."""

_log = logging.getLogger("compactd.rereading")

_hanging: set[threading.Thread] = set()
"""Threads that examine files and did not end in time."""
MAX_HANGING = 4
"""How many threads may hang. When so many hang, no further file is examined."""


async def files_to_reread(session: Session) -> tuple[RereadAdvice, ...]:
    """Return the advice for this session; nothing if it has no working directory.

    It takes at most `DEADLINE_S`, plus the time in which a worker finds the files of the last turns.
    """
    folder = session.working_dir
    if not folder:
        return ()
    items = session.state.path_items()
    try:
        seen = await session.host.in_worker(lambda: last_files(items))
    except CompactdError as error:
        # A record of the journal does not contain a message. Requests for that message report the error.
        _log.warning("no advice on files to read again: %s", error.message)
        return ()
    except Exception:
        # A failure of the advice must not fail the compaction.
        _log.exception("no advice on files to read again")
        return ()
    return await check_files(seen, folder)


async def check_files(
    seen: Sequence[SeenFile], folder: str, deadline_s: float = DEADLINE_S
) -> tuple[RereadAdvice, ...]:
    """Return the state on disk of each file in `seen`, in order. Files outside `folder` are left out.
    Files that are not examined within `deadline_s` seconds are `unknown`."""
    inside = [one for one in seen if _is_below(one.path, folder)]
    _hanging.difference_update([thread for thread in _hanging if not thread.is_alive()])
    if not inside or len(_hanging) >= MAX_HANGING:
        return tuple(RereadAdvice(path=one.path, state="unknown") for one in inside)
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    found: dict[str, RereadAdvice | None] = {}

    def look() -> None:
        with suppress(OSError, ValueError):
            root = os.path.realpath(folder)
            for one in inside:
                found[one.path] = _check_file(one, root)
        with suppress(RuntimeError):  # the event loop may have ended
            loop.call_soon_threadsafe(done.set)

    # Not a worker thread: workers are joined at exit, and this thread may hang for ever.
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
    """Return whether the path is below `folder`, judged by its text alone (no links are followed)."""
    if not path or "\0" in path or path.startswith("~"):
        return False
    whole = os.path.normpath(_join(folder, path))
    return whole.startswith(os.path.normpath(folder).rstrip("/") + "/")


def _join(folder: str, path: str) -> str:
    """Return `path` as a path in `folder`, unless it is absolute."""
    return path if path.startswith("/") else f"{folder}/{path}"


def _check_file(one: SeenFile, root: str) -> RereadAdvice | None:
    """Compare one file with what the session last saw of it. Return None if its path leads outside `root`."""
    from pathlib import Path

    try:
        whole = os.path.realpath(_join(root, one.path))
        # The path may use another name of the folder, for example through a link (/private/tmp on macOS).
        if not whole.startswith(root.rstrip("/") + "/"):
            return None
        about = Path(whole).stat()
        if not stat.S_ISREG(about.st_mode):
            return RereadAdvice(path=one.path, state="unknown")
        size = about.st_size
        if one.text is None or size > READ_BYTES:
            return RereadAdvice(path=one.path, state="unknown", size_bytes=size)
        # O_NONBLOCK: do not wait for a writer if the file has become a pipe.
        with os.fdopen(os.open(whole, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            raw = file.read(READ_BYTES + 1)
        same = matches_disk(one.text, raw.decode("utf-8", "replace"))
    except FileNotFoundError:
        return RereadAdvice(path=one.path, state="missing")
    except OSError:
        return RereadAdvice(path=one.path, state="unknown")
    state: FileState = "unknown" if same is None else "unchanged" if same else "changed"
    return RereadAdvice(path=one.path, state=state, size_bytes=size)

"""Settings from outside a session, and who reads them: never the loop that answers every session.

The environment is read once. Files are read when a session is opened, each time anew, in a thread of their
own: a file system that hangs (a network that went away) keeps that thread, the opening goes on without what
it could not read, and says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import TypeVar

from compactd.settings import USER_FILE, WORKSPACE_FILE, Layer, from_environment, from_file

T = TypeVar("T")

READ_S = 1.0
"""How long the opening of a session waits for its files of settings."""

Found = tuple[Layer | None, tuple[str, ...]]
"""What a file sets, if it is there, and what is wrong with it."""


class Outside:
    """The settings from outside every session, as they were read last."""

    def __init__(self, environ: Mapping[str, str], config: Path, read_s: float = READ_S) -> None:
        self._environment, self._told = from_environment(environ)
        self._user_file = config / USER_FILE
        self._read_s = read_s
        self._files: dict[Path, Found] = {}
        self.client: Layer | None = None
        """What an editor's client set."""

    async def read(self, working_dir: str | None) -> None:
        """Reads the user's file, and that of the folder, where there is one. Returns within `read_s`."""
        wanted = [(self._user_file, USER_FILE)]
        workspace = _file_of(working_dir)
        if workspace is not None:
            wanted.append((workspace, WORKSPACE_FILE))
        await asyncio.gather(*(self._read(path, source) for path, source in wanted))

    async def _read(self, path: Path, source: str) -> None:
        try:
            async with asyncio.timeout(self._read_s):
                self._files[path] = await in_own_thread(lambda: from_file(path, source))
        except TimeoutError:
            layer = self._files.get(path, (None, ()))[0]
            stale = "what it said before stays in force" if layer is not None else "it is ignored"
            told = f"{source} could not be read within {self._read_s:g} seconds: {stale}"
            self._files[path] = layer, (told,)

    def layers(self, working_dir: str | None) -> tuple[Layer, ...]:
        """What was read last for a session in that folder, highest first. Reads nothing."""
        workspace = _file_of(working_dir)
        paths = (self._user_file,) if workspace is None else (workspace, self._user_file)
        files = (self._files[path][0] for path in paths if path in self._files)
        client = () if self.client is None else (self.client,)
        return (*client, self._environment, *(layer for layer in files if layer is not None))

    def warnings(self, working_dir: str | None) -> tuple[str, ...]:
        """What is wrong with them, for a person."""
        paths = (self._user_file, _file_of(working_dir))
        return (
            *self._told,
            *(text for path in paths if path in self._files for text in self._files[path][1]),
        )


def _file_of(working_dir: str | None) -> Path | None:
    """The workspace's file; none for a folder that is not named from the root: ours says nothing."""
    if working_dir is None or not Path(working_dir).is_absolute():
        return None
    return Path(working_dir) / WORKSPACE_FILE


async def in_own_thread(work: Callable[[], T]) -> T:
    """What `work` gives back, from a thread that nobody waits for: not at the end of the process either."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T) -> None:
        if not done.done():
            done.set_result(result)

    def run() -> None:
        result = work()
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, result)

    Thread(target=run, name="compactd-settings", daemon=True).start()
    return await done

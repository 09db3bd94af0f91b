"""Read settings from outside a session without blocking the event loop.

The environment is read once. Files are read each time a session is opened, in a separate thread. If a file
system hangs (for example a lost network drive), only that thread waits: the session opens without that file's
settings and with a warning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar

from compactd.protocol.settings import GivenSettings, IgnoredSetting
from compactd.storage.paths import data_folder
from compactd.storage.settings_files import (
    USER_FILE,
    WORKSPACE_FILE,
    FromWorkspace,
    Layer,
    from_environment,
    from_file,
    from_workspace,
    how_to_trust,
)
from compactd.storage.trusted_folders import TrustFile

T = TypeVar("T")

READ_S = 1.0
"""The most seconds for which opening a session waits for its settings files."""

CLIENT_SOURCES = ("didChangeConfiguration", "initializationOptions")
"""The ways in which an editor gives settings, highest priority first."""

UNREAD: Layer = (USER_FILE, GivenSettings(strategy="extract", max_cost=0.0))
"""The settings that are used if the user's file could not be read in time. The unread file may set a cost
limit, so with these settings compactd asks no model."""


class ClientSettings:
    """The settings that one client gave as an editor."""

    def __init__(self) -> None:
        self._given: dict[str, GivenSettings] = {}
        self._told: dict[str, tuple[str, ...]] = {}

    def configure(self, source: str, given: GivenSettings | None, warnings: tuple[str, ...]) -> None:
        """Store the settings and warnings that came by `source`, one of `CLIENT_SOURCES`. If `given` is None,
        the earlier settings stay.
        """
        if given is not None:
            self._given[source] = given
        if given is not None or warnings:
            self._told[source] = warnings

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The settings, highest priority first."""
        return tuple((source, self._given[source]) for source in CLIENT_SOURCES if source in self._given)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user about mistakes in these settings."""
        return tuple(text for source in CLIENT_SOURCES for text in self._told.get(source, ()))


class SettingsSources:
    """The settings from outside a session (environment and files), as they were last read. `config` is the
    config folder, `data` the data folder, `read_s` the most seconds to wait for a file.
    """

    def __init__(
        self, environ: Mapping[str, str], config: Path, read_s: float = READ_S, data: Path | None = None
    ) -> None:
        self._environment, self._told = from_environment(environ)
        self._user_file = config / USER_FILE
        self._read_s = read_s
        self._trusted = TrustFile(data_folder(environ) if data is None else data)
        self._files: dict[Path, FromWorkspace] = {}
        self._readers: dict[Path, _OneAtATime[FromWorkspace]] = {}

    async def read(self, working_dir: str | None) -> None:
        """Read the user's settings file and the `.compactd.toml` in `working_dir`, if there is one. Returns
        within `read_s` seconds.
        """
        reading = [self._read(self._user_file, USER_FILE, self._of_user)]
        workspace = _file_of(working_dir)
        if workspace is not None:
            folder = workspace.parent
            reading.append(
                self._read(workspace, WORKSPACE_FILE, lambda: from_workspace(folder, self._trust_of))
            )
        await asyncio.gather(*reading)

    async def reread(self, folder: str) -> None:
        """Read the `.compactd.toml` of `folder` again, for all sessions in that folder. `folder` is a path
        without symbolic links; sessions may have other paths to the same folder.
        """
        paths = [path for path, found in self._files.items() if found.folder == folder]
        await asyncio.gather(*(self.read(str(path.parent)) for path in paths))

    def _of_user(self) -> FromWorkspace:
        layer, warnings = from_file(self._user_file, USER_FILE)
        return FromWorkspace(layer=layer, warnings=warnings)

    def _trust_of(self, folder: str) -> tuple[str | None, str | None]:
        known = self._trusted.read()
        trust = known.by_path.get(folder)
        return (None if trust is None else trust.sha256), known.problem

    async def _read(self, path: Path, source: str, read: Callable[[], FromWorkspace]) -> None:
        reader = self._readers.setdefault(path, _OneAtATime())
        try:
            async with asyncio.timeout(self._read_s):
                self._files[path] = await reader.run(read)
        except TimeoutError:
            self._files[path] = self._timed_out(path, source)

    def _timed_out(self, path: Path, source: str) -> FromWorkspace:
        """Return the result for a file that could not be read in time.

        The user's own file keeps its earlier settings, or gets `UNREAD` if it has none. A workspace file
        loses its earlier settings: the file may have changed, or the user may have taken the trust back.
        """
        layer: Layer | None = None
        what = "it is ignored"
        if path == self._user_file:
            before = self._files.get(path)
            layer, what = UNREAD, "until it is read, no model is asked for summaries"
            if before is not None and before.layer is not UNREAD:
                layer, what = before.layer, "its earlier settings stay in force"
        told = f"{source} could not be read within {self._read_s:g} seconds: {what}"
        return FromWorkspace(layer=layer, warnings=(told,))

    def layers(self, working_dir: str | None, client: ClientSettings | None = None) -> tuple[Layer, ...]:
        """Return the layers for a session whose working directory is `working_dir`, and whose first client
        gave the settings `client`, highest priority first, as last read. Reads no file.
        """
        workspace = _file_of(working_dir)
        paths = (self._user_file,) if workspace is None else (workspace, self._user_file)
        files = (self._files[path].layer for path in paths if path in self._files)
        given = () if client is None else client.layers
        return (*given, self._environment, *(layer for layer in files if layer is not None))

    def warnings(self, working_dir: str | None, client: ClientSettings | None = None) -> tuple[str, ...]:
        """Return the warnings for the user about mistakes in the settings for this working directory, and in
        those of `client`.
        """
        paths = (self._user_file, _file_of(working_dir))
        return (
            *(() if client is None else client.warnings),
            *self._told,
            *(text for path in paths if path in self._files for text in self._files[path].warnings),
        )

    def ignored_settings(
        self, working_dir: str | None, more: Sequence[IgnoredSetting] = ()
    ) -> tuple[tuple[IgnoredSetting, ...], tuple[str, ...]]:
        """Return (the ignored settings of the `.compactd.toml` in `working_dir`, followed by `more`; a
        tuple with one sentence that tells the user how to apply them, or an empty tuple).
        """
        path = _file_of(working_dir)
        found = self._files.get(path) if path is not None else None
        ignored = (*(() if found is None else found.ignored), *more)
        return ignored, (how_to_trust(found, ignored),) if ignored and found is not None else ()


def _file_of(working_dir: str | None) -> Path | None:
    """Return the path of the `.compactd.toml` in `working_dir`, or None if `working_dir` is not an absolute
    path.
    """
    if working_dir is None or not Path(working_dir).is_absolute():
        return None
    return Path(working_dir) / WORKSPACE_FILE


class _OneAtATime(Generic[T]):
    """A runner of a function, which never runs in two threads at once.

    All callers of `run` that come while the function runs share one next run. So each caller gets the result
    of a run that began after the call.
    """

    def __init__(self) -> None:
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        if self._next is None:
            self._next = asyncio.ensure_future(self._run_after(self._running, work))
        return await asyncio.shield(self._next)

    async def _run_after(self, before: asyncio.Task[T] | None, work: Callable[[], T]) -> T:
        if before is not None and not before.done():
            await asyncio.wait((before,))
        self._running, self._next = self._next, None
        return await run_in_own_thread(work)


async def run_in_own_thread(work: Callable[[], T]) -> T:
    """Run `work` in a new daemon thread. Return its result, or raise its error. The process does not wait for
    the thread at exit.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T) -> None:
        if not done.done():
            done.set_result(result)

    def fail(error: Exception) -> None:
        if not done.done():
            done.set_exception(error)

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            if not loop.is_closed():
                loop.call_soon_threadsafe(fail, error)
            return
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, result)

    Thread(target=run, name="compactd-settings", daemon=True).start()
    return await done

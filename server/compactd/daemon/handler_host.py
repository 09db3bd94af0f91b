"""The interface of the daemon that method handlers use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from compactd._runtime.lazy_imports import BackgroundImporter
from compactd.protocol import wire

if TYPE_CHECKING:
    from compactd.core.models.registry import Lookup
    from compactd.daemon.fleet.forwarder import Forwarder
    from compactd.daemon.sharing.clients import Clients
    from compactd.models.catalog import Catalogue
    from compactd.models.learned_windows import LearnedWindows
    from compactd.session.manager import Sessions
    from compactd.storage.settings_reader import SettingsSources

T = TypeVar("T")


class HandlerHost(Protocol):
    """The daemon as its handlers see it."""

    modules: BackgroundImporter
    clients: Clients
    on_retire: Callable[[], None]
    fleet: Forwarder | None

    @property
    def home(self) -> Path:
        """The data folder, which contains the sessions."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The sessions that are open in this process."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """The registry of models, with the user's own models."""
        ...

    @property
    def outside(self) -> SettingsSources:
        """The settings that belong to no session: from the environment, from files and from the editor."""
        ...

    @property
    def learned_windows(self) -> LearnedWindows:
        """The observed windows: what servers said about their models' context windows."""
        ...

    def now(self) -> float:
        """Return the time in Unix seconds."""
        ...

    def info(self) -> wire.InfoResult:
        """Return the result of `daemon/info`."""
        ...

    def refresh_sessions(self) -> None:
        """Recompute the settings and the window of every open session, because something outside the sessions
        changed.
        """
        ...

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Run `work` in a worker thread and return its result."""
        ...

    async def read_keys(self) -> None:
        """Read the providers' keys, if that is not done yet."""
        ...

    async def ask_server(self, model: str | None, base_url: str | None) -> None:
        """Ask a model server on this machine for the model's window, if `base_url` names one."""
        ...

    async def find_model(self, model: str, provider: str | None, base_url: str | None) -> Lookup:
        """Return what the registry says about a model. If no entry matches, the result is a guess."""
        ...

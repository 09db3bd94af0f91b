"""What the handlers of methods need from the daemon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from compactd._runtime.lazy_imports import Modules
from compactd.protocol import wire

if TYPE_CHECKING:
    from compactd.core.models.registry import Lookup
    from compactd.models.catalog import Catalogue
    from compactd.models.learned_windows import LearnedWindows
    from compactd.session.manager import Sessions
    from compactd.storage.settings_reader import Outside

T = TypeVar("T")


class Host(Protocol):
    """The daemon, as its handlers see it."""

    modules: Modules

    @property
    def home(self) -> Path:
        """Where sessions are kept."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The sessions that are open here."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """What is known of models."""
        ...

    @property
    def outside(self) -> Outside:
        """The settings from outside every session."""
        ...

    @property
    def learned(self) -> LearnedWindows:
        """What servers said of their models' windows."""
        ...

    def now(self) -> float:
        """Unix seconds."""
        ...

    def info(self) -> wire.InfoResult:
        """The result of `daemon/info`."""
        ...

    def refresh_sessions(self) -> None:
        """Computes the settings in force of every open session anew."""
        ...

    def watch_client(self) -> None:
        """Stops the prompt that is being answered if the client vanishes."""
        ...

    async def in_worker(self, work: Callable[[], T]) -> T:
        """What `work` gives back, from another thread."""
        ...

    async def read_keys(self) -> None:
        """Reads the keys of providers, if that was not done yet."""
        ...

    async def ask_server(self, model: str | None, base_url: str | None) -> None:
        """Asks a model server on this machine for the model's window, if one is meant."""
        ...

    async def find_model(self, model: str, provider: str | None, base_url: str | None) -> Lookup:
        """What the registry says of a model."""
        ...

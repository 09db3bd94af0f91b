"""The windows that servers taught this machine, kept beside the sessions and shared by its processes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from compactd.core.observed import By, Key, Observed, in_force, key, newest, observation_of
from compactd.core.registry import Lookup
from compactd.errors import StorageFailed
from compactd.store.observations import FILE, Observations, Stamp

_log = logging.getLogger("compactd.learned")


class LearnedWindows:
    """What is observed of models, in memory and in `folder`'s file. Safe in any thread.

    Where the file cannot be written, this process still knows; the log says so.
    """

    def __init__(self, folder: Path) -> None:
        self._file = Observations(folder / FILE)
        self._lock = Lock()
        self._stamp: Stamp | None = None
        self._known: dict[Key, Observed] = {}
        self._unwritten: dict[Key, Observed] = {}

    def of(self, found: Lookup, base_url: str | None) -> Observed | None:
        """What is in force of the model of `found` at this endpoint."""
        with self._lock:
            return in_force(self._read().get(key(found.model, found.provider, base_url)), found)

    def learn(self, found: Lookup, base_url: str | None, window: int, by: By, at: float) -> Observed | None:
        """Keeps what a server said; None where that tells nothing new."""
        one = observation_of(found, base_url, window, by, at)
        if one is None:
            return None
        with self._lock:
            before = self._read().get(one.key)
            if before is not None and (before.window, before.by, before.known) == (window, by, one.known):
                return before
            try:
                self._file.add(one)
            except StorageFailed as error:
                self._unwritten[one.key] = one
                _log.warning("%s", error.message)
            return one

    def all(self) -> tuple[Observed, ...]:
        """Every observation, in force or not, by model."""
        with self._lock:
            known = self._read().values()
            return tuple(sorted(known, key=lambda one: (one.provider or "", one.model, one.base_url or "")))

    def forget(self, is_meant: Callable[[Observed], bool]) -> int:
        """Takes out those that are meant; of how many models and endpoints. Raises `StorageFailed`."""
        with self._lock:
            count = sum(map(is_meant, self._read().values()))
            self._file.remove(is_meant)
            self._unwritten = {key: one for key, one in self._unwritten.items() if not is_meant(one)}
            return count

    def _read(self) -> dict[Key, Observed]:
        stamp = self._file.stamp()
        if stamp != self._stamp:
            self._stamp, self._known = stamp, newest(self._file.read())
        return {**self._known, **self._unwritten} if self._unwritten else self._known

"""The windows that servers taught this machine, kept beside the sessions and shared by its processes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from msgspec.structs import replace

from compactd.core.models.observed import (
    AGAIN_S,
    By,
    Judged,
    Key,
    Observed,
    confirms,
    doubt_of,
    in_force,
    is_fresh,
    judge,
    key,
    observation_of,
)
from compactd.core.models.registry import Lookup
from compactd.protocol.errors import StorageFailed
from compactd.storage.observed_windows import FILE, Observations, Stamp

_log = logging.getLogger("compactd.learned")

MAX_UNWRITTEN = 64
"""Observations that are held in memory where the disk takes none."""


class LearnedWindows:
    """What is observed of models, in memory and in `folder`'s file. Safe in any thread.

    Where the file cannot be written, this process still knows; the log says so.
    """

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        """`now`: Unix seconds; observations grow old."""
        self._file = Observations(folder / FILE)
        self._now = now
        self._lock = Lock()
        self._stamp: Stamp | None = None
        self._known: dict[Key, Judged] = {}
        self._unwritten: list[Observed] = []

    def of(self, found: Lookup, base_url: str | None) -> Observed | None:
        """What is in force of the model of `found` at this endpoint."""
        with self._lock:
            judged = self._read().get(key(found.model, found.provider, base_url), Judged())
            return in_force(judged.counts, found, self._now())

    def learn(
        self,
        found: Lookup,
        base_url: str | None,
        window: int,
        by: By,
        *,
        requested: int | None = None,
        sent: int | None = None,
        is_own: bool = True,
    ) -> Observed | None:
        """Keeps what a server said; None if that tells nothing new.

        One that comes back as a sighting is doubtful: it counts only in the session that saw it. If it is not
        the server's own sentence (`is_own`), it is not even written: a quotation must confirm nothing.
        """
        now = self._now()
        one = observation_of(found, base_url, window, by, now, requested=requested, sent=sent)
        if one is None:
            return None
        if not is_own:
            return replace(one, by="sighting")
        with self._lock:
            judged = self._read().get(one.key, Judged())
            before, is_doubtful = judged.counts, bool(doubt_of(one))
            is_again = before is not None and is_fresh(before, now) and _is_same(before, one)
            # A doubtful one prolongs nothing.
            if before is not None and is_again and (is_doubtful or now - before.at < AGAIN_S):
                return before
            if is_doubtful and any(confirms(earlier, one) for earlier in judged.sightings):
                one = replace(one, confirmed=True)
            elif is_doubtful:
                one = replace(one, by="sighting")
                if any(s.requested == one.requested and _is_same(s, one) for s in judged.sightings):
                    return one
            self._keep(one)
            return one

    def _keep(self, one: Observed) -> None:
        try:
            self._file.add(one)
        except StorageFailed as error:
            self._unwritten = [*self._unwritten[1 - MAX_UNWRITTEN :], one]
            _log.warning("%s", error.message)

    def all(self) -> tuple[Observed, ...]:
        """Every observation that is not too old, by model: those that count, and sightings."""
        now = self._now()
        with self._lock:
            known = list(self._read().values())
        found = [
            one for judged in known for one in (judged.counts, *judged.sightings[-1:]) if one is not None
        ]
        fresh = (one if _counts(one) else replace(one, by="sighting") for one in found)
        return tuple(
            sorted(
                (one for one in fresh if is_fresh(one, now)),
                key=lambda one: (one.provider or "", one.model, one.base_url or "", one.at),
            )
        )

    def forget(self, is_meant: Callable[[Observed], bool]) -> int:
        """Takes out those that are meant; of how many models and endpoints. Raises `StorageFailed`."""
        with self._lock:
            lists = [(judged.counts, *judged.sightings) for judged in self._read().values()]
            count = sum(any(one is not None and is_meant(one) for one in found) for found in lists)
            self._file.remove(is_meant)
            self._unwritten = [one for one in self._unwritten if not is_meant(one)]
            return count

    def _read(self) -> dict[Key, Judged]:
        stamp = self._file.stamp()
        if stamp != self._stamp:
            self._stamp, self._known = stamp, judge(self._file.read())
        return judge((*self._file.read(), *self._unwritten)) if self._unwritten else self._known


def _counts(one: Observed) -> bool:
    return one.confirmed or not doubt_of(one)


def _is_same(before: Observed, one: Observed) -> bool:
    """Whether both name the same window."""
    kinds = {"server"} & {before.by, one.by}
    return (before.window, before.known) == (one.window, one.known) and (not kinds or before.by == one.by)

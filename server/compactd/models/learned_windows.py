"""Observed context windows: what servers said about the windows of their models. They are stored next to
the sessions, and all processes share them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from msgspec.structs import replace

from compactd.core.models.observed import (
    REWRITE_AFTER_S,
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
"""The maximum number of observations that are kept in memory if they cannot be written to disk."""


class LearnedWindows:
    """The observed windows, in memory and in a file in `folder`. Thread-safe.

    If the file cannot be written, this process uses the observations anyway, and the log says so.
    """

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        """Name the file, without reading it. `now` returns the time in Unix seconds, by which observations
        expire."""
        self._file = Observations(folder / FILE)
        self._now = now
        self._lock = Lock()
        self._stamp: Stamp | None = None
        self._known: dict[Key, Judged] = {}
        self._unwritten: list[Observed] = []

    def of(self, found: Lookup, base_url: str | None) -> Observed | None:
        """Return the observed window that now applies to the model of `found` at `base_url` (None means the
        provider's own address). Return None if there is none."""
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
        """Store the `window` (tokens) that a server named, and return it as an observation. Return None if
        `window` is absurdly small, or if a rejection names no smaller window than the registry.

        A rejection may be a mere quotation in the server's error. If its numbers are doubtful (`doubt_of`),
        it is returned with `by="sighting"`. A sighting counts only in the session that saw it, until a second
        rejection confirms it. If `is_own` is false (the sentence is not the server's own), the sighting is
        not stored, so it can never confirm another. `requested` is the size of the request that the rejection
        names, `sent` the size that the session counted, both in tokens.
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
            # A doubtful observation does not extend an earlier one.
            if before is not None and is_again and (is_doubtful or now - before.at < REWRITE_AFTER_S):
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
        """Write an observation. If that fails, keep it in memory and log a warning."""
        try:
            self._file.add(one)
        except StorageFailed as error:
            self._unwritten = [*self._unwritten[1 - MAX_UNWRITTEN :], one]
            _log.warning("%s", error.message)

    def all_observed(self) -> tuple[Observed, ...]:
        """Return the observations that have not expired, sorted by provider and model. For each model at each
        endpoint, these are the window that applies and the last doubtful rejection (`by` is `sighting`)."""
        now = self._now()
        with self._lock:
            known = list(self._read().values())
        found = [
            one for judged in known for one in (judged.counts, *judged.sightings[-1:]) if one is not None
        ]
        fresh = (one if _is_believed(one) else replace(one, by="sighting") for one in found)
        return tuple(
            sorted(
                (one for one in fresh if is_fresh(one, now)),
                key=lambda one: (one.provider or "", one.model, one.base_url or "", one.at),
            )
        )

    def forget(self, is_meant: Callable[[Observed], bool]) -> int:
        """Remove the observations for which `is_meant` is true. Return how many pairs of model and
        endpoint they belong to. Raises `StorageFailed`."""
        with self._lock:
            lists = [(judged.counts, *judged.sightings) for judged in self._read().values()]
            count = sum(any(one is not None and is_meant(one) for one in found) for found in lists)
            self._file.remove(is_meant)
            self._unwritten = [one for one in self._unwritten if not is_meant(one)]
            return count

    def _read(self) -> dict[Key, Judged]:
        """Return the observations by model and endpoint. The file is read only if it has changed."""
        stamp = self._file.stamp()
        if stamp != self._stamp:
            self._stamp, self._known = stamp, judge(self._file.read())
        return judge((*self._file.read(), *self._unwritten)) if self._unwritten else self._known


def _is_believed(one: Observed) -> bool:
    """Return whether an observation applies to all sessions: it is not doubtful, or it was confirmed."""
    return one.confirmed or not doubt_of(one)


def _is_same(before: Observed, one: Observed) -> bool:
    """Return whether both observations name the same window, and the registry's window was the same for both.
    A window that a server stated when asked never equals one from a rejection."""
    kinds = {"server"} & {before.by, one.by}
    return (before.window, before.known) == (one.window, one.known) and (not kinds or before.by == one.by)

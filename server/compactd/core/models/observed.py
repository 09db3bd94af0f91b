"""Observed windows: what servers said about a model's window, when they rejected a request or when asked.

An observation is about one model at one provider's endpoint. A rejection can only lower a known window; a
server that states its own window is believed even if it is larger. An observation expires after `LASTS_S`, or
when the registry's number for the model changes, because the limit may have changed with it.

An error may quote other text: a file name, a URL, a tool's output that looks like a rejection. A doubtful
rejection (`doubt_of`) is a sighting. It counts in the session that saw it. In other sessions it counts only
after a second sighting named the same window for a request of another size. (Rules: docs/dev/behaviour.md,
"The budget equation".)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from compactd.core.models.lookup import Lookup
from compactd.core.models.names import last_part, name_key

By = Literal["rejection", "server", "sighting"]
"""How a window was observed. `sighting` is a doubtful rejection. Versions before 2026-12 do not know this
word and ignore such an observation."""

LASTS_S = 14 * 86_400.0
"""How many seconds an observed window is used. A real limit is soon named again by the server; a wrong one
expires."""

REWRITE_AFTER_S = 86_400.0
"""If a server names the same window again, the observation is written again, with its new time, only after
this many seconds."""

MIN_SHARE = 4
"""A rejection that names less than a quarter of the known window is doubtful."""

MIN_SIZE = 2
"""A rejection is doubtful if the request that was sent has less than half of the window that the rejection
names, or if the size that the rejection names is less than half of what was sent."""

MAX_SIGHTINGS = 8

MIN_OBSERVED_WINDOW = 256
"""The smallest number of tokens that is believed to be a window. No model for conversations has a smaller
one."""

Key = tuple[str, str, str]
"""(provider, model, endpoint), each in one spelling. An empty text means that there is none."""


class Observed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One window that a server named, in tokens."""

    model: str
    window: int
    by: By
    at: float
    """When it was observed, in Unix seconds."""
    provider: str | None = None
    base_url: str | None = None
    """The endpoint; None means the provider's own."""
    known: int | None = None
    """What the registry said when the window was observed; None if the registry only guessed."""
    requested: int | None = None
    """For a rejection: the size of the request as the rejection names it."""
    sent: int | None = None
    """For a rejection: the size of the request as compactd estimated it."""
    confirmed: bool = False
    """Whether this doubtful rejection was confirmed by another one."""

    def __post_init__(self) -> None:
        if self.base_url is not None:
            from compactd.core.text.endpoints import bare_endpoint

            msgspec.structs.force_setattr(self, "base_url", bare_endpoint(self.base_url))

    @property
    def key(self) -> Key:
        """The provider, model and endpoint that the observation is about."""
        return key(self.model, self.provider, self.base_url)

    @property
    def source(self) -> str:
        """Where the window comes from, for people."""
        by = _SOURCES[self.by]
        return f"{by}{f' at {self.base_url}' if self.base_url else ''}"


def key(model: str, provider: str | None, base_url: str | None) -> Key:
    """Return the key of a model at an endpoint, in one spelling. User, query and a trailing slash are
    dropped. With an endpoint, the provider is left out, because the endpoint already says who serves the
    model."""
    if not base_url:
        return (provider or "").lower(), name_key(model), ""
    host, slash, path = base_url.split("://", 1)[-1].split("?", 1)[0].rstrip("/").partition("/")
    return "", last_part(name_key(model)), host.rpartition("@")[2].lower() + slash + path


def recorded_window(found: Lookup) -> int | None:
    """Return the registry's window in tokens, unless it is only a guess."""
    return None if found.confidence == "guess" else found.context_window


def observation_of(
    found: Lookup,
    base_url: str | None,
    window: int,
    by: By,
    at: float,
    *,
    requested: int | None = None,
    sent: int | None = None,
) -> Observed | None:
    """Return the observation that a server named `window` for the model of `found`. Return None if it teaches
    nothing: an absurd number, or a rejection that is not below the known window."""
    known = recorded_window(found)
    if window < MIN_OBSERVED_WINDOW or (by == "rejection" and known is not None and window >= known):
        return None
    return Observed(
        model=found.model,
        provider=found.provider,
        base_url=base_url,
        window=window,
        by=by,
        at=at,
        known=known,
        requested=requested,
        sent=sent,
    )


def doubt_of(one: Observed) -> str:
    """Return why a rejection may only be text that an error quotes, as a part of a sentence; an empty text if
    nothing suggests that."""
    if one.by == "server":
        return ""
    if one.known is not None and one.window * MIN_SHARE < one.known:
        return f"the window that it names is less than a quarter of the registry's {one.known:,} tokens"
    if one.sent is not None and one.sent * MIN_SIZE < one.window:
        return f"the request had about {one.sent:,} tokens, far less than the window that the rejection names"
    if one.sent is not None and one.requested is not None and one.requested * MIN_SIZE < one.sent:
        return f"it says that the request had {one.requested:,} tokens, but about {one.sent:,} were sent"
    return ""


def confirms(earlier: Observed, later: Observed) -> bool:
    """Return whether two doubtful rejections confirm each other: they name the same window for requests of
    different sizes.

    An error that only quotes a text repeats the numbers in it. So the sizes that the errors name must differ,
    and also the sizes that were sent.
    """
    return (
        (earlier.window, earlier.known) == (later.window, later.known)
        and None not in (earlier.requested, later.requested)
        and earlier.requested != later.requested
        and (None in (earlier.sent, later.sent) or earlier.sent != later.sent)
        and is_fresh(earlier, later.at)
    )


def is_fresh(one: Observed, now: float) -> bool:
    """Return whether an observation is recent enough to count: less than `LASTS_S` before `now`, or after it
    if a clock was wrong."""
    return abs(now - one.at) < LASTS_S


def in_force(observed: Observed | None, found: Lookup, now: float) -> Observed | None:
    """Return `observed`, or None if it is too old, or if the registry's row or the user's setting has changed
    since."""
    if observed is None or observed.known != recorded_window(found) or not is_fresh(observed, now):
        return None
    return observed


def counting_window(learned: Observed | None, sighting: Observed | None, accepted: int) -> Observed | None:
    """Return the observation that counts in a session which saw `sighting` itself: the one of `learned` and
    `sighting` with the smaller window. The sighting does not count if its window is at most `accepted`, the
    tokens of a request of this session that the provider accepted."""
    if sighting is None or sighting.window <= accepted:
        return learned
    return sighting if learned is None or sighting.window < learned.window else learned


def lookup_with_observed(found: Lookup, observed: Observed | None) -> Lookup:
    """Return the result of a lookup with the observed window applied."""
    if observed is None:
        return found
    limit = found.input_limit
    return msgspec.structs.replace(
        found,
        context_window=observed.window,
        input_limit=None if limit is None or limit >= observed.window else limit,
        output_limit=None if found.output_limit is None else min(found.output_limit, observed.window),
        upper_bound=False if observed.by == "server" else found.upper_bound,
        confidence="observed",
        source=observed.source,
        how=f"observed; the registry says {found.context_window:,} ({found.confidence})",
    )


class Judged(Struct, frozen=True):
    """What is known of one model at one endpoint."""

    counts: Observed | None = None
    """The last observation that was not doubtful, or that was confirmed."""
    sightings: tuple[Observed, ...] = ()
    """Doubtful rejections that wait to be confirmed, the newest last."""


def judge(observations: Iterable[Observed]) -> dict[Key, Judged]:
    """Return, for each model at each endpoint, which observed window counts, and the doubtful ones
    (sightings) that are not confirmed yet. `observations` are sorted, oldest first. O(observations).

    Old versions believed every rejection and recorded doubtful ones as `rejection`. These count as sightings.
    """
    judged: dict[Key, Judged] = {}
    for one in observations:
        before = judged.get(one.key, Judged())
        if one.by != "sighting" and (one.confirmed or not doubt_of(one)):
            # The sightings that confirmed it are used up; a new number must be confirmed again.
            judged[one.key] = Judged(one, tuple(s for s in before.sightings if s.window != one.window))
        else:
            judged[one.key] = Judged(before.counts, (*before.sightings[1 - MAX_SIGHTINGS :], one))
    return judged


_SOURCES: dict[By, str] = {
    "rejection": "a rejection",
    "sighting": "a rejection that is not confirmed yet",
    "server": "reported by the server",
}

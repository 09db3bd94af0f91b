"""What servers themselves said of a model's window: in a rejection, or when they were asked.

One observation is about one model at one provider's endpoint. A rejection can only lower a window that is
known; a server that states its own is believed either way. An observation ends when the registry's row has
another number than it had then, because the model was changed and so may its limit, and after `LASTS_S`.

An error may quote text of somebody else: a file name, a URL, a tool's output that reads like a rejection. A
rejection that is doubtful (`doubt_of`) is a sighting: it counts in the session that saw it, and in all others
only after another one named the same window for a request of another size. (Rules: docs/dev/behaviour.md,
"The budget equation".)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from compactd.core.models.lookup import Lookup
from compactd.core.models.names import key_of, last_part

By = Literal["rejection", "server", "sighting"]
"""`sighting`: a doubtful rejection. Versions before 2026-12 do not know the word and leave the line out."""

LASTS_S = 14 * 86_400.0
"""Seconds that an observation is in force. A real limit is soon met again; a wrong one goes by itself."""

AGAIN_S = 86_400.0
"""Seconds after which the same observation is written again, with its new time."""

MIN_SHARE = 4
"""A rejection that names less than a quarter of the known window is doubtful."""

MIN_SIZE = 2
"""A rejection is doubtful where what was sent is less than half of the window that it names, or what it says
was requested less than half of what was sent."""

KEPT_SIGHTINGS = 8

WINDOW_LEAST = 256
"""Tokens. No model that holds a conversation has a smaller window; a smaller number is something else."""

Key = tuple[str, str, str]
"""(provider, model, endpoint), each in one spelling; empty where there is none."""


class Observed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One window that a server told us of. Tokens."""

    model: str
    window: int
    by: By
    at: float
    """Unix seconds."""
    provider: str | None = None
    base_url: str | None = None
    """The endpoint; none is the provider's own."""
    known: int | None = None
    """What the registry said then; none where it only guessed."""
    requested: int | None = None
    """Of a rejection: the size of the request as it names it."""
    sent: int | None = None
    """Of a rejection: the size of the request as this machine estimates it."""
    confirmed: bool = False
    """A doubtful rejection that another one confirmed."""

    def __post_init__(self) -> None:
        if self.base_url is not None:
            from compactd.core.text.endpoints import bare_endpoint

            msgspec.structs.force_setattr(self, "base_url", bare_endpoint(self.base_url))

    @property
    def key(self) -> Key:
        """What this was observed of."""
        return key(self.model, self.provider, self.base_url)

    @property
    def source(self) -> str:
        """Where the number comes from, for people."""
        by = _SOURCES[self.by]
        return f"{by}{f' of {self.base_url}' if self.base_url else ''}"


def key(model: str, provider: str | None, base_url: str | None) -> Key:
    """One spelling of a model at an endpoint. User, query and a closing slash are no part of it; an endpoint
    of its own says who serves, so that no provider need be named there."""
    if not base_url:
        return (provider or "").lower(), key_of(model), ""
    host, slash, path = base_url.split("://", 1)[-1].split("?", 1)[0].rstrip("/").partition("/")
    return "", last_part(key_of(model)), host.rpartition("@")[2].lower() + slash + path


def recorded_window(found: Lookup) -> int | None:
    """The registry's number, where it is more than a guess. Tokens."""
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
    """What a server says that named `window` for the model of `found`; none where that is nothing new: an
    absurd number, or a rejection above what is known."""
    known = recorded_window(found)
    if window < WINDOW_LEAST or (by == "rejection" and known is not None and window >= known):
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
    """Why a rejection may be no more than a quotation; empty where nothing speaks for that."""
    if one.by == "server":
        return ""
    if one.known is not None and one.window * MIN_SHARE < one.known:
        return f"it names less than a quarter of the {one.known:,} tokens that the registry says"
    if one.sent is not None and one.sent * MIN_SIZE < one.window:
        return f"the request had about {one.sent:,} tokens, far less than the window that it names"
    if one.sent is not None and one.requested is not None and one.requested * MIN_SIZE < one.sent:
        return f"it names a request of {one.requested:,} tokens, and about {one.sent:,} were sent"
    return ""


def confirms(earlier: Observed, later: Observed) -> bool:
    """Whether two doubtful rejections confirm each other: the same window, named for requests of two sizes.

    A quotation repeats its numbers, so the sizes that the errors name must differ, and what was sent as well.
    """
    return (
        (earlier.window, earlier.known) == (later.window, later.known)
        and None not in (earlier.requested, later.requested)
        and earlier.requested != later.requested
        and (None in (earlier.sent, later.sent) or earlier.sent != later.sent)
        and is_fresh(earlier, later.at)
    )


def is_fresh(one: Observed, now: float) -> bool:
    """Whether it is young enough to count; one from the future (a clock that was wrong) counts as long."""
    return abs(now - one.at) < LASTS_S


def in_force(observed: Observed | None, found: Lookup, now: float) -> Observed | None:
    """`observed`, unless it is too old, or the row, or what the user says, is another one since."""
    if observed is None or observed.known != recorded_window(found) or not is_fresh(observed, now):
        return None
    return observed


def held(learned: Observed | None, sighting: Observed | None, accepted: int) -> Observed | None:
    """What counts in a session that saw `sighting` itself: the smaller one, but no sighting of a window below
    the `accepted` tokens that the provider took from this session already."""
    if sighting is None or sighting.window <= accepted:
        return learned
    return sighting if learned is None or sighting.window < learned.window else learned


def with_observed(found: Lookup, observed: Observed | None) -> Lookup:
    """The answer to a lookup under what was observed."""
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
    """The last that was not doubtful, or was confirmed."""
    sightings: tuple[Observed, ...] = ()
    """Those that wait to be confirmed, newest last."""


def judge(observations: Iterable[Observed]) -> dict[Key, Judged]:
    """What each model's observations, oldest first, come to. O(observations).

    Also those of versions that took every rejection at its word: one that is doubtful is a sighting.
    """
    judged: dict[Key, Judged] = {}
    for one in observations:
        before = judged.get(one.key, Judged())
        if one.by != "sighting" and (one.confirmed or not doubt_of(one)):
            # What confirmed it has done its work; a new number has to be confirmed anew.
            judged[one.key] = Judged(one, tuple(s for s in before.sightings if s.window != one.window))
        else:
            judged[one.key] = Judged(before.counts, (*before.sightings[1 - KEPT_SIGHTINGS :], one))
    return judged


_SOURCES: dict[By, str] = {
    "rejection": "a rejection",
    "sighting": "a rejection that nothing confirmed yet",
    "server": "the server's own word",
}

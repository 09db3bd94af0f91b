"""What servers themselves said of a model's window: in a rejection, or when they were asked.

One observation stands for one model at one provider's endpoint. A rejection can only lower a window that is
known; a server that states its own is believed either way. An observation ends when the registry's row has
another number than it had then: the model was changed, and so may its limit. (Rules: registry.md, "Learning
from errors"; behaviour.md, "The budget equation".)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from compactd.core.lookup import Lookup
from compactd.core.model_names import key_of, last_part

By = Literal["rejection", "server"]

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

    def __post_init__(self) -> None:
        if self.base_url is not None:
            from compactd.core.endpoints import bare_endpoint

            msgspec.structs.force_setattr(self, "base_url", bare_endpoint(self.base_url))

    @property
    def key(self) -> Key:
        """What this was observed of."""
        return key(self.model, self.provider, self.base_url)

    @property
    def source(self) -> str:
        """Where the number comes from, for people."""
        by = "a rejection" if self.by == "rejection" else "the server's own word"
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


def observation_of(found: Lookup, base_url: str | None, window: int, by: By, at: float) -> Observed | None:
    """What is learned from a server that named `window` for the model of `found`; none where it says nothing
    new: an absurd number, or a rejection above what is known."""
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
    )


def in_force(observed: Observed | None, found: Lookup) -> Observed | None:
    """`observed`, unless the row, or what the user says, is another one since."""
    if observed is None or observed.known != recorded_window(found):
        return None
    return observed


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


def newest(observations: Iterable[Observed]) -> dict[Key, Observed]:
    """The observation that counts of each model and endpoint: the last one."""
    return {one.key: one for one in observations}

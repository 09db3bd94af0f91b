"""The requests to models that a session file reports: their tokens, times, models and costs."""

from __future__ import annotations

import hashlib
from datetime import datetime

from msgspec import Struct


class Request(Struct, array_like=True, gc=False):
    """One request to a model, as an agent's file reports it. All counts are tokens.

    The struct is mutable and encoded as an array, because there are some 100,000 of them per gigabyte.
    """

    key: int
    """A hash of what identifies the request; the same in every file that contains a copy. 0 if nothing
    identifies it.
    """
    at: int
    """When it was answered, in seconds since 1970 (UTC); 0 if the file does not say."""
    model: int
    """The place of its model in `FileUsage.models`."""
    input: int
    """Input tokens that were neither read from the cache nor written to it."""
    output: int
    """Output tokens, reasoning included."""
    cache_write: int
    """Input tokens that were written to the cache, whatever their lifetime."""
    cache_write_1h: int
    """Those of `cache_write` that stay in the cache for an hour."""
    cache_read: int
    cost: float | None = None
    """The cost in US dollars that the file reports; None if it reports none."""


class FileUsage(Struct):
    """What one session file reports. It contains no text of the conversation."""

    agent: str
    session_id: str
    project: str = ""
    """The folder in which the agent worked; empty if neither the file nor its path says."""
    parent_id: str = ""
    """The session from which this file copied its first requests; empty if it copied none."""
    models: list[tuple[str, str]] = []
    """(provider, or empty; model, or empty) of each model, as the file spells them."""
    requests: list[Request] = []
    not_reported: tuple[str, ...] = ()
    """The fields of `Request` that the agent does not write to its files."""
    unreadable: int = 0
    """Lines with a usage report that could not be read."""
    read_bytes: int = 0
    """How many bytes, from the beginning, were read as complete lines. 0 if the file is always read whole."""
    state: list[int] = []
    """What the reader needs to continue after `read_bytes`; only Codex's reader uses it."""

    def model_index(self, provider: str, model: str) -> int:
        """Return the place of a model in `models`; add it if it is new."""
        name = (provider, model)
        try:
            return self.models.index(name)
        except ValueError:
            self.models.append(name)
            return len(self.models) - 1


def key_of(identity: str) -> int:
    """Return a hash of `identity` that is the same in every process: 63 bits, never 0."""
    digest = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 1) or 1


def seconds(time: str | int | float | None) -> int:
    """Return seconds since 1970 (UTC) for an ISO 8601 time, or for a number of milliseconds; 0 for anything
    else. A time without a zone is UTC.
    """
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        return int(time // 1000) if 0 < time < 1e14 else 0
    if not isinstance(time, str):
        return 0
    try:
        moment = datetime.fromisoformat(time)
        if moment.tzinfo is None:
            moment = datetime.fromisoformat(f"{time}+00:00")
        return max(0, int(moment.timestamp()))
    except (ValueError, OverflowError, OSError):
        return 0


def count(number: object) -> int:
    """Return a number of tokens; 0 if it is missing, negative, or no whole number."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0


def dollars(number: object) -> float | None:
    """Return a reported cost; None if it is missing or no number from 0 on."""
    if isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number < 1e9:
        return float(number)
    return None

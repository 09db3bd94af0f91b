"""The rows of the model registry, and how they are found by key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from compactd.core.model_names import FIRST_PARTIES, SIBLINGS, key_of, last_part, without_date


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Prices of a request whose input is above `above` tokens."""

    above: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class Pricing(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    steps: tuple[Step, ...] = ()
    """By rising `above`; the last that applies holds for the whole request."""


class Row(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One model at one provider, as data/models.jsonl has it. Tokens."""

    provider: str
    id: str
    context: int
    """The window: what input and output share. Never 0."""
    input: int | None = None
    """Most input, where that is less than the window."""
    output: int | None = None
    """Most output, always less than the window."""
    prices: Pricing | None = None
    family: str | None = None
    tokenizer: str | None = None
    modalities: tuple[str, ...] = ()
    """What it takes beside text."""
    src: tuple[str, ...] = ()
    """Where the numbers come from."""
    disputed: bool = False
    """Sources differ by more than 5 %: these are the smallest numbers."""
    retired: bool = False
    """No longer served, or no longer listed; old conversations still name it."""


class _Shelf:
    """One provider's rows, by every key they may be asked for. O(rows)."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.exact: dict[str, Row] = {}
        self.short: dict[str, list[Row]] = {}
        """By the id, and by its last part, each without a date too."""
        for row in rows:
            key = key_of(row.id)
            part = last_part(key)
            self.exact.setdefault(key, row)
            for short in {key, part, without_date(key), without_date(part)}:
                self.short.setdefault(short, []).append(row)


class Rows:
    """Rows by key. Each index is made when it is first needed, a provider at a time: O(rows), then O(1)."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.all = tuple(rows)
        self.by_provider: dict[str, list[Row]] = {}
        for row in self.all:
            self.by_provider.setdefault(row.provider, []).append(row)
        self.providers = frozenset(self.by_provider)
        self._shelves: dict[str, _Shelf] = {}
        self._everywhere: dict[str, list[Row]] = {}
        self._makers: list[tuple[str, Row]] = []

    def served(self, provider: str, key: str) -> Row | None:
        """The row of `key` at `provider`, or at its sibling."""
        for shelf in self._shelves_of(provider):
            if (row := shelf.exact.get(key)) is not None:
                return row
        return None

    def served_as(self, provider: str, key: str) -> Row | None:
        """The row at `provider` whose last part, date aside, is `key`, if all such rows have one window."""
        for shelf in self._shelves_of(provider):
            rows = shelf.short.get(key, [])
            if rows and len({row.context for row in rows}) == 1:
                return min(rows, key=lambda row: (row.retired, len(row.id), row.id))
        return None

    def anywhere(self, key: str) -> tuple[Row, ...]:
        """Every provider's rows whose last part, date aside, is `key`; retired ones only if no others are."""
        if not self._everywhere:
            for row in self.all:
                part = last_part(key_of(row.id))
                for short in {part, without_date(part)}:
                    self._everywhere.setdefault(short, []).append(row)
        rows = tuple(self._everywhere.get(key, ()))
        return tuple(row for row in rows if not row.retired) or rows

    def _shelves_of(self, provider: str) -> Iterator[_Shelf]:
        for place in (provider, *SIBLINGS.get(provider, ())):
            if place in self.by_provider:
                if place not in self._shelves:
                    self._shelves[place] = _Shelf(self.by_provider[place])
                yield self._shelves[place]

    def kin(self, prefix: str) -> tuple[Row, ...]:
        """The makers' rows whose id begins with `prefix` and goes on with another word; none retired."""
        if not self._makers:
            self._makers = sorted(
                (
                    (last_part(key_of(row.id)), row)
                    for maker in FIRST_PARTIES
                    for row in self.by_provider.get(maker, ())
                    if not row.retired
                ),
                key=lambda pair: pair[0],
            )
        start = bisect_left(self._makers, prefix + "-", key=lambda pair: pair[0])
        # "." comes right after "-" and stands in no key.
        end = bisect_left(self._makers, prefix + ".", key=lambda pair: pair[0])
        return tuple(row for _, row in self._makers[start:end])

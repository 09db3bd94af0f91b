"""The rows of the model registry, each for one model at one provider, and their indexes by key."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from compactd.core.models.lookup import Pricing
from compactd.core.models.names import keys_of, last_part, name_key, without_date
from compactd.core.models.open_weights import OPEN_WEIGHTS, without_version
from compactd.core.models.provider_hosts import FIRST_PARTIES, SIBLINGS

ROUTER_FAMILIES = frozenset(("auto", "model-router"))
"""The values of a row's `family` that mark routers at models.dev (seen 2026-11)."""
_ROUTER_CHOICES = frozenset(("free", "fast", "fusion"))
"""Words that, after a router's name, let the router pick a model: `openrouter/free`, `trustedrouter/fast`."""


def is_router(key: str) -> bool:
    """Return whether a key names a router, which picks a model itself: `auto`, `openrouter/auto`,
    `auto-model-basic`, `lynkr-auto`, `kilo-auto/small`, `model-router`. `auto` counts only as the first or
    last word; `codex-auto-review` is a model."""
    maker, _, part = key.rpartition("/")
    part = part.partition(":")[0]
    words = part.split("-")
    if words[0] == "auto" or words[-1] == "auto" or "router" in words:
        return True
    maker = last_part(maker)
    return maker.endswith("-auto") or (part in _ROUTER_CHOICES and maker.endswith("router"))


class ModelRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One model at one provider, as in models/data/models.jsonl. Sizes are in tokens."""

    provider: str
    id: str
    canonical: str | None = None
    """The model's own name, if the id does not end with it: `claude-opus-4-6` for Bedrock's id."""
    context: int
    """The window, which input and output share. Never 0."""
    input: int | None = None
    """The most input tokens, if that is less than the window."""
    output: int | None = None
    """The most output tokens, always less than the window."""
    prices: Pricing | None = None
    family: str | None = None
    tokenizer: str | None = None
    modalities: tuple[str, ...] = ()
    """What the model accepts in addition to text."""
    sizes: tuple[str, ...] = ()
    """For open weights, the sizes with this window (`30b`). An empty text means the family without a size."""
    src: tuple[str, ...] = ()
    """Where the numbers come from."""
    disputed: bool = False
    """Whether sources differ by more than 5 %. The row then has the smallest numbers."""
    retired: bool = False
    """Whether the model is no longer served or listed. Old conversations still name it."""

    @property
    def is_router(self) -> bool:
        """Whether this is a router that picks a model. Its window is not that of a particular model."""
        return self.family in ROUTER_FAMILIES or is_router(name_key(f"{self.provider}/{self.id}"))


class ModelRows:
    """The rows of the registry, found by key. A row is decoded only when it is needed.

    Each index is built when it is first needed: O(rows of the provider) for one provider, O(rows) for all.
    After that, lookups are O(1).
    """

    def __init__(self, rows: Iterable[ModelRow] = ()) -> None:
        self._start(sorted(rows, key=lambda row: (row.provider, row.id)))

    @classmethod
    def of_lines(cls, lines: Sequence[bytes]) -> ModelRows:
        """Return the rows from the lines of models.jsonl, which must be sorted by provider and id. Each line
        is decoded when it is first needed.

        A line begins with `{"provider":"…","id":"…"`, without escapes in either. O(providers).
        """
        rows = cls()
        rows._start(lines)
        return rows

    def _start(self, rows: Sequence[ModelRow] | Sequence[bytes]) -> None:
        self._rows: list[ModelRow | bytes] = [*rows]
        self._places: dict[str, range] = {}
        start = 0
        while start < len(self._rows):
            provider = _provider(self._rows[start])
            end = bisect_right(self._rows, provider, lo=start, key=_provider)
            self._places[provider] = range(start, end)
            start = end
        self.providers = frozenset(self._places)
        self._shelves: dict[str, _ProviderRows] = {}
        self._everywhere: dict[str, list[int]] = {}
        self._orgs: set[str] = set()
        self._made: dict[str, ModelRow] = {}
        self._families: dict[str, list[tuple[str, ModelRow]]] = {}
        self._weights: dict[str, list[ModelRow]] = {}

    def all_rows(self) -> tuple[ModelRow, ...]:
        """Return every row, in order."""
        return tuple(self._row(number) for number in range(len(self._rows)))

    def by_provider(self, provider: str) -> tuple[ModelRow, ...]:
        """Return the rows of one provider, in order."""
        return tuple(self._row(number) for number in self._places.get(provider, ()))

    def row_at(self, provider: str, key: str) -> ModelRow | None:
        """Return the row with the key `key` at `provider` or at its sibling (`SIBLINGS`); None if there is
        none."""
        for shelf in self._rows_by_provider(provider):
            if (row := shelf.exact.get(key)) is not None:
                return row
        return None

    def row_named_at(self, provider: str, key: str) -> ModelRow | None:
        """Return the row at `provider` that has `key` as its canonical name, its id or the last part of its
        id, with or without a date. None if there is none, or if several rows match and their windows
        differ."""
        for shelf in self._rows_by_provider(provider):
            rows = shelf.short.get(key, [])
            if rows and len({(row.context, row.input) for row in rows}) == 1:
                return min(rows, key=lambda row: (row.retired, len(row.id), row.id))
        return None

    def first_party_row(self, key: str) -> ModelRow | None:
        """Return the row with the key `key` at the first of `FIRST_PARTIES` that serves it, by its id or the
        id's last part, with or without a date; None if there is none."""
        if not self._made:
            for maker in FIRST_PARTIES:
                for shelf in self._rows_by_provider(maker):
                    for part in (*shelf.exact, *shelf.short):
                        row = shelf.exact.get(part) or self.row_named_at(maker, part)
                        if row is not None:
                            self._made.setdefault(part, row)
        return self._made.get(key)

    def names(self) -> Collection[str]:
        """Return the keys for which `rows_named` finds something."""
        self._index_all()
        return self._everywhere.keys()

    def rows_named(self, key: str) -> tuple[ModelRow, ...]:
        """Return the rows of all providers that have `key` as their canonical name or as the last part of
        their id, with or without a date. Retired rows are included only if there are no others."""
        self._index_all()
        rows = tuple(self._row(number) for number in self._everywhere.get(key, ()))
        return tuple(row for row in rows if not row.retired) or rows

    def has_org(self, name: str) -> bool:
        """Return whether the id of some row begins with `name/`. Some hosts write the maker or packer of a
        model there."""
        self._index_all()
        return name in self._orgs

    def rows_with_prefix(self, prefix: str, provider: str | None = None) -> tuple[ModelRow, ...]:
        """Return the rows of `provider` (by default of all makers) whose id begins with `prefix` and
        continues with another word, except retired ones."""
        name = provider or ""
        if name not in self._families:
            places = FIRST_PARTIES if provider is None else (provider, *SIBLINGS.get(provider, ()))
            pairs = [
                (last_part(name_key(row.id)), row) for place in places for row in self.by_provider(place)
            ]
            self._families[name] = sorted(
                (pair for pair in pairs if not pair[1].retired), key=lambda pair: pair[0]
            )
        pairs = self._families[name]
        start = bisect_left(pairs, prefix + "-", key=lambda pair: pair[0])
        # "." is the next character after "-", and does not occur in keys.
        end = bisect_left(pairs, prefix + ".", key=lambda pair: pair[0])
        return tuple(row for _, row in pairs[start:end])

    def weights(self, stem: str) -> tuple[ModelRow, ...]:
        """Return the rows of the open-weight models of the family `stem`, which give the window that a model
        was made with. If there are none, return the rows of the family's releases, such as `stem-2507`."""
        if not self._weights:
            rows = self.by_provider(OPEN_WEIGHTS)
            for row in [row for row in rows if not row.retired]:
                family = row.id.partition("@")[0]
                for name in dict.fromkeys((family, "~" + without_version(family))):
                    self._weights.setdefault(name, []).append(row)
        return tuple(self._weights.get(stem) or self._weights.get("~" + stem) or ())

    def _row(self, number: int) -> ModelRow:
        row = self._rows[number]
        if isinstance(row, bytes):
            row = self._rows[number] = _decode(row)
        return row

    def _rows_by_provider(self, provider: str) -> Iterator[_ProviderRows]:
        for place in (provider, *SIBLINGS.get(provider, ())):
            if place in self._places:
                if place not in self._shelves:
                    self._shelves[place] = _ProviderRows(self.by_provider(place))
                yield self._shelves[place]

    def _index_all(self) -> None:
        if self._everywhere:
            return
        for provider, places in self._places.items():
            if provider == OPEN_WEIGHTS:
                continue
            names = [_names(self._rows[number], len(provider)) for number in places]
            keys = keys_of([model for model, _ in names])
            for number, key, (_, own) in zip(places, keys, names, strict=True):
                org, _, part = key.rpartition("/")
                if org:
                    self._orgs.add(org.partition("/")[0])
                self._everywhere.setdefault(part, []).append(number)
                if "20" in part and (undated := without_date(part)) != part:
                    self._everywhere.setdefault(undated, []).append(number)
                if own is not None:
                    self._everywhere.setdefault(own, []).append(number)


class _ProviderRows:
    """The rows of one provider, indexed by every key under which a row can be found. O(rows)."""

    def __init__(self, rows: Sequence[ModelRow]) -> None:
        self.exact: dict[str, ModelRow] = {}
        self.short: dict[str, list[ModelRow]] = {}
        """The rows by their id, by its last part, by both without a date, and by the canonical name."""
        for key, row in zip(keys_of([row.id for row in rows]), rows, strict=True):
            part = last_part(key)
            self.exact.setdefault(key, row)
            names = {key, part, without_date(key), without_date(part)}
            for short in names if row.canonical is None else {*names, row.canonical}:
                self.short.setdefault(short, []).append(row)


_PROVIDER = len(b'{"provider":"')
_TO_ID = len(b'","id":"')
_CANONICAL = b'","canonical":"'


def _provider(row: ModelRow | bytes) -> str:
    """Return `ModelRow.provider`. If the row is still a line, only this field is decoded."""
    if isinstance(row, ModelRow):
        return row.provider
    return row[_PROVIDER : row.index(b'"', _PROVIDER)].decode()


def _names(row: ModelRow | bytes, provider_length: int) -> tuple[str, str | None]:
    """Return (`ModelRow.id`, `ModelRow.canonical`). If the row is still a line, only these fields are
    decoded."""
    if isinstance(row, ModelRow):
        return row.id, row.canonical
    start = _PROVIDER + provider_length + _TO_ID
    end = row.index(b'"', start)
    own = end + len(_CANONICAL)
    if row[end:own] != _CANONICAL:
        return row[start:end].decode(), None
    return row[start:end].decode(), row[own : row.index(b'"', own)].decode()


_decode = msgspec.json.Decoder(ModelRow).decode

"""What is known of a model: its window, limits, price. A number that is guessed always says so.

`Registry.lookup` goes down the steps of `model_ladder` and takes the first answer; what the user says of a
model beats it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.models.lookup import Lookup, Pricing, Step, Tried
from compactd.core.models.names import LONGEST, Name, folded, key_of, last_part, provider_of, read_name
from compactd.core.models.providers import FIRST_PARTIES
from compactd.core.models.resolution import FALLBACK_WINDOW, LOCAL_WINDOW, climb
from compactd.core.models.rows import Row, Rows

__all__ = [
    "FALLBACK_WINDOW",
    "LOCAL_WINDOW",
    "Lookup",
    "Override",
    "Pricing",
    "Registry",
    "Row",
    "Rows",
    "Step",
    "Tried",
]


NEAREST = 3
LIKENESS = 0.8
"""Names that are at least so much like an unknown one, as `difflib` counts it, are named, three at most."""


class Override(Struct, frozen=True, kw_only=True):
    """What the user says of a model, in models.toml: beats every row."""

    match: str
    """An id, `provider/id`, or either with `*` for any characters. Spelling as in `lookup`."""
    provider: str | None = None
    context: int | None = None
    input: int | None = None
    output: int | None = None


class Registry:
    """The rows and the user's word on them, found by any name of a model."""

    def __init__(self, rows: Iterable[Row] | Rows, overrides: Sequence[Override] = ()) -> None:
        self._rows = rows if isinstance(rows, Rows) else Rows(rows)
        self._overrides = tuple(overrides)

    def rows(self, provider: str | None = None) -> tuple[Row, ...]:
        """All rows, or those of one provider, by provider and id."""
        return self._rows.all() if provider is None else self._rows.by_provider(provider_of(provider))

    def lookup(self, model: str, provider: str | None = None, base_url: str | None = None) -> Lookup:
        """What is known of `model`, by whatever name. Never fails: nobody's model is a guess of 128000, on
        one's own machine of 32768.

        What an endpoint was seen to hold is not known here: whoever knows it lowers the answer, unless its
        `confidence` is `override`. About 0.05 ms; a provider's first lookup, and the first that looks at all
        providers, make their indexes.
        """
        name = read_name(model, provider, base_url, self._rows.providers.__contains__)
        answer = next(found for _, found in climb(self._rows, name) if found is not None)
        return self._overridden(name, answer)

    def nearest(self, model: str) -> tuple[str, ...]:
        """Known models, as `provider/id`, whose names are most like `model`; the likest first. O(rows)."""
        from difflib import get_close_matches

        key = key_of(model[:LONGEST])
        maker, _, part = key.rpartition("/")
        keys = self._rows.names()
        parts = [part] if part in keys else get_close_matches(part, keys, NEAREST, LIKENESS)
        makers = get_close_matches(maker, sorted(self._rows.providers), NEAREST, LIKENESS) if maker else []
        found = (self._rows.anywhere(part) for part in parts)
        return tuple(_spelled(min(rows, key=partial(_rank, makers))) for rows in found if rows)

    def explain(
        self, model: str, provider: str | None = None, base_url: str | None = None
    ) -> tuple[Tried, ...]:
        """The steps of `lookup`, each with what it looked for and found, up to the one that answered; the
        user's word last, where it changes the answer."""
        name = read_name(model, provider, base_url, self._rows.providers.__contains__)
        read = f"provider {name.provider or 'not named'}, model {name.key or 'not known'}"
        window = "" if name.window is None else f", window selected {name.window}"
        steps = [Tried("name", (name.asked,), read + (", on this machine" if name.local else "") + window)]
        for tried, answer in climb(self._rows, name):
            steps.append(tried)
            if answer is not None and (mine := self._overridden(name, answer)) is not answer:
                steps.append(Tried("models.toml", (), f"{mine.context_window} tokens ({mine.how})"))
        return tuple(steps)

    def _overridden(self, name: Name, found: Lookup) -> Lookup:
        """`found` with what the user says instead; an exact match before one with `*`."""
        if not self._overrides:
            return found
        spelled = {name.key, last_part(name.key), key_of(found.model)} - {""}
        spelled |= {f"{name.provider or found.provider or ''}/{key}" for key in tuple(spelled)}
        for exact in (True, False):
            for override in self._overrides:
                if override.provider and provider_of(override.provider) != (name.provider or found.provider):
                    continue
                if any(_matches(override.match, key, exact=exact) for key in spelled):
                    return _with(override, found)
        return found


def _rank(makers: Sequence[str], row: Row) -> tuple[int, int, int, str, str]:
    """The providers that are most like the one that was named first, then the makers."""
    named = makers.index(row.provider) if row.provider in makers else len(makers)
    made = FIRST_PARTIES.index(row.provider) if row.provider in FIRST_PARTIES else len(FIRST_PARTIES)
    return named, made, len(row.id), row.provider, row.id


def _spelled(row: Row) -> str:
    return f"{row.provider}/{row.id}"


def _with(override: Override, found: Lookup) -> Lookup:
    """`found` with the user's numbers; his window replaces the input limit too."""
    window = override.context or found.context_window
    output = override.output or found.output_limit
    return replace(
        found,
        context_window=window,
        input_limit=override.input if override.input or override.context else found.input_limit,
        output_limit=output if override.output or (output is not None and output < window) else None,
        upper_bound=False if override.context else found.upper_bound,
        confidence="override" if override.context else found.confidence,
        source="models.toml",
        how=f"override {override.match}",
    )


def _matches(pattern: str, key: str, *, exact: bool) -> bool:
    """True if `key` is `pattern`, or, with `exact` false, is like it with `*` for any characters."""
    parts = [folded(part) for part in pattern.split("*")]
    if exact or len(parts) == 1:
        return len(parts) == 1 and parts[0].strip("-") == key
    return re.fullmatch(".*".join(map(re.escape, parts)), key) is not None

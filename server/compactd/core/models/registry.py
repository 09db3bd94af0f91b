"""The model registry: finds a model's window, limits and price by any name of the model. If a number is
guessed, the result says so.

`Registry.lookup` goes through the steps of `resolution.py` and takes the first answer. The user's own
settings for a model take precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.models.aliases import ALIASES
from compactd.core.models.lookup import Lookup as Lookup
from compactd.core.models.lookup import PriceStep as PriceStep
from compactd.core.models.lookup import Pricing as Pricing
from compactd.core.models.lookup import Tried as Tried
from compactd.core.models.names import (
    MAX_MODEL_NAME_CHARS,
    ModelName,
    fold_name,
    last_part,
    name_key,
    provider_of,
    read_name,
)
from compactd.core.models.provider_hosts import FIRST_PARTIES
from compactd.core.models.resolution import FALLBACK_WINDOW as FALLBACK_WINDOW
from compactd.core.models.resolution import run_steps
from compactd.core.models.rows import ModelRow as ModelRow
from compactd.core.models.rows import ModelRows as ModelRows

MAX_NEAREST = 3
LIKENESS = 0.8
"""Names that are at least this similar (by `difflib`) to an unknown name are suggested, at most
`MAX_NEAREST`."""


class Override(Struct, frozen=True, kw_only=True):
    """The user's settings for a model, from models.toml. They take precedence over every row."""

    match: str
    """An id, `provider/id`, or either with `*` for any characters. Any spelling that `Registry.lookup`
    understands is possible."""
    provider: str | None = None
    context: int | None = None
    input: int | None = None
    output: int | None = None


class Registry:
    """The rows and the user's overrides, found by any name of a model."""

    def __init__(self, rows: Iterable[ModelRow] | ModelRows, overrides: Sequence[Override] = ()) -> None:
        self._rows = rows if isinstance(rows, ModelRows) else ModelRows(rows)
        self._overrides = tuple(overrides)

    def rows(self, provider: str | None = None) -> tuple[ModelRow, ...]:
        """Return all rows, or those of one provider, sorted by provider and id."""
        return self._rows.all_rows() if provider is None else self._rows.by_provider(provider_of(provider))

    def lookup(self, model: str, provider: str | None = None, base_url: str | None = None) -> Lookup:
        """Return what is known of `model`, by any of its names. An unknown model gets a guess of 128,000
        tokens, or 32,768 on the user's own machine; the lookup never fails.

        Observed windows are not considered. The caller applies them, unless `confidence` is `override`. Takes
        about 0.05 ms; the first lookup of a provider, and the first over all providers, also build an index.
        """
        name = read_name(model, provider, base_url, self._rows.providers.__contains__)
        answer = next(found for _, found in run_steps(self._rows, name) if found is not None)
        return self._apply_override(name, answer)

    def nearest(self, model: str) -> tuple[str, ...]:
        """Return known models, as `provider/id`, whose names are most similar to `model`, the most similar
        first. Without a provider in `model`, names that a model's maker uses take precedence. O(rows)."""
        from difflib import get_close_matches

        key = name_key(model[:MAX_MODEL_NAME_CHARS])
        maker, _, part = key.rpartition("/")
        keys = self._rows.names()
        parts = [part] if part in keys else []
        for names in (keys,) if maker else (self._makers_names(), keys):
            parts = parts or get_close_matches(part, names, MAX_NEAREST, LIKENESS)
        if not parts and (aliases := get_close_matches(part, ALIASES, 1, LIKENESS)):
            meant = self.lookup(aliases[0])
            return (f"{meant.provider}/{meant.model}",)
        if not parts:
            parts = self._with_words(part)
        makers = (
            get_close_matches(maker, sorted(self._rows.providers), MAX_NEAREST, LIKENESS) if maker else []
        )
        found = (self._rows.rows_named(part) for part in parts)
        return tuple(_spelling(min(rows, key=partial(_rank, makers))) for rows in found if rows)

    def _with_words(self, key: str) -> list[str]:
        """Return the keys of makers' models that contain all words of `key`, the newest first. Words without
        letters do not identify a model."""
        words = re.sub(r"(?<=[a-z])(?=\d)", "-", key).split("-")
        if not any(len(word) > 1 and word.isalpha() for word in words):
            return []
        found = [part for part in self._makers_names() if set(words) <= set(part.split("-"))]
        return sorted(found, key=lambda part: (_numbers(part), -len(part)), reverse=True)[:MAX_NEAREST]

    def _makers_names(self) -> list[str]:
        """Return the keys of the makers' models that are not retired, sorted."""
        makers = (row for maker in FIRST_PARTIES for row in self._rows.by_provider(maker) if not row.retired)
        return sorted({last_part(name_key(row.id)) for row in makers})

    def explain(
        self, model: str, provider: str | None = None, base_url: str | None = None
    ) -> tuple[Tried, ...]:
        """Return the steps of `lookup`, each with what it looked for and found, up to the one that answered.
        The user's override comes last, if it changes the answer."""
        name = read_name(model, provider, base_url, self._rows.providers.__contains__)
        read = f"provider {name.provider or 'not named'}, model {name.key or 'not known'}"
        window = "" if name.window is None else f", window selected {name.window}"
        steps = [Tried("name", (name.asked,), read + (", on this machine" if name.local else "") + window)]
        for tried, answer in run_steps(self._rows, name):
            steps.append(tried)
            if answer is not None and (mine := self._apply_override(name, answer)) is not answer:
                steps.append(Tried("models.toml", (), f"{mine.context_window} tokens ({mine.how})"))
        return tuple(steps)

    def _apply_override(self, name: ModelName, found: Lookup) -> Lookup:
        """Return `found` with the user's override applied. An exact match takes precedence over one with
        `*`."""
        if not self._overrides:
            return found
        spelled = {name.key, last_part(name.key), name_key(found.model)} - {""}
        spelled |= {f"{name.provider or found.provider or ''}/{key}" for key in tuple(spelled)}
        for exact in (True, False):
            for override in self._overrides:
                if override.provider and provider_of(override.provider) != (name.provider or found.provider):
                    continue
                if any(_matches(override.match, key, exact=exact) for key in spelled):
                    return _with_override(override, found)
        return found


def _rank(makers: Sequence[str], row: ModelRow) -> tuple[int, int, int, str, str]:
    """Return the sort key of a row. Rows of the providers `makers` come first, in that order, then rows of
    the models' own makers (`FIRST_PARTIES`)."""
    named = makers.index(row.provider) if row.provider in makers else len(makers)
    made = FIRST_PARTIES.index(row.provider) if row.provider in FIRST_PARTIES else len(FIRST_PARTIES)
    return named, made, len(row.id), row.provider, row.id


def _numbers(key: str) -> list[int]:
    """Return the numbers of a model's version. A date is none."""
    words = re.sub(r"20\d\d-\d\d-\d\d", "", key).split("-")
    return [int(word) for word in words if word.isdecimal() and len(word) <= 2]


def _spelling(row: ModelRow) -> str:
    return f"{row.provider}/{row.id}"


def _with_override(override: Override, found: Lookup) -> Lookup:
    """Return `found` with the user's numbers. The user's window replaces the input limit too."""
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
    """Return whether `key` equals `pattern`, or, with `exact` false, matches it with `*` for any
    characters."""
    parts = [fold_name(part) for part in pattern.split("*")]
    if exact or len(parts) == 1:
        return len(parts) == 1 and parts[0].strip("-") == key
    return re.fullmatch(".*".join(map(re.escape, parts)), key) is not None

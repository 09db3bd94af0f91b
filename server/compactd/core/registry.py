"""What is known of a model: its window, limits, price. A number that is guessed always says so.

`Registry.lookup` goes down a ladder of steps and takes the first answer. A recorded window that is too
large breaks a run, one that is too small costs a summary: where sources differ the smaller number stands.
A step compares whole words only; no part of a word, no edit distance ever finds a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from compactd.core.model_names import (
    FIRST_PARTIES,
    Name,
    folded,
    key_of,
    last_part,
    provider_of,
    read_name,
    tokenizer_of,
    without_date,
)
from compactd.core.model_rows import Pricing, Row, Rows, Step
from compactd.messages import Confidence

__all__ = ["Lookup", "Override", "Pricing", "Registry", "Row", "Step"]

FALLBACK_WINDOW = 128_000
"""Tokens of a model that nobody knows (contract: `models/lookup`; opal's default). A guess."""

CONSENSUS = 0.06
"""Windows of one model at several providers that differ by no more than this share agree."""


class Override(Struct, frozen=True, kw_only=True):
    """What the user says of a model, in models.toml: beats every row."""

    match: str
    """An id, `provider/id`, or either with `*` for any characters. Spelling as in `lookup`."""
    provider: str | None = None
    context: int | None = None
    input: int | None = None
    output: int | None = None


class Lookup(Struct, frozen=True, kw_only=True):
    """The answer to `models/lookup`. Tokens."""

    model: str
    """As the provider spells it; as asked where no row was found."""
    provider: str | None
    context_window: int
    input_limit: int | None
    """Most input, where that is less than the window."""
    output_limit: int | None
    upper_bound: bool
    """A local server may load less than this window."""
    confidence: Confidence
    source: str
    """Where the number comes from."""
    how: str
    """By which step it was found."""
    tokenizer: str | None
    pricing: Pricing | None
    retired: bool


class Registry:
    """The rows and the user's word on them, found by any name of a model."""

    def __init__(self, rows: Iterable[Row], overrides: Sequence[Override] = ()) -> None:
        self._rows = Rows(rows)
        self._overrides = tuple(overrides)

    def rows(self, provider: str | None = None) -> tuple[Row, ...]:
        """All rows, or those of one provider, by provider and id."""
        if provider is None:
            return self._rows.all
        return tuple(self._rows.by_provider.get(provider_of(provider), ()))

    def lookup(self, model: str, provider: str | None = None, base_url: str | None = None) -> Lookup:
        """What is known of `model`, by whatever name. Never fails: nobody's model is a guess of 128000."""
        name = read_name(model, provider, base_url, self._rows.providers)
        answer = next(found for step in STEPS if (found := step(self._rows, name)) is not None)
        return self._overridden(name, answer)

    def _overridden(self, name: Name, found: Lookup) -> Lookup:
        """`found` with what the user says instead; an exact match before one with `*`."""
        spelled = {name.key, last_part(name.key), key_of(found.model)}
        spelled |= {f"{name.provider or found.provider or ''}/{key}" for key in tuple(spelled)}
        for exact in (True, False):
            for override in self._overrides:
                if override.provider and provider_of(override.provider) != (name.provider or found.provider):
                    continue
                if any(_matches(override.match, key, exact=exact) for key in spelled):
                    return msgspec.structs.replace(
                        found,
                        context_window=override.context or found.context_window,
                        input_limit=override.input
                        if override.input or override.context
                        else found.input_limit,
                        output_limit=override.output or found.output_limit,
                        upper_bound=False if override.context else found.upper_bound,
                        confidence="override" if override.context else found.confidence,
                        source="models.toml",
                        how=f"override {override.match}",
                    )
        return found


# --- the ladder -----------------------------------------------------------------------------------------


def _exact(rows: Rows, name: Name) -> Lookup | None:
    """The provider's own row."""
    if name.provider is None or not name.key:
        return None
    row = rows.served(name.provider, name.key)
    return _answer(name, row, "exact") if row else None


def _variant(rows: Rows, name: Name) -> Lookup | None:
    """The provider's own row under a spelling that means the same, one change after the other."""
    if name.provider is None or not name.key:
        return None
    for key, how in spellings(name.key):
        row = rows.served(name.provider, key) or rows.served_as(name.provider, key)
        if row:
            return _answer(name, row, how, "disputed" if how == _WITHOUT_VARIANT else "fact")
    return None


def _maker(rows: Rows, name: Name) -> Lookup | None:
    """The maker's row, for an id that names no gateway."""
    if name.named or not name.key:
        return None
    for key, how in spellings(name.key):
        for maker in FIRST_PARTIES:
            row = rows.served(maker, last_part(key)) or rows.served_as(maker, last_part(key))
            if row:
                return _answer(name, row, f"first-party, {how}")
    return None


def _consensus(rows: Rows, name: Name) -> Lookup | None:
    """What its providers agree on; the smallest, disputed, where they do not; at a named gateway a guess."""
    if not name.key:
        return None
    for key, how in spellings(name.key):
        found = rows.anywhere(last_part(key))
        if not found:
            continue
        smallest = min(found, key=lambda row: (row.context, row.input or row.context, row.provider))
        largest = max(row.context for row in found)
        confidence: Confidence = "fact" if smallest.context >= largest * (1 - CONSENSUS) else "disputed"
        answer = _answer(name, smallest, f"consensus of {len(found)}, {how}", confidence)
        return msgspec.structs.replace(
            answer,
            model=name.asked if name.named else answer.model,
            provider=name.provider,
            confidence="guess" if name.named else answer.confidence,
            pricing=None,
        )
    return None


def _family(rows: Rows, name: Name) -> Lookup | None:
    """The longest beginning of the name, in whole words, that is a model or a family of models. A guess."""
    words = last_part(name.key).partition(":")[0].split("-")
    for length in range(len(words), 0, -1):
        prefix = "-".join(words[:length])
        found = rows.anywhere(prefix) or (rows.kin(prefix) if length > 1 else ())
        if found:
            smallest = min(found, key=lambda row: (row.context, row.provider, row.id))
            answer = _answer(name, smallest, f"family {prefix}", "guess")
            window = answer.context_window
            return msgspec.structs.replace(
                answer,
                # What a maker's own service holds says little of what fits a machine at home.
                context_window=min(window, FALLBACK_WINDOW) if name.local else window,
                model=name.asked,
                provider=name.provider,
                pricing=None,
                retired=False,
            )
    return None


def _fallback(rows: Rows, name: Name) -> Lookup:
    """Nobody knows it."""
    return Lookup(
        model=name.asked,
        provider=name.provider,
        context_window=name.window or FALLBACK_WINDOW,
        input_limit=None,
        output_limit=None,
        upper_bound=name.local,
        confidence="guess",
        source="default",
        how="unknown model",
        tokenizer=tokenizer_of(name.key),
        pricing=None,
        retired=False,
    )


STEPS: tuple[Callable[[Rows, Name], Lookup | None], ...] = (
    _exact,
    _variant,
    _maker,
    _consensus,
    _family,
    _fallback,
)
"""From the surest to the guess; the last always answers."""

_REGION = r"^(?:us-gov|us|eu|global|jp|au|apac|ca|sa)-(?=[a-z]+-)"
_CLAUDE_ORDER = r"^claude-(\d(?:-\d)?)-(opus|sonnet|haiku)(?=-|$)"


def spellings(key: str) -> list[tuple[str, str]]:
    """(spelling of `key`, what was changed last): itself, then each change on top of those before it."""
    found = [(key, "by its name")]
    for change, how in _CHANGES:
        if (changed := change(key)) != key and changed:
            key = changed
            found.append((key, how))
    return found


_WITHOUT_VARIANT = "without variant"
"""OpenRouter's windows differ between `qwen3-coder:free` and `qwen3-coder` (pi issue 6378): no fact."""

_CHANGES: tuple[tuple[Callable[[str], str], str], ...] = (
    (lambda key: re.sub(r"@default$", "", key), "without @default"),
    (lambda key: re.sub(_REGION, "", key), "without region"),
    (lambda key: re.sub(r"-latest$", "", key), "without -latest"),
    (without_date, "without date"),
    (lambda key: re.sub(_CLAUDE_ORDER, r"claude-\2-\1", key), "words in order"),
    (
        lambda key: re.sub(r":(?:free|nitro|floor|online|thinking|batch|extended|exacto)$", "", key),
        _WITHOUT_VARIANT,
    ),
    (last_part, "by last part"),
)
"""What may be taken off a name, one after the other."""


def _answer(name: Name, row: Row, how: str, confidence: Confidence = "fact") -> Lookup:
    """`row` as an answer; a selector in the name replaces its window."""
    window = name.window or row.context
    limit = row.input if row.input is not None and name.window is None and row.input < window else None
    return Lookup(
        model=row.id,
        provider=row.provider,
        context_window=window,
        input_limit=limit,
        output_limit=row.output,
        upper_bound=name.local,
        confidence="disputed"
        if row.disputed and confidence == "fact" and name.window is None
        else confidence,
        source=" + ".join(row.src) if name.window is None else "selector",
        how=how if name.window is None else f"{how}, window as selected",
        tokenizer=row.tokenizer or tokenizer_of(key_of(row.id)),
        pricing=row.prices,
        retired=row.retired,
    )


def _matches(pattern: str, key: str, *, exact: bool) -> bool:
    """True if `key` is `pattern`, or, with `exact` false, is like it with `*` for any characters."""
    parts = [folded(part) for part in pattern.split("*")]
    if exact or len(parts) == 1:
        return len(parts) == 1 and parts[0] == key
    return re.fullmatch(".*".join(map(re.escape, parts)), key) is not None

"""Find a model's context window in the registry, in steps from the most certain to a guess; the first answer
counts.

Each row of the registry describes one model at one provider (`rows.py`). If sources differ, the smaller
window counts: a window that is too large makes requests fail, but one that is too small only costs a summary.
Steps compare whole words only: no part of a word and no edit distance ever finds a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from msgspec.structs import replace

from compactd.core.models.aliases import ALIASES, newest
from compactd.core.models.lookup import Lookup, Tried, with_hour_writes
from compactd.core.models.names import ModelName, last_part, name_key, tokenizer_of, without_date
from compactd.core.models.open_weights import OPEN_WEIGHTS, weights_of
from compactd.core.models.rows import ModelRow, ModelRows, is_router
from compactd.protocol.messages import Confidence

FALLBACK_WINDOW = 128_000
"""The guessed window of an unknown hosted model, in tokens (protocol.md, "models/lookup"; opal's default)."""

LOCAL_WINDOW = 32_768
"""The guessed window of an unknown model on the user's own machine, in tokens, if its server was not asked.
ollama loads 4,096, 32,768 or 262,144, depending on the graphics memory
(https://github.com/ollama/ollama/issues/14116)."""

CONSENSUS = 0.06
"""Windows of one model at several providers agree if they differ by at most this share."""

MAJORITY = 2 / 3
"""If the windows of this share of a model's hosts agree, the model gets the window of these hosts, whatever
the other hosts offer."""


Keys = list[str]
"""The keys that a step looked up. Each step appends to such a list."""


def _exact(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup | None:
    """Return the answer from the provider's own row with this id; None if there is none."""
    if name.provider is None or not name.key:
        return None
    keys.append(f"{name.provider}/{name.key}")
    # Some providers' own ids begin with their name, which `ModelName` took for a gateway.
    row = rows.row_at(name.provider, name.key) or rows.row_at(name.provider, keys[-1])
    return _answer(name, row, "exact") if row else None


def _variant(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup | None:
    """Return the answer from the provider's own row under an equivalent spelling of the name
    (`name_spellings`); None if there is none."""
    if name.provider is None or not name.key:
        return None
    for key, how in name_spellings(name.key, name.provider):
        keys.append(f"{name.provider}/{key}")
        row = rows.row_at(name.provider, key) or rows.row_named_at(name.provider, key)
        if row:
            return _answer(name, row, how, "disputed" if how == _WITHOUT_VARIANT else "fact")
    return None


def _own_weights(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup | None:
    """Return the native window (the window that a model was made for), for a name on a local server;
    otherwise None."""
    return _weights(rows, name, keys) if name.local else None


def _maker(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup | None:
    """Return the answer from the row of the model's maker, for an id without a provider; otherwise None."""
    if name.provider is not None or not name.key:
        return None
    for key, how in name_spellings(name.key, None):
        part = last_part(key)
        keys.append(f"makers/{part}")
        row = rows.first_party_row(part)
        if row:
            return _answer(name, row, f"first-party, {how}", _trust(rows, name, how))
    return None


def _consensus(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup | None:
    """Return the window on which a model's providers agree. If they do not agree, the result is disputed: the
    model's native window if it is known, otherwise what most providers say, or the smallest window. For a
    name at a gateway, return the smallest window, as a guess."""
    if not name.key:
        return None
    for key, how in name_spellings(name.key, name.provider):
        keys.append(f"*/{last_part(key)}")
        found = rows.rows_named(last_part(key))
        if not found:
            continue
        row, confidence = agreed_row(found)
        if name.is_provider_explicit:
            row, confidence = _smallest(found), "guess"
        answer = _answer(name, row, f"consensus of {len(found)}, {how}", confidence)
        if confidence == "disputed" and (native := _native(rows, name, keys)) is not None:
            window = min(native.context, max(other.context for other in found))
            answer = replace(
                answer, context_window=window, input_limit=None, how=f"{answer.how}, native window"
            )
        trust = _trust(rows, name, how)
        return replace(
            answer,
            model=name.asked if name.is_provider_explicit else answer.model,
            provider=name.provider,
            confidence=answer.confidence if trust == "fact" or name.is_provider_explicit else trust,
            output_limit=_below(answer.output_limit, answer.context_window),
            pricing=None,
        )
    return None


def _weights(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup | None:
    """Return the native window of a model with open weights, found by family and size. It is an upper bound,
    because a server may load less."""
    weights = weights_of(name.text)
    if not name.key or (name.is_provider_explicit and not name.local and not weights.packed):
        return None
    row = _native(rows, name, keys)
    if row is None:
        return None
    how = f"open weights, family {weights.stem}" + (f", size {weights.size}" if weights.size else "")
    is_whole = weights.size is not None or "" in row.sizes
    trusted = weights.packed or (is_whole and _trust(rows, name, "") == "fact")
    answer = _answer(
        name, row, how, "fact" if name.local or (trusted and not name.is_provider_explicit) else "guess"
    )
    return replace(answer, model=name.asked, provider=name.provider, upper_bound=True)


def _alias(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup | None:
    """Return the answer for a short name that an agent accepts, such as `opus`: that of the newest model that
    the name may mean. If it may mean several models, the one with the smallest window counts."""
    maker, families = ALIASES.get(name.key, ("", ()))
    if not families or name.local:
        return None
    known = [name_key(row.id) for row in rows.by_provider(maker) if not row.retired]
    answers: list[Lookup] = []
    for family in families:
        key = newest(known, family)
        if key is None:
            continue
        keys.append(f"{name.provider or maker}/{key}")
        own = replace(name, key=key, text=key, provider=name.provider or maker)
        answer = _exact(rows, own, []) or _variant(rows, own, [])
        if answer is not None:
            answers.append(answer)
    if not answers:
        return None
    found = min(answers, key=lambda one: one.context_window)
    return replace(found, how=f"alias {name.key}, the newest model of that name")


def _family(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup | None:
    """Return a guess: the window of the model or family whose name is the longest beginning of this name, in
    whole words."""
    if name.local:
        weights = weights_of(name.text)
        for prefix in _beginnings(weights.stem.split("-")):
            keys.append(f"open-weights/{prefix}")
            family = rows.weights(prefix)
            # `deepseek-r1:32b` is one of the distilled models, whose names are longer.
            kin = (*family, *rows.rows_with_prefix(prefix, OPEN_WEIGHTS)) if weights.size else ()
            found = next(([row] for row in kin if weights.size in row.sizes), [*family])
            if found:
                return _guess(name, _smallest(found), f"family {prefix}")
    words = last_part(name.key).partition(":")[0].split("-")
    for prefix in _beginnings(words):
        keys.append(f"*/{prefix}-*")
        if name.provider is not None:
            row = rows.row_at(name.provider, prefix)
            kin = (row,) if row else rows.rows_with_prefix(prefix, name.provider) if "-" in prefix else ()
            if kin:
                return _guess(name, _smallest(kin), f"family {prefix}")
        if not name.is_provider_explicit and (row := rows.first_party_row(prefix)) is not None:
            return _guess(name, row, f"family {prefix}")
        known = tuple(rows.rows_named(prefix)) or (rows.rows_with_prefix(prefix) if "-" in prefix else ())
        if known:
            row = _smallest(known) if name.is_provider_explicit else agreed_row(known)[0]
            return _guess(name, row, f"family {prefix}")
    return None


def _fallback(rows: ModelRows, name: ModelName, keys: Keys) -> Lookup:
    """Return a guess for an unknown model."""
    return Lookup(
        model=name.asked,
        provider=name.provider,
        context_window=name.window or (LOCAL_WINDOW if name.local else FALLBACK_WINDOW),
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


STEPS: tuple[tuple[str, Callable[[ModelRows, ModelName, Keys], Lookup | None]], ...] = (
    ("exact", _exact),
    ("provider's variants", _variant),
    ("own machine", _own_weights),
    ("maker", _maker),
    ("consensus", _consensus),
    ("open weights", _weights),
    ("alias", _alias),
    ("family", _family),
    ("fallback", _fallback),
)
"""The steps of a lookup, from the most certain to the guess. The last one always answers."""


def run_steps(rows: ModelRows, name: ModelName) -> Iterator[tuple[Tried, Lookup | None]]:
    """Yield (what a step looked for and found, its answer) for each step of a lookup, up to the first
    answer."""
    for step, attempt in STEPS:
        keys: Keys = []
        answer = attempt(rows, name, keys)
        if answer is not None and (is_router(name.key) or _is_router(rows, answer)):
            answer = _of_router(name, answer)
        if answer is None:
            found = "nothing" if keys else "does not apply"
        else:
            found = f"{answer.context_window} tokens, {answer.confidence} ({answer.source}; {answer.how})"
        yield Tried(step, tuple(keys), found), answer
        if answer is not None:
            return


def _is_router(rows: ModelRows, answer: Lookup) -> bool:
    row = rows.row_at(answer.provider, name_key(answer.model)) if answer.provider else None
    return row is not None and row.is_router


def _of_router(name: ModelName, answer: Lookup) -> Lookup:
    """Return `answer` for a router. A router picks the model, so the window of a request is unknown; the
    registry has the largest window of the router's models, or a default. The window is lowered to
    `FALLBACK_WINDOW`, unless the name selects one."""
    window = answer.context_window if name.window else min(answer.context_window, FALLBACK_WINDOW)
    return replace(
        answer,
        context_window=window,
        input_limit=_below(answer.input_limit, window),
        output_limit=_below(answer.output_limit, window),
        confidence="guess",
        how=f"{answer.how}, a router that picks a model",
        tokenizer=None,
        pricing=None,
    )


# --- spellings ------------------------------------------------------------------------------------------

_WITHOUT_VARIANT = "without variant"
"""The description of the change that removes a variant such as `:free`. OpenRouter's windows differ between
`qwen3-coder:free` and `qwen3-coder` (pi issue 6378), so the changed name is not certain to mean the same
window."""

_VARIANTS = (
    r":(?:free|nitro|floor|online|thinking|batch|extended|exacto|beta|self-moderated)$"
    r"|:(?:cheapest|fastest|preferred)$"
)

_VENDOR = (
    r"^(?:ai21|amazon|anthropic|cohere|deepseek|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|writer"
    r"|zai)-"
)

SpellingChange = tuple[str, str, str]
"""(pattern, replacement, description)."""

_CHANGES: tuple[SpellingChange, ...] = (
    (r"@(?:default|latest)$", "", "without @default"),
    (r"^(?:us-gov|us|eu|global|jp|au|apac|ca|sa)-(?=[a-z0-9]+-)", "", "without region"),
    (r"^(?:us|eu|global|global-standard|data-zone)/", "", "without region"),
    (r"(?<=-v\d):\d+$", "", "without revision"),
    (r"-latest$", "", "without -latest"),
    (r"", "", "without date"),
    (r"(?:^|(?<=/)|(?<=-))claude-(\d+(?:-\d)?)-([a-z]+)(?=[-:@]|$)", r"claude-\2-\1", "words reordered"),
    (_VARIANTS, "", _WITHOUT_VARIANT),
    (r"(?:^|(?<=/))claude-([a-z]+)-(\d+(?:-\d)?)(?=[-:@]|$)", r"claude-\2-\1", "words reordered"),
)
"""Changes to a key after which it still means the same model. They are applied one after another. An empty
pattern means `without_date`."""

_BEFORE_BEDROCK: tuple[SpellingChange, ...] = (
    (r"^(?:converse|converse-like|invoke|mantle)/", "", "without route"),
    (r"^[a-z]{2}(?:-gov)?-[a-z]+-\d/", "", "without region"),
)
"""Changes that remove what LiteLLM writes before Bedrock's ids."""

_AT_HUGGINGFACE: tuple[SpellingChange, ...] = ((r":[a-z0-9-]+$", "", _WITHOUT_VARIANT),)
"""The change that removes the provider that Hugging Face's router is told to use, such as `:together`."""

_OF_BEDROCK: tuple[SpellingChange, ...] = (
    (r"-v\d$", "", "without version"),
    (r"", "", "without date"),
    (_VENDOR, "", "without vendor"),
    (r"^claude-(\d+(?:-\d)?)-([a-z]+)(?=-|$)", r"claude-\2-\1", "words reordered"),
)
"""Further changes for Bedrock's ids, such as `anthropic.claude-sonnet-4-5-20250929-v1:0`."""


@lru_cache(maxsize=64)
def name_spellings(key: str, provider: str | None) -> tuple[tuple[str, str], ...]:
    """Return (spelling, description of the last change) for `key`: the key itself, then the key after each
    change. A change is applied to the result of the changes before it. Cached."""
    found = [(key, "by its name")]
    changes = _CHANGES
    if provider == "amazon-bedrock":
        changes = (*_BEFORE_BEDROCK, *_CHANGES, *_OF_BEDROCK)
    elif provider == "huggingface":
        changes = (*_CHANGES, *_AT_HUGGINGFACE)
    for pattern, instead, how in changes:
        changed = re.sub(pattern, instead, key) if pattern else without_date(key)
        if changed != key and changed:
            key = changed
            found.append((key, how))
    if "/" in key:
        found.append((last_part(key), "by the last part of its name"))
    return tuple(found)


# --- one answer out of rows -----------------------------------------------------------------------------


def agreed_row(rows: tuple[ModelRow, ...]) -> tuple[ModelRow, Confidence]:
    """Return the row to answer from, and how certain it is. If all windows are within `CONSENSUS`, this is
    the row with the smallest window. Otherwise the answer is disputed. It is the smallest row among at least
    three and a `MAJORITY` that agree, because a host that loads less says nothing about the model. Without
    such a majority, it is the smallest of all rows."""
    smallest = _smallest(rows)
    windows = sorted(row.context for row in rows)
    if windows[0] >= windows[-1] * (1 - CONSENSUS):
        return smallest, "fact"
    for lowest in dict.fromkeys(windows):
        near = [row for row in rows if lowest <= row.context <= lowest / (1 - CONSENSUS)]
        if len(near) >= max(3, len(rows) * MAJORITY):
            return _smallest(near), "disputed"
    return smallest, "disputed"


def _native(rows: ModelRows, name: ModelName, keys: Keys) -> ModelRow | None:
    """Return the row of open weights with this family and size; None if there is none. If the releases of a
    family differ, return the row with the smallest window, as disputed."""
    weights = weights_of(name.text)
    if not weights.stem:
        return None
    keys.append(f"open-weights/{weights.stem}" + (f" {weights.size}" if weights.size else ""))
    family = rows.weights(weights.stem)
    found = [row for row in family if (weights.size or "") in row.sizes]
    if not found and weights.size is None:
        found = [*family]
    if not found:
        return None
    smallest = _smallest(found)
    largest = max(row.context for row in found)
    return smallest if smallest.context >= largest * (1 - CONSENSUS) else replace(smallest, disputed=True)


def _smallest(rows: Sequence[ModelRow]) -> ModelRow:
    return min(rows, key=lambda row: (row.context, row.input or row.context, row.provider, row.id))


def _trust(rows: ModelRows, name: ModelName, how: str) -> Confidence:
    """Return how far to trust a row that was found by `name`. A name such as `acme/gpt-5`, whose first part
    occurs in no row's id, gives only a guess."""
    org, separator, _ = name.key.partition("/")
    if separator and name.provider is None and not rows.has_org(org):
        return "guess"
    return "disputed" if how == _WITHOUT_VARIANT else "fact"


def _guess(name: ModelName, row: ModelRow, how: str) -> Lookup:
    answer = _answer(name, row, how, "guess")
    window = answer.context_window
    if name.local and not row.sizes and name.window is None:
        # The window of a maker's own service says little about what fits on a local machine.
        window = min(window, FALLBACK_WINDOW)
    return replace(
        answer,
        context_window=window,
        input_limit=_below(answer.input_limit, window),
        output_limit=_below(answer.output_limit, window),
        model=name.asked,
        provider=name.provider,
        pricing=None,
        retired=False,
    )


def _beginnings(words: list[str]) -> Iterator[str]:
    """Yield the beginnings of a name of these words, the longest first. At most 16 words count, because no
    family's name is longer."""
    for length in range(min(len(words), 16), 0, -1):
        if prefix := "-".join(words[:length]):
            yield prefix


def _below(limit: int | None, window: int) -> int | None:
    """Return `limit` if it is less than the window; otherwise None, because it has no effect."""
    return limit if limit is not None and limit < window else None


def _answer(name: ModelName, row: ModelRow, how: str, confidence: Confidence = "fact") -> Lookup:
    """Return the result of a lookup that found `row`. A selector in the name, such as `[1m]`, replaces the
    row's window."""
    window = name.window or row.context
    return Lookup(
        model=row.id,
        provider=row.provider,
        context_window=window,
        input_limit=_below(row.input, window) if name.window is None else None,
        output_limit=_below(row.output, window),
        upper_bound=name.local,
        confidence="disputed"
        if row.disputed and confidence == "fact" and name.window is None
        else confidence,
        source=" + ".join(row.src) if name.window is None else "selector",
        how=how if name.window is None else f"{how}, window as selected",
        tokenizer=row.tokenizer or tokenizer_of(name_key(row.id)),
        pricing=with_hour_writes(row.prices) if "claude" in row.id.lower() else row.prices,
        retired=row.retired,
        pricing_source="" if row.prices is None else " + ".join(row.src),
    )

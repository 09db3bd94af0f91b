"""Which settings an untrusted source may set (a folder's `.compactd.toml`, an imported session file), and
why.

Untrusted settings may only make the context smaller and compactions earlier, within bounds under which the
session keeps working. Settings that could send the conversation to a model, spend money, weaken the user's
constraints or change the summary are up to the user: they need `compactd trust DIR`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.budget.budget import keep_of
from compactd.core.budget.limits import BudgetLimits, Window, limits_of
from compactd.core.budget.settings import (
    ALIASES,
    KEEP,
    NAMES,
    THRESHOLD,
    Resolved,
    Settings,
    merge,
)
from compactd.protocol.settings import GivenSettings, IgnoredSetting

SHARE = 4
"""A window or threshold from an untrusted source must be at least this fraction (a quarter) of the one that
would be used without that source."""


class UntrustedSettings(GivenSettings, frozen=True, kw_only=True, omit_defaults=True):
    """A layer of settings from an untrusted source. It sets only what `ALLOWED` names, each within its
    bounds."""


class Allowed(Struct, frozen=True, kw_only=True):
    """A setting that an untrusted source may set, between two bounds, both inclusive."""

    least: float = 0
    most: float = float("inf")
    reason: str
    """Why the setting does no harm; a sentence for the documentation."""
    rule: str = ""
    """A further condition, in words for the documentation. It compares the value with the one that would be
    used without the untrusted source."""


_ONLY_LOWER = f"at most the value without the untrusted source, and at least 1/{SHARE} of that value"

ALLOWED: Mapping[str, Allowed] = {
    "context_window": Allowed(
        least=16_000, reason="A smaller window only makes compactions earlier.", rule=_ONLY_LOWER
    ),
    "model_auto_compact_token_limit": Allowed(
        least=8_000,
        reason="An earlier threshold only makes compactions earlier.",
        rule=f"the threshold is {_ONLY_LOWER}",
    ),
    "threshold_ratio": Allowed(
        least=0.1,
        most=1,
        reason="An earlier threshold only makes compactions earlier.",
        rule=f"the threshold is {_ONLY_LOWER}",
    ),
    "reserve_tokens": Allowed(
        reason="A larger reserve only makes compactions earlier.", rule=f"the threshold is {_ONLY_LOWER}"
    ),
    "keep_recent_tokens": Allowed(
        least=2_000,
        reason="The newest messages stay word for word either way.",
        rule="at most half of the threshold",
    ),
    "keep_messages": Allowed(least=4, most=40, reason="The newest messages stay word for word either way."),
    "preserve_count": Allowed(least=4, most=40, reason="Another name of `keep_messages`."),
    "prune": Allowed(
        least=1, most=1, reason="`true` only shortens old tool output; `session/expand` gives it back."
    ),
    "prune_minimum": Allowed(
        least=5_000, most=100_000, reason="It decides only how often old tool output is shortened."
    ),
    "prune_protect": Allowed(
        least=10_000, most=200_000, reason="It decides only how much new tool output stays whole."
    ),
    "tool_output_chars": Allowed(
        least=500,
        reason="A summariser sees less of each tool result.",
        rule="at most the value without the untrusted source",
    ),
}
"""What an untrusted source may set. `true` counts as 1."""

NEEDS_TRUST: Mapping[str, str] = {
    "profile": "it changes the summary prompt, the strategy and the thresholds at once",
    "enabled": "it switches automatic compaction on or off",
    "auto": "it switches automatic compaction on or off",
    "split_min_messages": "it can cause further requests to a model",
    "protected_tools": "it replaces your list of tools whose output is never pruned",
    "strategy": "it decides whether the conversation is sent to a model",
    "model": "it decides which model reads the conversation",
    "compact_prompt": "it replaces the instructions for the model that writes the summaries",
    "estimator": "it changes how tokens are counted",
    "auto_continue": "it makes the agent continue without waiting for you",
    "summary_tokens": "it can leave summaries too little room for your constraints, or make them cost more",
    "summary_deadline_s": "it decides how long turns wait for a model's summary",
    "max_cost": "it decides how much money may be spent",
    "constraint_tokens": "it can drop your constraints from summaries",
    "cache": "it changes what the provider charges for a request",
    "prepare": "it decides whether a model is asked for summaries that may never be needed",
    "when": "it can make compactions much earlier and more frequent, so fewer messages stay word for word",
    "retention_floor": "it decides how poor a summary may be",
    "reduce_level": "it decides how much of a tool's output the model does not see",
    "reduce_min_tokens": "it decides which tool outputs the model does not see whole",
    "reduce_loop": "it decides whether the model sees tool outputs whole",
}
"""What only the user and trusted sources may set, and why; each is the end of a sentence."""


def untrusted_reason(name: str, value: object) -> str | None:
    """Return why an untrusted value of this setting is rejected; None if it is within its bounds."""
    allowed = ALLOWED.get(name)
    if allowed is None:
        return f"{NEEDS_TRUST[name]}; an untrusted source may not set it"
    if isinstance(value, int | float) and allowed.least <= value <= allowed.most:
        return None
    if name == "prune":
        return "an untrusted source may switch pruning on, not off"
    bounds = f"at least {allowed.least:,g}" if allowed.least else ""
    if allowed.most != float("inf"):
        bounds += f"{' and ' if bounds else ''}at most {allowed.most:,g}"
    return f"an untrusted source may set it to {bounds}"


def split_untrusted(
    given: GivenSettings, source: str
) -> tuple[UntrustedSettings, tuple[IgnoredSetting, ...]]:
    """Return (the settings of `given` that an untrusted source may set, the other settings with the reasons).
    O(settings)."""
    kept: dict[str, object] = {}
    ignored: list[IgnoredSetting] = []
    for name in GivenSettings.__struct_fields__:
        value: object = getattr(given, name)
        if value is None:
            continue
        reason = untrusted_reason(name, value)
        if reason is None:
            kept[name] = value
        else:
            ignored.append(IgnoredSetting(name=name, source=source, reason=reason))
    return replace(UntrustedSettings(), **kept), tuple(ignored)


def resolve(
    layers: Sequence[tuple[str, GivenSettings]], window: Window, *, runs_loop: bool = False
) -> tuple[Resolved, tuple[IgnoredSetting, ...]]:
    """Return (the settings to use, the untrusted settings that were ignored because they would raise a limit
    or make it too low).

    `layers` are as for `merge`; at most one of them is an `UntrustedSettings`. `runs_loop` means that the
    session's own model is asked for summaries if no other is named. O(layers).
    """
    place = next((i for i, (_, given) in enumerate(layers) if isinstance(given, UntrustedSettings)), None)
    if place is None:
        return merge(layers), ()
    source, given = layers[place]
    above, below = layers[:place], layers[place + 1 :]
    base = merge((*above, *below))
    ignored: list[IgnoredSetting] = []
    while True:
        found = merge((*above, (source, given), *below))
        wrong = next(_disallowed(found, base, source, window, runs_loop), None)
        if wrong is None:
            return replace(found, without=base), tuple(ignored)
        ignored.append(wrong)
        given = replace(given, **dict.fromkeys((wrong.name, *_other_names(wrong.name))))


def _other_names(name: str) -> Iterator[str]:
    return (alias for alias, meant in ALIASES.items() if meant == name)


def _disallowed(
    found: Resolved, base: Resolved, source: str, window: Window, runs_loop: bool
) -> Iterator[IgnoredSetting]:
    """Yield the settings in `found` that came from the untrusted `source` and that it may not set. `base` has
    the settings without that source, for comparison."""
    chosen = [name for name in NAMES if found.source(name) == source]
    before, after = limits_of(base, window), limits_of(found, window)
    is_paid = _asks_model(base.settings, runs_loop)
    sets_threshold = any(name in THRESHOLD for name in chosen)

    def ignoring(name: str, reason: str) -> IgnoredSetting:
        return IgnoredSetting(name=name, source=source, reason=reason)

    for name in chosen:
        if is_paid and _is_more_often(name, found, base, before):
            yield ignoring(
                name, "it can make compactions more frequent, and each may cost money for a model's summary"
            )
        elif name == "context_window" and (
            reason := _find_raise(found.settings.context_window, before.tokens)
        ):
            yield ignoring(
                name, f"an untrusted source may only lower the context window, at most to a quarter: {reason}"
            )
        elif name == "context_window" and base.settings.context_window == 0 and before.tokens is None:
            yield ignoring(name, "your own settings say that there is no limit")
        elif name == "context_window" and not sets_threshold and (reason := _too_low(after, before)):
            yield ignoring(
                name,
                f"an untrusted source may lower the threshold at most to a quarter: {reason}",
            )
        elif name in THRESHOLD and (
            reason := _find_raise(after.threshold, _threshold(before, after)) or _too_low(after, before)
        ):
            yield ignoring(
                name, f"an untrusted source may only lower the threshold, at most to a quarter: {reason}"
            )
        elif name == "keep_recent_tokens" and _exceeds_half(
            found.settings.keep_recent_tokens, after.threshold
        ):
            yield ignoring(
                name,
                f"an untrusted source may set it to at most half of the threshold of {after.threshold:,}",
            )
        elif (
            name == "tool_output_chars" and found.settings.tool_output_chars > base.settings.tool_output_chars
        ):
            yield ignoring(
                name,
                f"an untrusted source may only lower it; otherwise it is {base.settings.tool_output_chars:,}",
            )


def _asks_model(settings: Settings, runs_loop: bool) -> bool:
    """Return whether an automatic compaction may ask a model."""
    return (
        settings.strategy in ("auto", "summarize", "provider")
        and (settings.model is not None or runs_loop)
        and settings.max_cost != 0
    )


def _is_more_often(name: str, found: Resolved, base: Resolved, before: BudgetLimits) -> bool:
    """Return whether the untrusted setting `name` makes compactions more frequent than they are without
    it."""
    given, without = found.settings, base.settings
    if name in KEEP:
        keep = keep_of(without, "threshold", before.tokens, before.cap, before.threshold)
        most = keep.tokens if name == "keep_recent_tokens" else keep.messages
        value: int | None = getattr(given, name)
        return value is None or most is None or value > most
    if name in ("prune_minimum", "prune_protect"):
        return bool(getattr(given, name) > getattr(without, name))
    return name == "context_window" or name in THRESHOLD


def _too_low(after: BudgetLimits, before: BudgetLimits) -> str | None:
    """Return what is wrong with the untrusted threshold if it is below a quarter of the trusted one;
    otherwise None."""
    if after.threshold is None or before.threshold is None or after.threshold >= before.threshold // SHARE:
        return None
    return f"{after.threshold:,} is below a quarter of {before.threshold:,}"


def _threshold(before: BudgetLimits, after: BudgetLimits) -> int | None:
    """Return the trusted threshold, lowered to the untrusted window if the window is smaller."""
    if before.threshold is None or before.tokens is None or after.tokens is None:
        return before.threshold
    return min(before.threshold, after.tokens)


def _find_raise(value: int | None, without: int | None) -> str | None:
    """Return what is wrong with `value` if it is above `without`, the trusted value, or below a quarter of
    it; otherwise None."""
    if value is None or without is None:
        return None
    if value > without:
        return f"{value:,} is above {without:,}"
    if value < without // SHARE:
        return f"{value:,} is below a quarter of {without:,}"
    return None


def _exceeds_half(keep: int | None, threshold: int | None) -> bool:
    return keep is not None and threshold is not None and keep > threshold // 2

"""The limits of a session's model, and the threshold that a profile or a user sets within them.

The window comes from the first of these that is known: the user's `compaction.context_window`, what
`session/start` gave, the registry, the observed window, the profile's rule for an unknown window. A limit
that a provider named when it rejected a request lowers any larger window. All sizes are tokens; all functions
are O(1). (Rules: docs/dev/behaviour.md, "The budget equation".)
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.budget.rules import (
    KeepMessages,
    KeepRequest,
    KeepRule,
    KeepShare,
    KeepTokens,
    Ratio,
    Reserve,
    Usable,
    share_of,
)
from compactd.core.budget.settings import Resolved, Settings
from compactd.protocol.messages import Confidence, Trigger

KEEP_WITHOUT_WINDOW = 20_000
"""How many tokens a compaction keeps if its keep rule is a share of the window but no window is known
(docs/specs.md, "opal.md", default `keep_recent_tokens`)."""


class BudgetTerm(Struct, frozen=True):
    """One term of the budget equation: a value, and where it comes from."""

    value: int | bool | None
    source: str


class Window(Struct, frozen=True, kw_only=True):
    """What is known of a model's limits, in tokens."""

    window: int | None = None
    """The context window; None if it is unknown. With confidence `override`, the user set it."""
    confidence: Confidence = "guess"
    source: str = "unknown model"
    """Where `window` comes from, in words."""
    input_limit: int | None = None
    output_limit: int | None = None
    observed: int | None = None
    """The window that a provider named when it rejected a request; None if there is none."""
    observed_source: str = "a rejection"
    """Where `observed` comes from, in words."""
    reported: int | None = None
    """The `context_window` that the last usage report with this field named."""
    rejected: bool = False
    """Whether a provider rejected a request as too large without naming a limit."""


class Keep(Struct, frozen=True, kw_only=True):
    """How much of the newest conversation stays word for word after a compaction. At most one of `tokens` and
    `messages` is set; with neither, only the newest request stays."""

    tokens: int | None = None
    messages: int | None = None
    source: str = ""


class BudgetLimits(Struct, frozen=True, kw_only=True):
    """The terms of the budget equation that do not depend on the session's size."""

    window: BudgetTerm
    tokens: int | None
    confidence: Confidence
    input_limit: int | None
    observed: int | None
    cap: int | None
    reserve: BudgetTerm
    threshold: int | None
    threshold_source: str
    warnings: tuple[str, ...]


def limits_of(resolved: Resolved, window: Window) -> BudgetLimits:
    """Return window, cap, reserve and threshold of a session with the settings `resolved`."""
    tokens, confidence, source, input_limit, warnings = _window(resolved, window)
    observed = window.observed
    known = [limit for limit in (tokens, input_limit, observed) if limit is not None]
    cap = min(known) if known else None
    limits = BudgetLimits(
        window=BudgetTerm(tokens, source),
        tokens=tokens,
        confidence=confidence,
        input_limit=input_limit,
        observed=observed,
        cap=cap,
        reserve=BudgetTerm(None, "no window is known"),
        threshold=None,
        threshold_source="no window is known",
        warnings=warnings,
    )
    return _with_threshold(resolved, window, limits)


def keep_of_rule(rule: KeepRule, trigger: Trigger, window: int | None) -> Keep:
    """Return how much `rule` keeps, before `keep_of` applies the bounds."""
    match rule:
        case KeepShare(divisor=divisor, manual_tokens=manual):
            if trigger == "manual" and manual is not None:
                return Keep(tokens=manual, source=f"{manual:,}, for manual compactions")
            if window is None:
                return Keep(tokens=manual or KEEP_WITHOUT_WINDOW, source="no window is known")
            return Keep(tokens=max(1, window // divisor), source=f"window ÷ {divisor}")
        case KeepTokens(tokens=tokens, ratio=ratio):
            if ratio is not None and window is not None:
                tokens = max(1, min(tokens, share_of(window, ratio, up=False)))
            return Keep(tokens=tokens, source="profile")
        case KeepMessages(messages=messages):
            return Keep(messages=messages, source="profile")
        case KeepRequest():
            return Keep(source="only the newest request")
        case _:
            assert_never(rule)


def _window(
    resolved: Resolved, window: Window
) -> tuple[int | None, Confidence, str, int | None, tuple[str, ...]]:
    """Return (window, confidence, source, input limit, warnings). The window is the first of these that is
    known: the one that the user or the client set, the registry's, the observed one, the one that the profile
    assumes. A smaller observed window replaces the first two."""
    settings, observed = resolved.settings, window.observed
    given = settings.context_window
    source = "context_window"
    if given is not None:
        source = f"context_window ({resolved.source('context_window')})"
    elif window.confidence == "override" and window.window is not None:
        given, source = window.window, window.source
    if given is not None:
        if observed is not None and (observed < given or given == 0):
            says = f"{given:,}" if given else "0, which means no limit"
            warning = f"context_window is {says}, but the provider accepts at most {observed:,} tokens"
            return observed, "observed", window.observed_source, None, (warning,)
        if given == 0:
            return _unlimited_window(settings, window, source)
        return given, "override", source, None, ()
    if window.window is not None and window.confidence != "guess":
        if observed is not None and observed < window.window:
            return observed, "observed", window.observed_source, window.input_limit, ()
        return window.window, window.confidence, window.source, window.input_limit, ()
    if observed is not None:
        return observed, "observed", window.observed_source, window.input_limit, ()
    unknown = settings.rules.unknown
    if unknown.from_report and window.reported is not None:
        return window.reported, "observed", "the last usage report", window.input_limit, ()
    if unknown.window is not None:
        value = window.window or unknown.window
        return value, "guess", f"a guess: {window.source}", window.input_limit, ()
    if window.rejected and unknown.after_rejection is not None:
        return (
            unknown.after_rejection,
            "guess",
            "a guess, because the provider rejected a request as too large",
            window.input_limit,
            (),
        )
    return None, "guess", f"none: {window.source}", None, ()


def _unlimited_window(
    settings: Settings, window: Window, source: str
) -> tuple[int | None, Confidence, str, int | None, tuple[str, ...]]:
    """Return the result of `_window` if the user set the window to 0, which means no limit (docs/specs.md,
    "go-agent.md", "Context Window Resolution"; docs/specs-evmts-opencode.md, "opencode.md", `isOverflow`). No
    window is known until a provider rejects a request as too large."""
    after = settings.rules.unknown.after_rejection
    if window.rejected and after is not None:
        return after, "guess", "a guess, because the provider rejected a request as too large", None, ()
    return None, "override", f"{source} is 0, which means no limit", None, ()


def _with_threshold(resolved: Resolved, window: Window, limits: BudgetLimits) -> BudgetLimits:
    settings, rules = resolved.settings, resolved.settings.rules
    rule = rules.trigger
    by_cap = isinstance(rule, Ratio) and rule.of == "cap"
    whole = limits.cap if by_cap else limits.tokens
    explicit = _explicit(resolved, whole, rules.inclusive)
    if explicit is not None:
        return _cap_threshold(limits, explicit, whole)
    if whole is None:
        is_unlimited = limits.confidence == "override"
        unknown = rule.unknown if isinstance(rule, Ratio) and not is_unlimited else None
        if unknown is None:
            return limits
        return replace(
            limits, threshold=unknown, threshold_source="the profile's threshold for an unknown window"
        )
    profile = f"profile {settings.profile}"
    match rule:
        case Ratio(ratio=ratio, of=of, guess_ratio=guess_ratio):
            usual = max(1, share_of(whole, ratio, up=rules.inclusive))
            shown = BudgetTerm(whole - usual, f"{of} − {ratio:.0%}, {profile}")
            if limits.confidence == "guess" and guess_ratio is not None:
                share = max(1, share_of(whole, guess_ratio, up=rules.inclusive))
                source = f"{profile}: {guess_ratio:.0%} of a guessed {of}"
                return replace(limits, reserve=shown, threshold=share, threshold_source=source)
            source = f"{profile}: {ratio:.0%} of the {of}"
            return replace(limits, reserve=shown, threshold=usual, threshold_source=source)
        case Reserve(tokens=tokens, divisor=divisor):
            reserve = tokens if divisor is None else min(tokens, whole // divisor)
        case Usable(output_tokens=output_tokens):
            if limits.input_limit is not None:
                source = f"{profile}: the input limit"
                shown = BudgetTerm(max(0, whole - limits.input_limit), source)
                return replace(limits, reserve=shown, threshold=limits.input_limit, threshold_source=source)
            reserve = min(window.output_limit or output_tokens, output_tokens)
        case _:
            assert_never(rule)
    source = f"{profile}: window − reserve"
    keep = keep_of_rule(rules.keep, "threshold", whole).tokens or 0
    if reserve + keep > whole // 2 and reserve > whole // 4:
        reserve = whole // 4
        profile = "window ÷ 4, on a small window"
    return replace(
        limits, reserve=BudgetTerm(reserve, profile), threshold=whole - reserve, threshold_source=source
    )


def _explicit(resolved: Resolved, whole: int | None, inclusive: bool) -> tuple[int, str, str] | None:
    """Return (threshold, name of the setting, its source) if a setting gives the threshold; otherwise None.
    `whole` is the window or the cap. If it is unknown (None), only `model_auto_compact_token_limit` can give
    the threshold."""
    settings = resolved.settings
    if settings.model_auto_compact_token_limit is not None:
        name, threshold = "model_auto_compact_token_limit", settings.model_auto_compact_token_limit
    elif whole is None:
        return None
    elif settings.threshold_ratio is not None:
        name, threshold = "threshold_ratio", share_of(whole, settings.threshold_ratio, up=inclusive)
    elif settings.reserve_tokens is not None:
        name, threshold = "reserve_tokens", whole - settings.reserve_tokens
    else:
        return None
    return threshold, name, f"{name} ({resolved.source(name)})"


def _cap_threshold(limits: BudgetLimits, explicit: tuple[int, str, str], whole: int | None) -> BudgetLimits:
    """Return `limits` with the user's threshold, which is `explicit`, the result of `_explicit`. A threshold
    above the cap is lowered to the cap. A threshold below 1 token would make a compaction always due; it is
    replaced by three quarters of `whole`, the window or cap."""
    threshold, name, source = explicit
    warnings = limits.warnings
    if limits.cap is not None and threshold > limits.cap:
        warnings = (
            *warnings,
            f"{name} sets the threshold to {threshold:,} tokens, but a request may have at most"
            f" {limits.cap:,}; {limits.cap:,} is used",
        )
        threshold, source = limits.cap, f"{source}, lowered to the cap"
    elif threshold < 1 and whole is not None:
        lowered = whole - whole // 4
        warnings = (
            *warnings,
            f"{name} leaves nothing of a window of {whole:,} tokens; a threshold of {lowered:,} is used",
        )
        threshold, source = lowered, f"{source}, raised to window − window ÷ 4"
    reserve = (
        BudgetTerm(None, source)
        if limits.cap is None
        else BudgetTerm(max(0, (whole or 0) - threshold), source)
    )
    return replace(limits, reserve=reserve, threshold=threshold, threshold_source=source, warnings=warnings)

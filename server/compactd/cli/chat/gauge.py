"""The gauge of the context window as text, and its colour."""

from __future__ import annotations

from compactd.cli.framework.page import Look
from compactd.cli.inspect.markup import short
from compactd.protocol.messages import TokenUsage

STEPS = "○◔◑◕●"


def gauge_text(usage: TokenUsage) -> str:
    """Return a text that says how full the window is, such as `◔ 41 % · 82k/200k`. If the window is a guess,
    the text is like `◔ ~63 % · 81k/128k?`.
    """
    used = short(usage.current_context_tokens or 0)
    if usage.percent is None or not usage.context_window:
        return f"{used} tokens, window unknown"
    is_guess = usage.context_window_confidence == "guess"
    step = STEPS[min(len(STEPS) - 1, int(usage.percent / 100 * (len(STEPS) - 1) + 0.5))]
    percent = f"{'~' if is_guess else ''}{usage.percent:.0f} %"
    return f"{step} {percent} · {used}/{short(usage.context_window)}{'?' if is_guess else ''}"


def gauge_look(usage: TokenUsage) -> Look:
    """Return the colour of the gauge: red if the next request does not fit, yellow if a compaction is due or
    the window is a guess. The daemon decides both (`TokenUsage.decision`).
    """
    if usage.decision == "over":
        return "bad"
    return "due" if usage.decision == "due" or usage.context_window_confidence == "guess" else ""


def window_text(usage: TokenUsage) -> str:
    """Return the size of the context window in words, such as `window 200,000 tokens`. A guess has a
    question mark and says that it is one.
    """
    if not usage.context_window:
        return "window unknown"
    if usage.context_window_confidence == "guess":
        return f"window {usage.context_window:,}? tokens (a guess)"
    return f"window {usage.context_window:,} tokens"

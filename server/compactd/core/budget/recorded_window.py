"""The context window of a recorded session, as its file shows it.

A registry knows what a model can do. A session's file shows what the agent was given: a limit that the agent
wrote down, a provider's refusal that names one, an automatic compaction, a request that was accepted. These
count for this one session. They are never stored for other sessions on the machine, because a file may say
anything.

The first of these that the file contains counts:

1. a limit that a provider's refusal names, or that the agent wrote down;
2. an automatic compaction of Claude Code: the window is estimated from the size at which it happened;
3. the window that Claude Code gives the model unless the user chooses a larger one, if that is smaller than
   the known window and no accepted request is larger;
4. requests that were accepted although they are larger than the known window.

A number is believed only if it fits the requests in the file; see `_doubt_of`. Numbers that are not believed
are reported. All sizes are tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from compactd.core.tokens.usage import context_size, normalise
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Message

EvidenceKind = Literal["compaction", "limit", "refusal", "usual"]

CLAUDE_CODE_BUFFER: Final = 33_000
"""Claude Code compacts about this many tokens below its window: at 167,094 to 167,979 of 200,000 (transcripts
of 2.1, 2026-02), and at 366,432 to 366,989 of a window set to 400,000
(github.com/anthropics/claude-code/issues/54056, 2026-04)."""

CLAUDE_CODE_SPREAD: Final = 45_000
"""A compaction at most this many tokens below a window of Claude is taken as one of this window. The farthest
that was seen is 42,075 below 200,000 (Claude Code 2.1.20, 2026-01)."""

CLAUDE_WINDOWS: Final = (200_000, 1_000_000)
"""The context windows of Claude's models (Anthropic's documentation, "Context windows", 2026-11)."""

COMMON_WINDOWS: Final = (128_000, 200_000, 272_000, 400_000, 1_000_000, 2_000_000)
"""Windows that an unknown model may have, if it accepted a request larger than the guessed window."""

MIN_WINDOW: Final = 4_096
MAX_WINDOW: Final = 10_000_000
"""Bounds of what a file may claim. With less, no agent works; no known model has more (registry, 2026-11)."""

MIN_SHARE: Final = 4
"""If no request has at least half the claimed size, a claim is believed only if it is between a quarter of
the known window and the known window."""


class Evidence(Struct, frozen=True):
    """One number in a session's file that says something about its window."""

    kind: EvidenceKind
    tokens: int
    """For `compaction`, the size of the context when it happened; otherwise the limit. `usual` is the limit
    that the agent gives the model unless the user chooses another."""


class Recorded(Struct, frozen=True, kw_only=True):
    """What a file says about its session's window."""

    window: int | None = None
    """The window; None if the file has no claim that is believed. Then the session uses the window that is
    known of its model."""
    source: str = ""
    """Where `window` comes from, for people."""
    is_estimate: bool = False
    """Whether the window was computed from compactions or accepted requests. False if the file names it."""
    is_guess: bool = False
    """Whether the window is only the smallest of `COMMON_WINDOWS` into which the accepted requests fit."""
    doubts: tuple[str, ...] = ()
    """Claims of the file that are not believed, as sentences."""


NOTHING_RECORDED = Recorded()


def window_by_file(
    evidence: Iterable[Evidence], accepted: Sequence[int], known: int | None, guess: int | None = None
) -> Recorded:
    """Return what a session's file says about the session's window. O(evidence + accepted).

    `accepted` has the sizes of requests that were answered. Both `evidence` and `accepted` must be of the
    model that the session uses now. `known` is the window that a registry or a server names; `guess` is the
    window that is assumed if neither names one.
    """
    most = max((size for size in accepted if size <= MAX_WINDOW), default=0)
    doubts: list[str] = []
    believed: dict[EvidenceKind, tuple[int, int]] = {}
    for one in evidence:
        if one.kind == "usual" and not (known is not None and most <= one.tokens < known):
            continue  # The user chose a larger window, or the model has no larger one.
        window = estimated_window(one.tokens) if one.kind == "compaction" else one.tokens
        if one.kind == "compaction" and "compaction" in believed and window <= believed["compaction"][0]:
            # A refused request leads to a compaction too, at any size. So only the largest compaction counts.
            continue
        doubt = "" if one.kind == "usual" else _doubt_of(window, one, most, known)
        if doubt:
            doubts.append(f"{_CLAIMS[one.kind].format(one.tokens)}, which does not count: {doubt}")
        else:
            believed[one.kind] = (window, one.tokens)
    for kind in ("refusal", "limit", "compaction", "usual"):
        if kind in believed:
            window, tokens = believed[kind]
            return Recorded(
                window=window,
                source=_SOURCES[kind].format(tokens),
                is_estimate=kind in ("compaction", "usual"),
                doubts=tuple(doubts),
            )
    return _window_from_accepted(accepted, most, known, guess, tuple(doubts))


def accepted_sizes(messages: Iterable[Message]) -> list[int]:
    """Return the sizes of the requests that were answered, from the usage reports of `messages`.
    O(messages)."""
    sizes = [reported_size(message) for message in messages]
    return [size for size in sizes if size]


def reported_size(message: Message) -> int:
    """Return the size of the request that a message answered, from its usage report; 0 if it has no readable
    report."""
    if message.role != "assistant" or message.usage is None:
        return 0
    try:
        return context_size(normalise(message.usage)[0])
    except CompactdError:
        return 0


def estimated_window(tokens: int) -> int:
    """Return the window in which Claude Code would compact automatically at this many tokens.

    That is the window of a Claude model, if one is at most `CLAUDE_CODE_SPREAD` above `tokens`. Otherwise it
    is `tokens` plus `CLAUDE_CODE_BUFFER`, rounded to thousands.
    """
    for window in CLAUDE_WINDOWS:
        if tokens <= window <= tokens + CLAUDE_CODE_SPREAD:
            return window
    return round(tokens + CLAUDE_CODE_BUFFER, -3)


def _window_from_accepted(
    accepted: Sequence[int], most: int, known: int | None, guess: int | None, doubts: tuple[str, ...]
) -> Recorded:
    if known is not None and len({size for size in accepted if known < size <= MAX_WINDOW}) > 1:
        source = f"the file's largest accepted request ({most:,}); the window is at least that"
        return Recorded(window=most, source=source, is_estimate=True, doubts=doubts)
    if known is None and guess is not None and most > guess:
        window = next((size for size in COMMON_WINDOWS if size >= most), MAX_WINDOW)
        source = f"the smallest common window that the file's largest accepted request ({most:,}) fits into"
        return Recorded(window=window, source=source, is_guess=True, doubts=doubts)
    return Recorded(doubts=doubts)


def _doubt_of(window: int, one: Evidence, most: int, known: int | None) -> str:
    """Return why `window`, the claim of `one`, is not believed; an empty text if it is. `most` is the size of
    the largest request that was accepted."""
    if not MIN_WINDOW <= window <= MAX_WINDOW:
        return "no model has a window of that size"
    if most > window:
        return f"the same model accepted a request of {most:,} tokens"
    if 2 * most >= min(window, one.tokens):
        return ""
    if one.kind == "compaction":
        return f"the largest request in the file has only {most:,} tokens"
    if known is not None and not known <= window * MIN_SHARE <= known * MIN_SHARE:
        return f"it is far from the known window of {known:,}, and no request in the file is nearly as large"
    return ""


_SOURCES: dict[str, str] = {
    "compaction": "estimated from the file: Claude Code compacted automatically at {:,} tokens",
    "limit": "the context limit that the agent recorded in the file ({:,})",
    "refusal": "a provider's error in the file names a limit of {:,} tokens",
    "usual": "Claude Code gives this model {:,} tokens unless you choose more ([1m])",
}

_CLAIMS: dict[EvidenceKind, str] = {
    "compaction": "the file records an automatic compaction at {:,} tokens",
    "limit": "the file names a window of {:,} tokens",
    "refusal": "a provider's error in the file names a window of {:,} tokens",
}

"""The context window of a recorded session, as its file shows it.

A registry knows what a model can do. A session's file shows what the agent was given: a limit that the agent
wrote down, a provider's refusal that names one, an automatic compaction, a request that was accepted. These
count for this one session. They are never learned for the machine, because a file may say anything.

What counts, the first that there is:

1. a limit that a provider's refusal names, or that the agent wrote down;
2. an automatic compaction of Claude Code: the window is estimated from the size that it happened at;
3. requests that were accepted although they are larger than the window that is known.

A number is believed only if it fits the requests in the file; see `_doubt_of`. What is not believed is still
told. Tokens throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from compactd.core.tokens.usage import context_size, normalise
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Message

Kind = Literal["compaction", "limit", "refusal"]

CLAUDE_CODE_BUFFER: Final = 33_000
"""Claude Code compacts so many tokens below its window: at 167,094 to 167,979 of 200,000 (transcripts of 2.1,
2026-02), at 366,432 to 366,989 of a window set to 400,000 (github.com/anthropics/claude-code/issues/54056,
2026-04)."""

CLAUDE_CODE_SPREAD: Final = 45_000
"""Most that a compaction was seen below the window of 200,000: at 157,925 (2.1.20, 2026-01)."""

CLAUDE_WINDOWS: Final = (200_000, 1_000_000)
"""The windows that Claude's models come in (Anthropic's documentation, "Context windows", 2026-11)."""

COMMON_WINDOWS: Final = (128_000, 200_000, 272_000, 400_000, 1_000_000, 2_000_000)
"""What a model that nobody knows may have, if it took more than the usual guess."""

MIN_WINDOW: Final = 4_096
MAX_WINDOW: Final = 10_000_000
"""Bounds of what a file may claim: below, no agent works; above, no model is known (registry, 2026-11)."""

MIN_SHARE: Final = 4
"""Without a request of at least half its size, a claim is believed from a quarter of the known window on."""


class Evidence(Struct, frozen=True):
    """One number in a session's file that tells its window."""

    kind: Kind
    tokens: int
    """Of `compaction`: the context when it happened. Else the limit."""


class Recorded(Struct, frozen=True, kw_only=True):
    """What a file tells of its session's window."""

    window: int | None = None
    """None if the file tells nothing that is believed: what is known of the model stays."""
    source: str = ""
    """Where `window` comes from, for people."""
    is_estimate: bool = False
    """Worked out from what happened, not named."""
    is_guess: bool = False
    """Only the smallest usual window that the accepted requests fit into."""
    doubts: tuple[str, ...] = ()
    """What the file claims and is not believed, in sentences."""


NOTHING_RECORDED = Recorded()


def window_by_file(
    evidence: Iterable[Evidence], accepted: Sequence[int], known: int | None, guess: int | None = None
) -> Recorded:
    """What the window of a session is by its file. O(evidence + accepted).

    `evidence` and `accepted`, the sizes of requests that were answered, are those of the model in force.
    `known` is the window that a registry or a server names, `guess` the one that is assumed if none does.
    """
    most = max((size for size in accepted if size <= MAX_WINDOW), default=0)
    doubts: list[str] = []
    believed: dict[Kind, tuple[int, int]] = {}
    for one in evidence:
        window = estimated_window(one.tokens) if one.kind == "compaction" else one.tokens
        if one.kind == "compaction" and "compaction" in believed and window <= believed["compaction"][0]:
            # A refused request is compacted too, at whatever size: the largest tells most.
            continue
        doubt = _doubt_of(window, one, most, known)
        if doubt:
            doubts.append(f"{_CLAIMS[one.kind].format(one.tokens)}, which is not believed: {doubt}")
        else:
            believed[one.kind] = (window, one.tokens)
    for kind in ("refusal", "limit", "compaction"):
        if kind in believed:
            window, tokens = believed[kind]
            return Recorded(
                window=window,
                source=_SOURCES[kind].format(tokens),
                is_estimate=kind == "compaction",
                doubts=tuple(doubts),
            )
    return _by_accepted(accepted, most, known, guess, tuple(doubts))


def accepted_sizes(messages: Iterable[Message]) -> list[int]:
    """The sizes of the requests that were answered, by the reports of `messages`. O(messages)."""
    sizes = [reported_size(message) for message in messages]
    return [size for size in sizes if size]


def reported_size(message: Message) -> int:
    """The size of the request that a message answered, by its report; 0 if it has none that can be read."""
    if message.role != "assistant" or message.usage is None:
        return 0
    try:
        return context_size(normalise(message.usage)[0])
    except CompactdError:
        return 0


def estimated_window(tokens: int) -> int:
    """The window in which Claude Code compacts a context of so many tokens by itself.

    A size that Claude's models have, if one is that near above; else the usual distance above, in thousands.
    """
    for window in CLAUDE_WINDOWS:
        if tokens <= window <= tokens + CLAUDE_CODE_SPREAD:
            return window
    return round(tokens + CLAUDE_CODE_BUFFER, -3)


def _by_accepted(
    accepted: Sequence[int], most: int, known: int | None, guess: int | None, doubts: tuple[str, ...]
) -> Recorded:
    if known is not None and len({size for size in accepted if known < size <= MAX_WINDOW}) > 1:
        source = f"the file's largest accepted request ({most:,}); the window is at least that"
        return Recorded(window=most, source=source, is_estimate=True, doubts=doubts)
    if known is None and guess is not None and most > guess:
        window = next((size for size in COMMON_WINDOWS if size >= most), MAX_WINDOW)
        source = f"the smallest usual window for the file's largest accepted request ({most:,})"
        return Recorded(window=window, source=source, is_guess=True, doubts=doubts)
    return Recorded(doubts=doubts)


def _doubt_of(window: int, one: Evidence, most: int, known: int | None) -> str:
    """Why `window` is not believed; empty if it is. `most`: the largest request that was accepted."""
    if not MIN_WINDOW <= window <= MAX_WINDOW:
        return "no model has such a window"
    if most > window:
        return f"the same model accepted a request of {most:,} tokens"
    if 2 * most >= min(window, one.tokens):
        return ""
    if one.kind == "compaction":
        return f"the largest request in the file has {most:,} tokens"
    if known is not None and not known <= window * MIN_SHARE <= known * MIN_SHARE:
        return f"it is far from the known window of {known:,}, and no request in the file is nearly as large"
    return ""


_SOURCES: dict[str, str] = {
    "compaction": "estimated from the file: Claude Code compacted by itself at {:,} tokens",
    "limit": "the agent's own limit in the file ({:,})",
    "refusal": "the provider's refusal in the file names {:,} tokens",
}

_CLAIMS: dict[Kind, str] = {
    "compaction": "the file tells of an automatic compaction at {:,} tokens",
    "limit": "the file names a window of {:,} tokens",
    "refusal": "a refusal in the file names a window of {:,} tokens",
}

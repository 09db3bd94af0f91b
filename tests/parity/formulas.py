"""The sizes that the five specs demand, computed from their text and the bounds in docs/dev/behaviour.md,
without compactd's code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

WINDOWS = (
    4_096,
    8_192,
    16_000,
    32_768,
    53_332,
    63_999,
    64_000,
    65_532,
    65_536,
    72_768,
    128_000,
    200_000,
    400_000,
    1_000_000,
    2_000_000,
)
"""Windows, including those at which a bound begins to apply: 64,000 (opencode), 65,536 (klaude, go-agent),
53,332 (keep)."""


def reserved(window: int, reserve: int, keep: int) -> int:
    """docs/dev/behaviour.md, "Bounds": exact while keep + reserve ≤ window ÷ 2, else at most window ÷ 4."""
    return reserve if 2 * (keep + reserve) <= window else min(reserve, window // 4)


def kept(threshold: int, keep: int) -> int:
    """docs/dev/behaviour.md, "Bounds": at most threshold ÷ 2."""
    return min(keep, threshold // 2)


class Spec(NamedTuple):
    """A profile's numbers, from its spec."""

    first_due: Callable[[int], int]
    """The smallest size that is due, of a window."""
    keep: Callable[[int], int]
    """Tokens of the verbatim tail after a threshold compaction."""
    manual: Callable[[int], int]
    overflow: Callable[[int], int]
    at_or_above: bool
    """The walk back stops where the total reaches keep; else where it exceeds it."""
    lands: dict[str, int]
    """Messages that stay of `tail`, by the kind of message that the walk stops at."""
    inclusive: bool = False
    """Due at the threshold; else above it."""


FORWARD = {"user": 4, "assistant": 2}
BACK_TO_USER = {"user": 4, "assistant": 4}
ANYWHERE = {"user": 4, "assistant": 3}

SPECS = {
    # docs/specs.md, "opal.md": "estimated context ≥ 80% of context window", "contextWindow / 4", "/ 5",
    # "Default 20,000".
    "default": Spec(
        first_due=lambda w: -(-4 * w // 5),
        keep=lambda w: w // 4,
        manual=lambda w: kept(-(-4 * w // 5), 20_000),
        overflow=lambda w: w // 5,
        at_or_above=False,
        lands=FORWARD,
        inclusive=True,
    ),
    # docs/specs.md, "go-agent.md": "context_tokens > context_window - reserve_tokens", 16384, 20000.
    "go-agent": Spec(
        first_due=lambda w: w - reserved(w, 16_384, 20_000) + 1,
        keep=lambda w: kept(w - reserved(w, 16_384, 20_000), 20_000),
        manual=lambda w: kept(w - reserved(w, 16_384, 20_000), 20_000),
        overflow=lambda w: w // 5,
        at_or_above=True,
        lands=BACK_TO_USER,
    ),
    # docs/specs.md, "klaude-code.md": "current_tokens > context_limit - reserve_tokens", 16384 or 25 %, 20000
    # or 35 %.
    "klaude": Spec(
        first_due=lambda w: w - min(16_384, w // 4) + 1,
        keep=lambda w: min(20_000, 35 * w // 100),
        manual=lambda w: min(20_000, 35 * w // 100),
        overflow=lambda w: min(20_000, 35 * w // 100),
        at_or_above=True,
        lands=ANYWHERE,
    ),
    # docs/specs-evmts-opencode.md, "evmts-32.md": above `model_auto_compact_token_limit`;
    # docs/dev/behaviour.md: by default 80 % of the window.
    "evmts": Spec(
        first_due=lambda w: 4 * w // 5 + 1,
        keep=lambda w: 0,
        manual=lambda w: 0,
        overflow=lambda w: w // 5,
        at_or_above=False,
        lands=ANYWHERE,
    ),
    # docs/specs-evmts-opencode.md, "opencode.md": "count > usable", usable = context − 32000.
    "opencode": Spec(
        first_due=lambda w: w - reserved(w, 32_000, 0) + 1,
        keep=lambda w: 0,
        manual=lambda w: 0,
        overflow=lambda w: w // 5,
        at_or_above=False,
        lands=ANYWHERE,
    ),
}
SPECS["opal"] = SPECS["default"]


def first_over(window: int) -> int:
    """docs/dev/behaviour.md: used + min(1024, window ÷ 16) > window."""
    return window - min(1024, window // 16) + 1


class Step(NamedTuple):
    """A message as a cut sees it."""

    kind: str
    """`user`, `bash`, `assistant`, `result`."""
    tokens: int
    call: int | None = None
    """For a result, the index of the message with its call."""


def spec_cut(profile: str, steps: Sequence[Step], keep: int) -> int | None:
    """Return where a spec cuts these messages, computed from its text and docs/dev/behaviour.md's profile
    table; None if it cuts nothing. The message at the cut is the first that stays."""
    total, stop = 0, None
    for index in range(len(steps) - 1, -1, -1):
        total += steps[index].tokens
        if total > keep or (total == keep and SPECS[profile].at_or_above):
            stop = index
            break
    if stop is None:
        return None

    def parts_a_pair(cut: int) -> bool:
        return any(step.call is not None and step.call < cut for step in steps[cut:])

    def nearest(places: Iterable[int], *kinds: str) -> int | None:
        fits = (cut for cut in places if cut > 0 and steps[cut].kind in kinds and not parts_a_pair(cut))
        return next(fits, None)

    behind, before = range(stop, len(steps)), range(stop, -1, -1)
    if profile == "default":
        # docs/dev/behaviour.md: forward if half of what may stay remains; back if at most twice as much does.
        walked = sum(step.tokens for step in steps[stop:])
        stays = [sum(step.tokens for step in steps[cut:]) for cut in range(len(steps))]
        forward = nearest(behind, "user", "bash")
        if forward is not None and 2 * stays[forward] >= walked:
            return forward
        back = nearest(before, "user", "bash", "assistant")
        if back is not None and stays[back] <= 2 * walked:
            return back
        return forward or back
    if profile == "opal":
        return nearest(behind, "user", "bash") or nearest(before, "user", "bash", "assistant")
    if profile == "klaude":
        return nearest(before, "user", "bash", "assistant")
    newest = max(index for index, step in enumerate(steps) if step.kind == "user")
    inside = nearest(before, "user", "bash", "assistant") if stop > newest else None
    return inside or nearest(before, "user") or nearest(before, "bash", "assistant")


def spec_prune(steps: Sequence[Step], protect: int, minimum: int, pruned: Collection[int] = ()) -> list[int]:
    """The tool results that opencode's spec prunes of these messages, oldest first."""
    turns = total = 0
    chosen: list[int] = []
    for index in range(len(steps) - 1, -1, -1):
        if steps[index].kind in ("user", "bash"):
            turns += 1
        elif steps[index].kind == "result" and turns >= 2:
            if index in pruned:
                break
            total += steps[index].tokens
            if total > protect:
                chosen.append(index)
    return chosen[::-1] if sum(steps[index].tokens for index in chosen) > minimum else []

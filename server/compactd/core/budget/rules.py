"""The settings as a value, and the rules of a profile as data: trigger, keep budget, moves of the cut, texts.

A profile is a value in `core/budget/profiles.py`, and no code compares a profile's name. To add a behaviour,
add a field or a type in this module, and read it in one place. (Rules: docs/dev/behaviour.md, "One engine,
six profiles".)
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compactd.core.history.message_kinds import MessageKind
from compactd.protocol.messages import Strategy
from compactd.protocol.settings import (
    CacheChoice,
    Estimator,
    PrepareChoice,
    ReduceLevel,
    StrategyChoice,
    WhenChoice,
)

MILLION = 1_000_000


class Ratio(Struct, frozen=True, kw_only=True, tag="ratio"):
    """A trigger: a compaction is due at a share of the cap or of the window."""

    ratio: float
    of: Literal["cap", "window"] = "window"
    guess_ratio: float | None = None
    """The share to use if the window is only a guess; None means `ratio`."""
    unknown: int | None = None
    """The threshold in tokens if no window is known; None means that nothing is due."""


class Reserve(Struct, frozen=True, kw_only=True, tag="reserve"):
    """A trigger: a compaction is due if less than a reserve is left of the window."""

    tokens: int
    """The reserve in tokens."""
    divisor: int | None = None
    """The reserve is at most window ÷ this."""


class Usable(Struct, frozen=True, kw_only=True, tag="usable"):
    """A trigger: a compaction is due above the input limit, or above window − output limit if there is no
    input limit."""

    output_tokens: int
    """The most tokens that are reserved for the output; also the reserve if the output limit is 0 or
    unknown."""


TriggerRule = Ratio | Reserve | Usable

SizeRule = Literal["prompt", "total", "context_size", "finished", "estimate"]
"""What a profile compares with its threshold. `prompt`: input and cache of the last usage report, plus what
came after it. `total`: input, cache and output of that report, plus what came after it. `context_size`:
input, cache and output of that report. `finished`: its input, cache read and output. `estimate`: the estimate
of the whole request."""


class KeepShare(Struct, frozen=True, kw_only=True, tag="share"):
    """A keep-recent budget that is a share of the window, in tokens."""

    divisor: int
    """The share is window ÷ this."""
    manual_tokens: int | None = None
    """The number of tokens that a manual compaction keeps instead, whatever the window is."""


class KeepTokens(Struct, frozen=True, kw_only=True, tag="tokens"):
    """A keep-recent budget that is a number of tokens."""

    tokens: int
    ratio: float | None = None
    """The budget is at most this share of the window."""


class KeepMessages(Struct, frozen=True, kw_only=True, tag="messages"):
    """A keep-recent budget that is a number of messages."""

    messages: int


class KeepRequest(Struct, frozen=True, kw_only=True, tag="request"):
    """A keep-recent budget that keeps only the newest request word for word."""


KeepRule = KeepShare | KeepTokens | KeepMessages | KeepRequest


class Move(Struct, frozen=True, kw_only=True):
    """How a cut point becomes valid. A walk back from the newest message stops where the keep-recent budget
    is used up. The cut then moves from there to the nearest message of these kinds, which may be the same
    message."""

    direction: Literal["forward", "back"]
    kinds: tuple[MessageKind, ...]
    only_in_newest_turn: bool = False
    """Whether this move applies only if the walk back stopped after the newest user message."""
    min_share: float = 0.0
    """The share of the tokens that were walked back which must stay after this move. Otherwise it does not
    apply."""
    max_share: float | None = None
    """The most that may stay after this move, as a share of the tokens that were walked back. None: any."""


ANY_KIND: tuple[MessageKind, ...] = ("user", "bash", "assistant", "system")
"""All kinds of messages at which a cut can be."""
BACK_TO_ANY = (Move(direction="back", kinds=ANY_KIND),)
"""The rule that moves a cut back to the nearest safe one, whatever message it keeps first."""


class UnknownWindow(Struct, frozen=True, kw_only=True):
    """Which window to assume if none is known, in tokens."""

    window: int | None = None
    """The window to assume; None means no window, so nothing is due."""
    after_rejection: int | None = None
    """The window to assume after an overflow that named no limit."""
    from_report: bool = False
    """Whether the `context_window` of the last usage report that has one takes precedence over `window`."""


class Rules(Struct, frozen=True, kw_only=True):
    """The behaviours of a profile that no single setting changes."""

    trigger: TriggerRule
    inclusive: bool
    """Whether a compaction is due at size ≥ threshold instead of size > threshold."""
    size: SizeRule
    keep: KeepRule
    overflow_keep: KeepRule
    stop_inclusive: bool
    """Whether the walk back for the cut point stops when the tokens walked reach the keep-recent budget,
    instead of when they exceed it."""
    moves: tuple[Move, ...]
    """The moves of the cut point. They are tried in this order until one finds a cut that leaves something to
    summarise."""
    splits: bool
    """Whether the beginning of a turn gets a summary of its own if the cut is inside the turn. The beginning
    must have at least `split_min_messages` messages."""
    too_short: bool
    """Whether a conversation of at most `keep_messages` + 1 messages is refused with "Not enough messages to
    compact"."""
    unknown: UnknownWindow
    without_model: Strategy
    """The strategy if no model may be asked or if the model's summary failed."""
    prompt: str
    """The name of the summary prompt in `PROMPTS` of `core/summary/prompts.py`."""
    lead: str
    """The first line of the summary message."""
    end: str = ""
    """The last line of the summary message; `{n}` stands for the number of summarised messages."""
    chars4: str = "chars4"
    """The name of the counter that `estimator: chars4` means."""
    auto_off: tuple[str, ...] = ("COMPACTD_DISABLE_AUTOCOMPACT",)
    """Environment variables that turn automatic compaction off. They take precedence over all settings."""
    prune_off: tuple[str, ...] = ()
    """Environment variables that turn pruning off."""
    bodiless_is_overflow: bool = False
    """Whether an HTTP status 400 or 413 without a body counts as an overflow, whatever the size of the
    request."""
    sub_agents_compact: bool = True
    """Whether sessions with a parent (those of sub-agents) are compacted at the threshold."""


class Settings(Struct, frozen=True, kw_only=True):
    """Every setting of the protocol's `CompactionSettings`. `None` means that the profile's rule decides."""

    profile: str
    rules: Rules
    enabled: bool = True
    context_window: int | None = None
    """The context window in tokens. It replaces the registry's window and input limit."""
    model_auto_compact_token_limit: int | None = None
    """The threshold in tokens."""
    threshold_ratio: float | None = None
    """The threshold as a share of the cap or the window, in (0, 1]."""
    reserve_tokens: int | None = None
    """The threshold as the number of tokens that must stay free."""
    keep_recent_tokens: int | None = None
    keep_messages: int | None = None
    split_min_messages: int = 5
    """How many messages a cut must take from a turn before they get a summary of their own."""
    prune: bool = False
    prune_minimum: int = 20_000
    """In tokens. A prune that saves no more than this is not done."""
    prune_protect: int = 40_000
    """In tokens. The newest tool output of this size is never pruned."""
    protected_tools: tuple[str, ...] = ("skill",)
    strategy: StrategyChoice = "auto"
    model: str | None = None
    """The model that summarises."""
    compact_prompt: str | None = None
    """A prompt that replaces the profile's summary prompt. `{messages}` in it is replaced by the
    transcript."""
    estimator: Estimator = "auto"
    auto_continue: bool = False
    tool_output_chars: int = 2000
    """How many code points of one tool result the summariser sees."""
    summary_tokens: int | None = None
    """The most tokens that a summary may take."""
    summary_deadline_s: float = 300.0
    """The most seconds that a summariser may take."""
    max_cost: float | None = None
    """The most that a session may spend on summaries, in US dollars."""
    constraint_tokens: int | None = None
    """The most tokens of a summary for the user's constraints, word for word. None means the default of
    `core/constraints/constraints.py`."""
    cache: CacheChoice = "auto"
    """Whether requests are marked for the provider's prompt cache, and for how long."""
    prepare: PrepareChoice = "auto"
    """Whether compactions are prepared before they are due."""
    when: WhenChoice = "window"
    """Whether the window alone decides when to compact, or the cost too."""
    retention_floor: float = 0.5
    """The share of the facts that a model's summary must keep. A summary that keeps less is repaired or
    discarded."""
    reduce_level: ReduceLevel = "default"
    """How much of a tool's output is left out when it is reduced."""
    reduce_min_tokens: int = 200
    """Outputs with fewer tokens are not reduced."""
    reduce_loop: bool = False
    """Whether the daemon's own loop reduces tool results."""


def parts_per_million(ratio: float) -> int:
    """Return `ratio` in millionths, as an integer, so that 0.55 of 100 is exactly 55 and not
    55.000000000000007."""
    return round(ratio * MILLION)


def share_of(tokens: int, ratio: float, *, up: bool) -> int:
    """Return `ratio` of `tokens`, rounded up or down. With `up`, `used >= share` is true exactly if used ≥
    the exact share; without it, `used > share` is true exactly if used > the exact share."""
    exact = tokens * parts_per_million(ratio)
    return -(-exact // MILLION) if up else exact // MILLION

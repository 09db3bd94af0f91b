"""Settings as a value, and what a profile does as data: its trigger, its keep budget, its walk, its words.

A profile is a row of `core/budget/profiles.py`; nothing asks for a profile's name. A new behaviour is a new
value here, and one place that reads it. (Rules: docs/dev/behaviour.md, "One engine, six profiles".)
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compactd.core.history.message_kinds import Kind
from compactd.protocol.messages import Strategy
from compactd.protocol.settings import Estimator, StrategyChoice

MILLION = 1_000_000


class Ratio(Struct, frozen=True, kw_only=True, tag="ratio"):
    """Due from a share of the cap or the window on."""

    ratio: float
    of: Literal["cap", "window"] = "window"
    guess_ratio: float | None = None
    """Where the window is only a guess; none: as `ratio`."""
    unknown: int | None = None
    """Threshold in tokens where no window is known; none: never due."""


class Reserve(Struct, frozen=True, kw_only=True, tag="reserve"):
    """Due where less than a reserve is left of the window."""

    tokens: int
    divisor: int | None = None
    """Never more than window ÷ this."""


class Usable(Struct, frozen=True, kw_only=True, tag="usable"):
    """Due above the input limit, or above window − output limit where there is no input limit."""

    output_tokens: int
    """Most that is kept for the output, and what is kept where its limit is 0 or unknown."""


TriggerRule = Ratio | Reserve | Usable

SizeRule = Literal["prompt", "total", "context_size", "finished", "estimate"]
"""What a profile compares with its threshold. `prompt`: input and cache of the last report, and what came
after it. `total`: the report's input, cache and output, and what came after it. `context_size`: those without
what came after. `finished`: input, cache read and output. `estimate`: our estimate of everything."""


class KeepShare(Struct, frozen=True, kw_only=True, tag="share"):
    """A share of the window, in tokens."""

    divisor: int
    manual_tokens: int | None = None
    """Of a manual compaction, whatever the window."""


class KeepTokens(Struct, frozen=True, kw_only=True, tag="tokens"):
    """A number of tokens."""

    tokens: int
    ratio: float | None = None
    """Never more than this share of the window."""


class KeepMessages(Struct, frozen=True, kw_only=True, tag="messages"):
    """A number of messages."""

    messages: int


class KeepRequest(Struct, frozen=True, kw_only=True, tag="request"):
    """Nothing word for word but the newest request."""


KeepRule = KeepShare | KeepTokens | KeepMessages | KeepRequest


class Move(Struct, frozen=True, kw_only=True):
    """Where a stop that is no valid cut moves, itself included: to the nearest message of these kinds."""

    direction: Literal["forward", "back"]
    kinds: tuple[Kind, ...]
    only_in_newest_turn: bool = False
    """Tried only where the stop lies after the newest user message."""


class UnknownWindow(Struct, frozen=True, kw_only=True):
    """What the window is where nobody knows it. Tokens."""

    window: int | None = None
    """None: no window, so nothing is due."""
    after_rejection: int | None = None
    """After an overflow that named no limit."""
    from_report: bool = False
    """The `context_window` of the last usage report that has one comes first."""


class Rules(Struct, frozen=True, kw_only=True):
    """The behaviours of a profile that no single setting changes."""

    trigger: TriggerRule
    inclusive: bool
    """Due ⇔ size ≥ threshold; else size > threshold."""
    size: SizeRule
    keep: KeepRule
    overflow_keep: KeepRule
    stop_inclusive: bool
    """The walk stops where the total is ≥ keep; else where it is > keep."""
    moves: tuple[Move, ...]
    """Tried in this order until one finds a cut that leaves something to summarise."""
    splits: bool
    """A turn that is cut gets a summary of its own for what was cut off (`split_min_messages`)."""
    too_short: bool
    """A conversation of at most `keep_messages` + 1 messages is "Not enough messages to compact"."""
    unknown: UnknownWindow
    without_model: Strategy
    """The strategy where no model may be asked, or after its summary failed."""
    prompt: str
    """Name of the row in `core/summary/prompts.py`."""
    lead: str
    """First line of the summary message."""
    end: str = ""
    """Last line of it; `{n}` is the number of messages it stands for."""
    chars4: str = "chars4"
    """Name of the counter that `estimator: chars4` means."""
    auto_off: tuple[str, ...] = ("COMPACTD_DISABLE_AUTOCOMPACT",)
    """Switches in the environment that turn automatic compaction off, above every layer."""
    prune_off: tuple[str, ...] = ()
    """The same for pruning."""
    bodiless_is_overflow: bool = False
    """A 400 or 413 without a body is an overflow whatever the size of the request."""
    sub_agents_compact: bool = True
    """False: a session with a parent skips the threshold check."""


class Settings(Struct, frozen=True, kw_only=True):
    """Every setting of the contract's `CompactionSettings`. `None`: the profile's rule decides."""

    profile: str
    rules: Rules
    enabled: bool = True
    context_window: int | None = None
    """Tokens; replaces the registry's window and input limit."""
    model_auto_compact_token_limit: int | None = None
    """Threshold in tokens."""
    threshold_ratio: float | None = None
    """Threshold as a share of the cap or window, in (0, 1]."""
    reserve_tokens: int | None = None
    """Threshold as what must stay free."""
    keep_recent_tokens: int | None = None
    keep_messages: int | None = None
    split_min_messages: int = 5
    """Messages that a cut must take from the turn it lands in, before they get a summary of their own."""
    prune: bool = False
    prune_minimum: int = 20_000
    """A prune that saves no more than this is not done. Tokens."""
    prune_protect: int = 40_000
    """Newest tool output that is never pruned. Tokens."""
    protected_tools: tuple[str, ...] = ("skill",)
    strategy: StrategyChoice = "auto"
    model: str | None = None
    """The summariser."""
    compact_prompt: str | None = None
    """Replaces the summary prompt; `{messages}` in it is the transcript."""
    estimator: Estimator = "auto"
    auto_continue: bool = False
    tool_output_chars: int = 2000
    """Of one tool result in the summariser's transcript. Code points."""
    summary_tokens: int | None = None
    """Most that a summary may take."""
    summary_deadline_s: float = 300.0
    """Most that a summariser may take."""
    max_cost: float | None = None
    """Most that a session may spend on summaries, in US dollars."""
    constraint_tokens: int | None = None
    """The most tokens of a summary for the user's constraints, word for word. If None,
    `core/constraints/constraints.py` decides."""
    retention_floor: float = 0.5
    """A model's summary that keeps a smaller share of the facts is repaired, or given up."""


def parts_per_million(ratio: float) -> int:
    """`ratio` as a whole number, so that 0.55 of 100 is 55 and not 55.000000000000007."""
    return round(ratio * MILLION)


def share_of(tokens: int, ratio: float, *, up: bool) -> int:
    """`ratio` of `tokens`, rounded up or down. With `up`, `used >= share` says used ≥ the exact share;
    without, `used > share` says used > it."""
    exact = tokens * parts_per_million(ratio)
    return -(-exact // MILLION) if up else exact // MILLION

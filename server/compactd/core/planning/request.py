"""Define the inputs of a compaction plan: the caller's wishes (`CompactRequest`), and everything that a plan
is computed from (`Inputs`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd.core.budget.budget import BudgetStatus
from compactd.core.budget.rules import Settings
from compactd.core.history.entries import EntryId, Item, View
from compactd.core.tokens.counting import Counter
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Trigger
from compactd.protocol.settings import StrategyChoice

if TYPE_CHECKING:
    from compactd.core.constraints.constraints import LimitIndex
    from compactd.core.history.view_cache import CachedView


class CompactRequest(Struct, frozen=True, kw_only=True):
    """The caller's wishes for a compaction. At most one of the three budgets (`keep_recent`, `keep_messages`,
    `target_tokens`) may be set."""

    trigger: Trigger = "manual"
    keep_recent: int | None = None
    """The newest messages, up to this many tokens, stay word for word."""
    keep_messages: int | None = None
    """The newest messages, this many, stay word for word."""
    target_tokens: int | None = None
    """The most tokens that the next model request may have after the compaction, system prompt and tools
    included."""
    instructions: str | None = None
    """What the summary should pay special attention to, in the user's words; None for nothing."""
    strategy: StrategyChoice | None = None
    """How the summary is made; None means the strategy of the settings."""
    force: bool = False
    """Whether to compact even if no valid cut exists: then all but the last two messages are summarised."""
    below: int | None = None
    """The next model request must have fewer tokens than this; None means fewer than now."""
    is_repeated: bool = False
    """Whether the last compaction still applies, had the same budget, and nothing was appended since. Then
    there is nothing to compact (law 2)."""
    model: str | None = None
    """The model that writes the summary. None means the model of the settings or, if the daemon runs the
    session's agent loop, the session's own model."""
    may_ask_model: bool = False
    """Whether a model may be asked: one was named for summaries, or the daemon runs the session's agent loop.
    If so, the strategy `auto` means `summarize`."""
    unasked: str = ""
    """A note to add to the result's `reason` if the strategy is `auto` and no model may be asked; empty if
    there is no note."""
    by_cost: str = ""
    """A note to add to the result's `reason` if the cost decided, although the window has room; empty if it
    did not."""
    context: tuple[str, ...] = ()
    """Texts from the client's hook that the summariser reads too."""
    prompt: str | None = None
    """A prompt from the client's hook for the summariser. It is used instead of the setting
    `compact_prompt`."""

    @property
    def chosen_target(self) -> int | None:
        """`target_tokens` if a client chose it; None if there is none, or if compactd computed it to recover
        from an overflow or to fit another model."""
        return self.target_tokens if self.trigger == "manual" else None


class Fixed(Struct, frozen=True):
    """The tokens of the parts of a model request that a compaction never changes: system prompt and tools."""

    system: int = 0
    tools: int = 0


class Inputs(Struct, frozen=True, kw_only=True):
    """Everything that a plan is computed from."""

    view: View
    originals: tuple[Item, ...]
    """Every message of the session's current branch as it was appended, oldest first, compacted or not. The
    user's constraints are searched in these. Summaries are made from these, so that repeated compactions lose
    nothing."""
    earlier: tuple[Item, ...] = ()
    """Summaries by another program of messages that the session does not contain."""
    fixed: Fixed
    settings: Settings
    standing: BudgetStatus
    """The sizes of the session, its window and its cap, from the budget equation."""
    request: CompactRequest
    counter: Counter
    pinned: Collection[EntryId] = ()
    """Ids of messages that `session/pin` pinned. Messages that are pinned by their own `meta` need not be
    listed."""
    limits: LimitIndex | None = None
    """The session's cache of the limits that were found in the user's messages."""
    known: CachedView | None = None
    """A cache of what earlier plans computed of the view and its branch."""


def check_budgets(request: CompactRequest) -> None:
    """Raise `InvalidParams` if more than one budget is given, or if a budget is below 1."""
    budgets = {
        name: value
        for name, value in (
            ("keep_recent", request.keep_recent),
            ("keep_messages", request.keep_messages),
            ("target_tokens", request.target_tokens),
        )
        if value is not None
    }
    if len(budgets) > 1:
        raise InvalidParams(f"give only one of {' and '.join(budgets)}", f"$.{list(budgets)[1]}")
    for name, value in budgets.items():
        if value < 1:
            raise InvalidParams(f"{name} is {value}; it must be above 0", f"$.{name}")

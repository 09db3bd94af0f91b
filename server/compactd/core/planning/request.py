"""What is asked of a compaction, and what it is worked out from."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd.core.budget.budget import Standing
from compactd.core.budget.rules import Settings
from compactd.core.history.entries import EntryId, Item, View
from compactd.core.tokens.counting import Counter
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Trigger
from compactd.protocol.settings import StrategyChoice

if TYPE_CHECKING:
    from compactd.core.constraints.constraints import Found
    from compactd.core.history.view_cache import Known


class CompactRequest(Struct, frozen=True, kw_only=True):
    """What was asked for. At most one of the three budgets is set."""

    trigger: Trigger = "manual"
    keep_recent: int | None = None
    """Budget of the verbatim tail in tokens."""
    keep_messages: int | None = None
    """Size of the verbatim tail in messages."""
    target_tokens: int | None = None
    """Budget of the whole new request, system prompt and tools included."""
    instructions: str | None = None
    """What the summary should pay attention to."""
    strategy: StrategyChoice | None = None
    """None: the settings'."""
    force: bool = False
    """Where no valid cut exists, all but the last two messages go."""
    below: int | None = None
    """The new request must have fewer tokens than this; none: fewer than now."""
    is_repeated: bool = False
    """The last compaction in force had the same budget, and nothing was appended since: law 2."""
    model: str | None = None
    """The summariser; none: the settings', or the session's own where the daemon runs its loop."""
    may_ask_model: bool = False
    """A summariser was named, or the daemon runs this session's loop: `auto` means `summarize`."""
    unasked: str = ""
    """`auto` without a model that may be asked: what to say of it in `reason`; empty: nothing."""
    context: tuple[str, ...] = ()
    """What the client's hook wants the summariser to know."""
    prompt: str | None = None
    """The hook's prompt; beats `compact_prompt`."""


class Fixed(Struct, frozen=True):
    """What no compaction touches. Tokens."""

    system: int = 0
    tools: int = 0


class Inputs(Struct, frozen=True, kw_only=True):
    """What a plan is made of."""

    view: View
    fixed: Fixed
    settings: Settings
    standing: Standing
    request: CompactRequest
    counter: Counter
    pinned: Collection[EntryId] = ()
    """Messages that `session/pin` keeps; those that their `meta` pins need not be among them."""
    originals: tuple[Item, ...] = ()
    """Every message of the path as it was appended, oldest first, compacted or not; empty: the view's. What
    the user's constraints are looked for in."""
    limits: Found | None = None
    """Of the session: what its messages were found to demand, for the next time."""
    known: Known | None = None
    """Of the view and its path, from earlier plans; with it `originals` need not be there."""


def check_budgets(request: CompactRequest) -> None:
    """Raises `InvalidParams` for more than one budget, or one below 1."""
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
        raise InvalidParams(f"only one of {' and '.join(budgets)} can be given", f"$.{list(budgets)[1]}")
    for name, value in budgets.items():
        if value < 1:
            raise InvalidParams(f"{name} is {value}; it must be above 0", f"$.{name}")

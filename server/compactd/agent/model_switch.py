"""Switch a session to another model. If the conversation does not fit the new model's window, it is
compacted first."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from compactd.core.budget.budget import BudgetStatus, RequestSize, compute_budget, largest_request
from compactd.core.budget.usage_report import known_window
from compactd.core.history.entries import Item
from compactd.core.models.registry import Lookup
from compactd.core.planning.request import CompactRequest
from compactd.core.tokens.counting import system_tokens, tool_tokens
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, ModelChanged
from compactd.session.recount import RecountCache
from compactd.session.session import Session
from compactd.session.undo import undo

MARGIN = 0.97
"""The target of a compaction, as a share of the tokens that the new model can take. It is below 1 because the
tokenizers of the two models count differently."""


ATTEMPTS = 2
"""How many compactions are tried. A compaction that is not enough is undone, and the next one has a smaller
target."""


class SwitchOutcome(Struct, frozen=True, kw_only=True):
    """The result of a switch."""

    compaction: CompactionResult | None
    """The compaction that made the conversation fit; None if none was needed."""
    number: int | None
    """The number of the switch's journal record, for `Session.wait_durable`; None if the session already used
    this model."""


async def switch(session: Session, model: str, base_url: str | None) -> SwitchOutcome:
    """Switch the session to `model`. The new window, threshold and decision apply at once.

    If the conversation is over the new model's cap, it is first compacted, while the session still has its
    old model. Raises `SessionBusy`, `SessionLocked`, and `CannotFit` with the floor; then the session keeps
    its old model.
    """
    session.require_idle()
    session.require_journal()
    now = session.state.model
    if (now.model, now.base_url) == (model, base_url):
        return SwitchOutcome(compaction=None, number=None)
    world = session.host
    await world.ask_server(model, base_url)
    found = await world.in_worker(lambda: world.lookup(model, base_url))
    compaction, counted = None, None
    if found is not None and session.state.items:
        counted = RecountCache(session.counter_of(found), tuple(session.state.originals.values()))
        if counted.counter.name != session.counter.name:
            await world.in_worker(counted.prepare)
        after = await world.in_worker(partial(_budget_under, session, found, base_url, counted))
        if after.decision.kind == "over":
            compaction = await _compact_to_fit(session, found, base_url, after, counted)
    session.require_idle()
    session.counted = counted
    number = session.set_model(model, base_url, None)
    session.last_sent_epoch = session.state.epoch
    session.emit(ModelChanged(model=model, context_window=session.budget_status().window))
    session.emit_usage()
    return SwitchOutcome(compaction=compaction, number=number)


def _counted(item: Item, counted: RecountCache) -> int:
    tokens = counted.of(item.message)
    return tokens if item.provider is None else max(tokens, item.provider.tokens)


def _budget_under(
    session: Session, found: Lookup, base_url: str | None, counted: RecountCache
) -> BudgetStatus:
    """Return the token budget that the session would have with the model `found` at `base_url`. `counted`
    counts the messages with that model's tokenizer and remembers the counts.

    O(view), plus the messages that are not counted yet.
    """
    counter = counted.counter
    view, state = session.state.view(), session.state
    estimated = (
        system_tokens(state.system_prompt, counter)
        + sum(tool_tokens(tool, counter) for tool in session.tools())
        + sum(
            item.tokens if counter.name == session.counter.name else _counted(item, counted)
            for item in view.items
        )
    )
    window = known_window(found, session.host.observed_window(found, base_url))
    return compute_budget(session.resolve_under(window)[0], window, RequestSize(estimated=estimated))


async def _compact_to_fit(
    session: Session, found: Lookup, base_url: str | None, over: BudgetStatus, counted: RecountCache
) -> CompactionResult:
    """Compact the session so that it fits the new model `found`, and return the compaction's result. `over`
    is the token budget with the new model. Raises `CannotFit` if no compaction is
    enough, or if the settings disable compaction.
    """
    from compactd.compaction.run import compact

    if not session.resolved.settings.enabled:
        raise _cannot_fit(found, over)
    fits = largest_request(over.window, over.cap) or 0
    if over.threshold is not None:
        fits = min(fits, over.threshold - 1)
    ours = fits * MARGIN * session.state.estimated_size / max(1, over.used)
    for _ in range(ATTEMPTS):
        request = CompactRequest(trigger="model_switch", force=True, target_tokens=max(1, int(ours)))
        try:
            result = await compact(session, request)
        except CannotFit as error:
            raise _cannot_fit(found, over, error) from None
        after = await session.host.in_worker(lambda: _budget_under(session, found, base_url, counted))
        if after.decision.kind != "over":
            return result
        # The ratio of the two tokenizers' counts can be higher for the kept content (images, other scripts).
        ours = min(ours, session.state.estimated_size) * fits * MARGIN / max(1, after.used)
        if not result.compacted:
            break
        if not await _undo_compaction(session):
            over = after
    raise _cannot_fit(found, over)


async def _undo_compaction(session: Session) -> bool:
    """Undo a compaction that was not enough. Return false if it cannot be undone, because the old model
    needed it too."""
    try:
        number = undo(session)[1]
    except CannotFit:
        return False
    await session.wait_durable(number)
    session.emit_usage()
    return True


def _cannot_fit(found: Lookup, over: BudgetStatus, floor: CannotFit | None = None) -> CannotFit:
    """Return the error which says that the conversation does not fit the new model `found`. `over` is the
    token budget with the new model. `floor` is the error of the compaction that was tried, if it raised one;
    its data is added."""
    refusal = CannotFit(
        f"The conversation takes {over.used:,} tokens; {found.model} has a window of {over.window or 0:,}. "
        "The session keeps its model: compact it, shorten the newest request, or choose another model.",
        used=over.used,
        window=over.window,
    )
    if floor is not None:
        refusal.data.update({name: floor.data[name] for name in ("floor", "limit") if name in floor.data})
    return refusal

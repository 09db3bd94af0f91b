"""Conversion of sessions and internal values to the results of methods (wire types)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from compactd.core.authors.quoted_message import message_stretches, quote_stretches
from compactd.core.budget.settings import values_of
from compactd.core.history.entries import Appended, Compacted, CompactionBegun, Item, Pruned
from compactd.core.history.outputs import ReducedOutputs
from compactd.core.history.pins import pinned_of
from compactd.core.history.state import SessionState
from compactd.core.history.titles import title_of
from compactd.core.models.lookup import Lookup, Tried
from compactd.core.models.observed import LASTS_S, Observed, doubt_of
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.models.registry_files import PRICES_AS_OF
from compactd.protocol import wire
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import CompactionResult, Message, Status, ToolResult
from compactd.protocol.settings import IgnoredSetting
from compactd.session.host import ClientRef
from compactd.session.session import AppendOutcome, Session

if TYPE_CHECKING:
    from compactd.core.models.rows import ModelRow
    from compactd.session.search import FoundMessage

T = TypeVar("T")

encode = msgspec.json.Encoder().encode


def to_wire(value: object, kind: type[T]) -> T:
    """Return the wire type `kind` with the fields of the same names of `value`. Items of tuples are converted
    in the same way. Raises `ValidationError` if a field does not fit.
    """
    return msgspec.convert(value, kind, from_attributes=True)


def encode_settings(session: Session) -> dict[str, wire.Setting]:
    """Return every setting by name, with the value that the session uses and its source."""
    resolved = session.resolved
    return {
        name: wire.Setting(value=Raw(encode(value)), source=resolved.source(name))
        for name, value in values_of(resolved.settings).items()
    }


def lookup_of(found: Lookup) -> wire.LookupResult:
    """Return the result of `models/lookup` for a model that was found."""
    fields = msgspec.structs.asdict(found)
    source = fields.pop("pricing_source")
    if found.pricing is not None:
        fields["pricing_source"] = f"{source}, {PRICES_AS_OF}" if source else PRICES_AS_OF
    return to_wire({**fields, "pricing": Raw(encode(found.pricing))}, wire.LookupResult)


def encode_lookup(
    answer: wire.LookupResult, steps: Iterable[Tried], learned: Observed | None
) -> wire.LookupResult:
    """Return `answer` with `steps`, by which the model was found. If there is an observed window (`learned`),
    it becomes the first step.
    """
    shown = [
        wire.LadderStep(step=step.step, key=", ".join(step.looked_for), found=step.found) for step in steps
    ]
    if learned is not None:
        shown.insert(
            0,
            wire.LadderStep(step="observed", key=answer.model, found=f"{learned.window:,}: {learned.source}"),
        )
    return msgspec.structs.replace(answer, steps=tuple(shown))


def models_page(
    rows: Sequence[ModelRow], start: str | None, limit: int | None
) -> tuple[Sequence[ModelRow], str | None]:
    """Return a page of at most `limit` of the `rows`, and the `start` of the next page (None after the last
    page).

    `rows` are sorted by provider and id. `start` is the `provider/id` of the page's first row; if no row has
    this name, the page starts at the next row in this order. O(log rows + page).
    """
    first = 0
    if start is not None:
        provider, _, id = start.partition("/")
        first = bisect_left(rows, (provider, id), key=lambda row: (row.provider, row.id))
    end = len(rows) if limit is None else min(len(rows), first + limit)
    return rows[first:end], f"{rows[end].provider}/{rows[end].id}" if end < len(rows) else None


def model_list(rows: Iterable[ModelRow], observed: Iterable[Observed], next: str | None = None) -> Raw:
    """Return the result of `models/list` as JSON. O(rows)."""
    return Raw(
        encode(
            wire.ListModelsResult(
                models=tuple(
                    wire.ModelInfo(
                        provider=row.provider,
                        model=row.id,
                        context_window=row.context,
                        input_limit=row.input,
                        output_limit=row.output,
                        confidence="guess" if row.is_router else "disputed" if row.disputed else "fact",
                        source=", ".join(row.src),
                        tokenizer=row.tokenizer,
                        pricing=Raw(encode(row.prices)),
                        retired=row.retired,
                    )
                    for row in rows
                ),
                observed=tuple(
                    wire.ObservedInfo(
                        model=one.model,
                        provider=one.provider,
                        base_url=one.base_url,
                        window=one.window,
                        by="server" if one.by == "server" else "rejection",
                        at=one.at,
                        source=one.source,
                        until=one.at + LASTS_S,
                        confirmed=one.by != "sighting",
                        doubt=doubt_of(one) if one.by == "sighting" else "",
                    )
                    for one in observed
                ),
                next=UNSET if next is None else next,
            )
        )
    )


def state_of(session: Session, ignored: tuple[IgnoredSetting, ...]) -> wire.StateResult:
    """Return the result of `agent/state`: status, usage, budget, compactions and queued prompts.
    O(compactions).
    """
    standing, state = session.budget_status(), session.state
    done = [step.shown_result for step in state.compactions()]
    loop = session.agent_loop.status if session.agent_loop is not None else None
    # A redaction also occupies the slot, but clients are told neither its start nor its end.
    is_compacting = session.operation is not None and session.operation.is_compaction
    if session.following is not None:
        loop, is_compacting = session.following.status, session.following.is_compacting
    # If another process writes the session, the journal shows its compactions but not whether a turn runs.
    resting: Status = "unknown" if session.owner == "other" else "idle"
    return wire.StateResult(
        session_id=session.id,
        status="compacting" if is_compacting else loop or resting,
        title=state.shown_title,
        model=state.model.model,
        message_count=len(state.items),
        tools=tuple(tool.name for tool in session.tools()),
        token_usage=session.token_usage(),
        budget={
            name: wire.Term(value=term.value, source=term.source)
            for name, term in msgspec.structs.asdict(standing.budget).items()
        },
        decision=session.decision,
        compaction=wire.CompactionState(
            enabled=standing.enabled,
            running=is_compacting,
            count=len(done),
            tokens_saved=sum(result.tokens_saved for result in done),
            last=done[-1] if done else None,
            history=tuple(done),
            settings=encode_settings(session),
            ignored_settings=ignored,
        ),
        queued=len(state.queued),
        prompts=tuple(
            wire.PromptInfo(
                prompt_id=turn_id,
                client=_name_of(session.prompters.get(turn_id), session.id),
                text_preview=preview_of(decode_message(raw)),
            )
            for turn_id, raw in state.queued.items()
        ),
        reductions=reductions_of(state.outputs),
    )


def _name_of(client: ClientRef | None, session_id: str) -> str | None:
    return None if client is None else client.name_in(session_id)


PREVIEW_CHARS = 80


def preview_of(message: Message) -> str:
    """Return the beginning of a prompt in one line of at most `PREVIEW_CHARS` characters. O(text)."""
    text = join_text_blocks(message.content, " ")
    line = " ".join(text[: 4 * PREVIEW_CHARS].split())
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


def history_of(session: Session, params: wire.HistoryParams) -> wire.HistoryResult | None:
    """Return the history from the entry `params.from_` on, oldest first, or None if there is no such entry.

    O(entries).
    """
    state = session.state
    shown = {item.entry_id: item.tokens for item in state.items}
    pruned_at = {stub.entry_id: step.at for step in state.in_force.steps for stub in step.stubs}
    carried = {entry_id for step in state.compactions()[-1:] for entry_id in step.pinned}
    total = summarised = None
    if params.in_context:
        total = len(state.items)
        summarised = sum(1 for i in state.path if i in state.originals and i not in shown)
    entries: list[wire.HistoryEntry] = []
    is_on = params.from_ is None
    following: str | None = None
    for entry in _requested_entries(state, params):
        is_on = is_on or _id_of(entry) == params.from_
        if not is_on or (session.operation is not None and _id_of(entry) == session.operation.compaction_id):
            continue
        row = _history_row(state, entry, shown, pruned_at, carried)
        if row is None:
            continue
        if params.limit is not None and len(entries) == params.limit:
            following = row.entry_id
            break
        entries.append(row)
    if not is_on:
        return None
    return wire.HistoryResult(entries=tuple(entries), next=following, total=total, summarised=summarised)


def page_of(session: Session, params: wire.HistoryParams) -> list[Item]:
    """Return the messages that `history_of` will read, or a few more, so that the caller can decode them
    first. O(entries).
    """
    state = session.state
    asked = _requested_entries(state, params)
    entries = asked if params.from_ is None else dropwhile(lambda each: _id_of(each) != params.from_, asked)
    messages = (state.originals[entry.id] for entry in entries if isinstance(entry, Appended))
    return list(islice(messages, params.limit))


def _requested_entries(
    state: SessionState, params: wire.HistoryParams
) -> Sequence[Appended | Compacted | Pruned | CompactionBegun]:
    """Return the entries that the request is about: the whole timeline, or only the entries in the current
    context if `in_context` is set. O(entries).
    """
    if not params.in_context:
        return state.timeline
    by_id = {_id_of(entry): entry for entry in state.timeline}
    return [by_id[item.entry_id] for item in state.items]


def _id_of(entry: Appended | Compacted | Pruned | CompactionBegun) -> str:
    return entry.compaction_id if isinstance(entry, CompactionBegun) else entry.id


def _history_row(
    state: SessionState,
    entry: Appended | Compacted | Pruned | CompactionBegun,
    shown: dict[str, int],
    pruned_at: dict[str, float],
    carried: set[str],
) -> wire.HistoryEntry | None:
    match entry:
        case Appended():
            item = state.originals[entry.id]
            return wire.HistoryEntry(
                entry_id=entry.id,
                kind="message",
                at=entry.at,
                in_context=entry.id in shown,
                message=UNSET if item.source is None else item.source,
                title=title_of(item.message),
                pruned_at=pruned_at.get(entry.id),
                tokens=shown.get(entry.id, item.tokens),
                pinned=bool(pinned_of((item,), state.pin_marks)),
                carried=entry.id in carried,
            )
        case Compacted():
            return wire.HistoryEntry(
                entry_id=entry.id,
                kind="compaction",
                at=entry.at,
                in_context=entry.id in shown,
                compaction=msgspec.structs.replace(entry.shown_result, summary=entry.summary),
                tokens=shown.get(entry.id, entry.summary_tokens),
            )
        case Pruned():
            return wire.HistoryEntry(entry_id=entry.id, kind="prune", at=entry.at, in_context=False)
        case CompactionBegun():
            if entry.compaction_id in state.done:
                return None
            ended = state.ended.get(entry.compaction_id)
            return wire.HistoryEntry(
                entry_id=entry.compaction_id,
                kind="compaction_failed",
                at=entry.at,
                in_context=False,
                compaction=CompactionResult(
                    compacted=False,
                    compaction_id=entry.compaction_id,
                    trigger=entry.trigger,
                    reason=ended.reason if ended else "the daemon ended before the compaction was finished",
                ),
            )


def hit_of(state: SessionState, found: FoundMessage, shown: Container[str]) -> wire.Hit:
    """Return a hit of `session/search`. `shown` are the messages of the context."""
    entry_id = found.item.entry_id
    output = state.outputs.entries.get(entry_id)
    holders = (entry_id,) if output is None else state.outputs.shown_in.get(entry_id, ())
    return wire.Hit(
        entry_id=entry_id,
        role=found.item.message.role if output is None else "tool",
        snippet=found.snippet,
        in_context=found.is_shown and any(holder in shown for holder in holders),
        at=state.times[entry_id] if output is None else output.at,
    )


def expanded_items(state: SessionState, params: wire.ExpandParams) -> list[Item]:
    """Return the original messages that a compaction replaced, or those with the given entry ids. An id can
    also be that of a reduced tool output.

    Raises `InvalidParams` for an id that is not in this session, or unless exactly one kind of id is given.
    """
    summaries = {item.entry_id: item for item in state.earlier_summaries()}
    given = (params.compaction_id, params.entry_ids, params.entry_id)
    if sum(one is not None for one in given) != 1:
        raise InvalidParams("give one of `compaction_id`, `entry_ids` and `entry_id`", "$.entry_ids")
    ids: Sequence[str]
    if params.compaction_id is not None:
        behind = state.messages_behind(params.compaction_id)
        if behind is None:
            raise InvalidParams(
                f"{params.compaction_id!r} is not a compaction of this session", "$.compaction_id"
            )
        ids = behind
    else:
        ids = params.entry_ids or (() if params.entry_id is None else (params.entry_id,))
        for index, entry_id in enumerate(ids):
            if not any(entry_id in known for known in (state.originals, state.outputs.items, summaries)):
                path = "$.entry_id" if params.entry_id is not None else f"$.entry_ids[{index}]"
                raise InvalidParams(f"{entry_id!r} is not a message of this session", path)
    return [state.originals.get(i) or state.outputs.items.get(i) or summaries[i] for i in ids]


def expand_of(outputs: ReducedOutputs, items: Sequence[Item], *, quoted: bool) -> wire.ExpandResult:
    """Return the result of `session/expand` for these messages. O(bytes if `quoted`)."""
    return wire.ExpandResult(entries=tuple(_original(outputs, item, quoted=quoted) for item in items))


def _original(outputs: ReducedOutputs, item: Item, *, quoted: bool) -> wire.Original:
    entry_id = item.entry_id
    return wire.Original(
        entry_id=entry_id,
        message=item.source or Raw(encode_message(item.message)),
        tokens=item.tokens,
        quoted=quote_stretches(message_stretches(item.decoded().message)) if quoted else UNSET,
        originals=outputs.originals_of(entry_id) or UNSET,
        shown_in=outputs.shown_in.get(entry_id, ()) if entry_id in outputs.entries else UNSET,
    )


def appended_reductions(state: SessionState, taken: AppendOutcome) -> tuple[wire.AppendedReduction, ...]:
    """Return where the messages of an append show reduced tool outputs. O(blocks)."""
    found: list[wire.AppendedReduction] = []
    for entry_id in dict.fromkeys(taken.intake.entry_ids):
        blocks = state.originals[entry_id].message.content
        for link in state.outputs.links.get(entry_id, ()):
            block, entry = blocks[link.block], state.outputs.entries[link.output]
            found.append(
                wire.AppendedReduction(
                    message_entry_id=entry_id,
                    call_id=block.call_id if isinstance(block, ToolResult) else "",
                    entry_id=entry.id,
                    tokens_before=entry.tokens[0],
                    tokens_after=entry.tokens_shown,
                    rules=entry.rules,
                )
            )
    return tuple(found)


def reductions_of(outputs: ReducedOutputs) -> wire.Reductions | UnsetType:
    """Return what reductions saved; UNSET if there were none."""
    if not outputs.done.count and not outputs.observed.count:
        return UNSET
    done = outputs.done
    return wire.Reductions(
        count=done.count,
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
        observed=to_wire(outputs.observed, wire.ReductionTotals),
        by_rule={name: to_wire(counts, wire.ReductionTotals) for name, counts in outputs.by_rule.items()},
    )

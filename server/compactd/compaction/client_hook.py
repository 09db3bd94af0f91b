"""The client's word before a compaction: `session/compacting`. No answer in time means go on."""

from __future__ import annotations

import logging

import msgspec
from msgspec import Struct

from compactd.core.planning.plan import Plan
from compactd.core.planning.request import CompactRequest
from compactd.protocol.messages import Strategy, Trigger
from compactd.session.host import ClientFailed
from compactd.session.session import Session

HOOK_S = 5.0
"""How long the client may think about it."""

_log = logging.getLogger("compactd.hook")


class PlanInfo(Struct, frozen=True, kw_only=True):
    """What a compaction is about to do. Tokens are of the whole request."""

    trigger: Trigger
    """Why it is made, as in `CompactionResult`."""
    strategies: tuple[Strategy, ...]
    """Tried in this order."""
    removed_entry_ids: tuple[str, ...]
    """Messages that the summary would replace, oldest first."""
    kept_entry_ids: tuple[str, ...]
    """Messages of the verbatim tail, oldest first."""
    pinned_entry_ids: tuple[str, ...]
    """Older messages that would stay word for word."""
    split_turn: bool
    """True if the cut lies inside a turn."""
    messages_before: int
    """Messages of the context before."""
    messages_after: int
    """Messages of the context after, the summary included."""
    tokens_before: int
    """Size of the next request before."""
    tokens_expected: int
    """With a summary that uses all its budget."""
    summary_budget: int
    """Most tokens of the summary; 0 if none is made."""


class HookParams(Struct, frozen=True, kw_only=True):
    """Params of `session/compacting`."""

    session_id: str
    """The session that is about to be compacted."""
    plan: PlanInfo
    """What would be done."""


class HookAnswer(Struct, frozen=True, kw_only=True):
    """Result of `session/compacting`; what is left out stays as it is."""

    cancel: bool | None = None
    """True: do not compact now."""
    context: tuple[str, ...] | None = None
    """What the summariser should know as well."""
    instructions: str | None = None
    """What the summary should look at most; beats the request's."""
    prompt: str | None = None
    """Replaces the summary prompt."""


class Skip(Struct, frozen=True):
    """The client does not want this compaction."""


async def heard(session: Session, request: CompactRequest, plan: Plan) -> CompactRequest | Skip:
    """The request with what the client adds to it, or that it is not to be."""
    if not session.has_hook:
        return request
    params = HookParams(
        session_id=session.id,
        plan=PlanInfo(
            trigger=plan.trigger,
            strategies=plan.strategies,
            removed_entry_ids=plan.removed,
            kept_entry_ids=plan.kept,
            pinned_entry_ids=plan.pinned,
            split_turn=plan.is_split,
            messages_before=plan.messages_before,
            messages_after=plan.messages_after,
            tokens_before=plan.tokens_before,
            tokens_expected=plan.tokens_expected,
            summary_budget=plan.summary_budget,
        ),
    )
    try:
        raw = await session.world.ask_client("session/compacting", params, HOOK_S)
        answer = msgspec.json.decode(raw, type=HookAnswer | None) or HookAnswer()
    except (ClientFailed, msgspec.MsgspecError) as error:
        _log.warning("session/compacting: %s; the compaction goes on", error)
        return request
    if answer.cancel:
        return Skip()
    return msgspec.structs.replace(
        request,
        context=(*request.context, *(answer.context or ())),
        instructions=answer.instructions or request.instructions,
        prompt=answer.prompt or request.prompt,
    )

"""Ask the client before a compaction, with the request `session/compacting`. If the client does not answer in
time, the compaction goes on."""

from __future__ import annotations

import logging

import msgspec
from msgspec import Struct

from compactd.core.planning.plan import NotCompacted, Plan
from compactd.protocol.messages import Strategy, Trigger
from compactd.session.host import ClientFailed, acting
from compactd.session.session import Session

HOOK_S = 5.0
"""How many seconds the daemon waits for the client's answer."""

_log = logging.getLogger("compactd.hook")


class PlanInfo(Struct, frozen=True, kw_only=True):
    """What a compaction is about to do. Numbers of tokens are those of the whole request."""

    trigger: Trigger
    """Why the compaction is made, as in `CompactionResult`."""
    strategies: tuple[Strategy, ...]
    """The strategies, in the order in which they are tried."""
    removed_entry_ids: tuple[str, ...]
    """Messages that the summary would replace, oldest first."""
    kept_entry_ids: tuple[str, ...]
    """Messages after the cut point, which stay word for word, oldest first."""
    pinned_entry_ids: tuple[str, ...]
    """Older messages that would stay word for word because they are pinned."""
    split_turn: bool
    """True if the cut point is inside a turn."""
    messages_before: int
    """The number of messages in the context before the compaction."""
    messages_after: int
    """The number of messages in the context after it, the summary included."""
    tokens_before: int
    """The size of the next request before the compaction."""
    tokens_expected: int
    """The size of the next request after it, if the summary uses its whole budget."""
    summary_budget: int
    """The maximum number of tokens of the summary; 0 if none is made."""


class HookParams(Struct, frozen=True, kw_only=True):
    """Params of `session/compacting`."""

    session_id: str
    """The session that is about to be compacted."""
    plan: PlanInfo
    """What the compaction is about to do."""


class HookAnswer(Struct, frozen=True, kw_only=True):
    """Result of `session/compacting`. A field that is left out changes nothing."""

    cancel: bool | None = None
    """True if the client does not want this compaction now."""
    context: tuple[str, ...] | None = None
    """Further information for the summariser."""
    instructions: str | None = None
    """What the summary should focus on. It overrides the request's `instructions`."""
    prompt: str | None = None
    """A prompt that replaces the summary prompt."""


async def ask_client_hook(session: Session, plan: Plan) -> Plan | NotCompacted:
    """Ask the client, if it has a compaction hook, about the planned compaction. Return the plan with the
    client's additions to its request, or `NotCompacted` if the client does not want the compaction."""
    if not session.has_compaction_hook:
        return plan
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
        raw, _ = await session.host.ask_client(session.id, acting.get(), "session/compacting", params, HOOK_S)
        answer = msgspec.json.decode(raw, type=HookAnswer | None) or HookAnswer()
    except (ClientFailed, msgspec.MsgspecError) as error:
        _log.warning(
            "the compaction goes on without an answer of the client to session/compacting: %s",
            error,
        )
        return plan
    if answer.cancel:
        return plan.refuse("the client cancelled it in its answer to session/compacting")
    asked = plan.inputs.request
    request = msgspec.structs.replace(
        asked,
        context=(*asked.context, *(answer.context or ())),
        instructions=answer.instructions or asked.instructions,
        prompt=answer.prompt or asked.prompt,
    )
    return msgspec.structs.replace(plan, inputs=msgspec.structs.replace(plan.inputs, request=request))

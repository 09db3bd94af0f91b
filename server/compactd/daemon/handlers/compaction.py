"""Handlers that change a session's view: compaction, pruning, undo, redo, branches and turns."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from compactd.agent import recovery, turns
from compactd.core.history.active_steps import ViewStep
from compactd.core.history.entries import Compacted, Pruned
from compactd.daemon.handlers import decode
from compactd.daemon.handlers.base import Handled, HandlerGroup
from compactd.daemon.rpc.request import Request
from compactd.protocol import wire
from compactd.protocol.errors import SessionLocked, SessionNotFound
from compactd.protocol.messages import CompactionResult
from compactd.session import undo
from compactd.session.session import Session
from compactd.session.slot import Progress

COMPACTING = "compactd.compaction.run"


class CompactionHandlers(HandlerGroup):
    """Handlers of compaction, pruning, undo, redo and branch, of `turn/begin` and of `turn/error`."""

    async def session_compact(self, params: wire.CompactParams, request: Request) -> CompactionResult:
        """Compact the session. At most one compaction runs per session. Cancelling the request cancels the
        compaction.
        """
        session = self._sessions.get(params.session_id)
        want = decode.compact_request(params)
        await self._load(session, COMPACTING)
        from compactd.compaction.run import compact

        result = await compact(
            session,
            want,
            dry_run=params.dry_run is True,
            plan_only=params.plan_only is True,
            progress=_progress_of(request),
        )
        warnings = decode.ignored_names(request, params)
        return msgspec.structs.replace(result, warnings=warnings) if warnings else result

    def session_undo(self, params: wire.UndoParams, request: Request) -> Handled:
        """Undo the session's last compaction or prune. Later messages stay.

        Refuses if the next request would then be over the cap. With `force` it does not refuse, and the next
        `turn/begin` makes the request fit.
        """
        session, is_forced = self._sessions.get(params.session_id), params.force is True
        return self._finish_rewind(session, undo.undo(session, force=is_forced))

    def session_redo(self, params: wire.SessionParams, request: Request) -> Handled:
        """Redo the compaction or prune that was undone last."""
        session = self._sessions.get(params.session_id)
        return self._finish_rewind(session, undo.redo(session))

    async def _finish_rewind(self, session: Session, done: tuple[ViewStep, int]) -> wire.UndoResult:
        step, number = done
        await session.wait_durable(number)
        session.emit_usage()
        return wire.UndoResult(
            message_count=len(session.state.items),
            token_usage=session.token_usage(),
            compaction_id=step.compaction_id if isinstance(step, Compacted) else None,
            entry_ids=tuple(stub.entry_id for stub in step.stubs) if isinstance(step, Pruned) else None,
        )

    async def session_prune(self, params: wire.PruneParams, request: Request) -> wire.PruneResult:
        """Replace old tool output in the view by stubs. The session's settings decide how much."""
        session = self._sessions.get(params.session_id)
        await self._load(session, COMPACTING)
        from compactd.compaction.run import prune

        pruning = await prune(session, dry_run=params.dry_run is True)
        return wire.PruneResult(
            pruned=pruning.results,
            tokens_saved=pruning.tokens_saved,
            entry_ids=tuple(stub.entry_id for stub in pruning.stubs),
        )

    def session_branch(self, params: wire.BranchParams, request: Request) -> Handled:
        """Continue the session from an older entry, as a new branch. The entries after that entry stay in the
        journal.
        """
        session = self._sessions.get(params.session_id)

        async def branched(number: int) -> wire.BranchResult:
            await session.wait_durable(number)
            session.emit_changed("branch", params.entry_id)
            session.emit_usage()
            return wire.BranchResult(session_id=session.id, message_count=len(session.state.items))

        return branched(undo.branch(session, params.entry_id))

    async def turn_error(self, params: wire.ErrorParams, request: Request) -> wire.ErrorResult:
        """Classify a failed model request and, if it was an overflow, make the session fit again.

        If the session is unknown or locked, the error that is raised contains the classification in its
        data.
        """
        failed = decode.failed_request(params)
        try:
            session = self._sessions.get(params.session_id)
            session.require_journal()
        except (SessionNotFound, SessionLocked) as refusal:
            known = self._sessions.open.get(params.session_id)
            verdict = await self._daemon.in_worker(lambda: recovery.verdict_of(failed, known))
            refusal.data.update(overflow=verdict.overflow, kind=verdict.kind, fix=verdict.fix)
            raise
        await self._load(session, COMPACTING)
        return await recovery.recover(session, failed, _progress_of(request))

    async def turn_begin(self, params: wire.SessionParams, request: Request) -> wire.BeginResult:
        """Begin a turn. Wait for a running compaction, then compact or prune if that is due."""
        session = self._sessions.get(params.session_id)
        if turns.may_change(session):
            await self._load(session, COMPACTING)
        begun = await turns.begin(session, _progress_of(request))
        most = begun.max_output_tokens
        return wire.BeginResult(
            compaction=begun.compaction,
            decision=begun.decision,
            pruned=begun.pruned,
            token_usage=session.token_usage(),
            max_output_tokens=UNSET if most is None else most,
        )


def _progress_of(request: Request) -> Progress | None:
    """Return the function that reports a compaction's progress, or None if the request has no progress
    token.
    """
    return None if request.token is None else request.progress

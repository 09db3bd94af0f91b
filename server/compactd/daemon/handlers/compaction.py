"""What changes the view of a session: compactions, and the way back."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from compactd.agent import recovery, turns
from compactd.core.history.entries import Compacted, Pruned
from compactd.core.history.undo import Step
from compactd.daemon.handlers import decode
from compactd.daemon.handlers.base import Area, Handled, Handler, in_order
from compactd.daemon.rpc.request import Request
from compactd.protocol import wire
from compactd.protocol.errors import SessionLocked, SessionNotFound
from compactd.protocol.messages import CompactionResult
from compactd.session import undo
from compactd.session.session import Session
from compactd.session.slot import Progress

COMPACTING = "compactd.compaction.run"


class ChangingHandlers(Area):
    """Compacts, rewinds, begins turns."""

    def by_method(self) -> Mapping[str, Handler]:
        """The handler of each method."""
        return {
            "session/compact": self.session_compact,
            "session/undo": self.session_undo,
            "session/redo": self.session_redo,
            "session/prune": self.session_prune,
            "session/branch": self.session_branch,
            "turn/begin": self.turn_begin,
            "turn/error": self.turn_error,
        }

    async def session_compact(self, params: wire.CompactParams, request: Request) -> CompactionResult:
        """The one compaction of its session; cancelled with the request."""
        session = self._sessions.get(params.session_id)
        want = decode.compact_request(params)
        await self._line_reached(session, COMPACTING)
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
        """The last step."""
        session, is_forced = self._sessions.get(params.session_id), params.force is True
        return in_order(session, lambda: self._rewound(session, undo.undo(session, force=is_forced)))

    def session_redo(self, params: wire.SessionParams, request: Request) -> Handled:
        """The last step undone."""
        session = self._sessions.get(params.session_id)
        return in_order(session, lambda: self._rewound(session, undo.redo(session)))

    async def _rewound(self, session: Session, done: tuple[Step, int]) -> wire.UndoResult:
        step, number = done
        await session.durable(number)
        session.tell_usage()
        return wire.UndoResult(
            message_count=len(session.fold.items),
            token_usage=session.token_usage(),
            compaction_id=step.compaction_id if isinstance(step, Compacted) else None,
            entry_ids=tuple(stub.entry_id for stub in step.stubs) if isinstance(step, Pruned) else None,
        )

    async def session_prune(self, params: wire.PruneParams, request: Request) -> wire.PruneResult:
        """By the settings' numbers."""
        session = self._sessions.get(params.session_id)
        await self._line_reached(session, COMPACTING)
        from compactd.compaction.run import prune

        pruning = await prune(session, dry_run=params.dry_run is True)
        return wire.PruneResult(
            pruned=pruning.results,
            tokens_saved=pruning.tokens_saved,
            entry_ids=tuple(stub.entry_id for stub in pruning.stubs),
        )

    def session_branch(self, params: wire.BranchParams, request: Request) -> Handled:
        """Another branch of the same session."""
        session = self._sessions.get(params.session_id)

        async def branched(number: int) -> wire.BranchResult:
            await session.durable(number)
            session.tell_changed("branch", params.entry_id)
            session.tell_usage()
            return wire.BranchResult(session_id=session.id, message_count=len(session.fold.items))

        return in_order(session, lambda: branched(undo.branch(session, params.entry_id)))

    async def turn_error(self, params: wire.ErrorParams, request: Request) -> wire.ErrorResult:
        """Also where there is no session to mend: the refusal's data says what the failure was."""
        failed = decode.failed_request(params)
        try:
            session = self._sessions.get(params.session_id)
            session.writable()
        except (SessionNotFound, SessionLocked) as refusal:
            known = self._sessions.open.get(params.session_id)
            verdict = await self._daemon.in_worker(lambda: recovery.verdict_of(failed, known))
            refusal.data.update(overflow=verdict.overflow, kind=verdict.kind, fix=verdict.fix)
            raise
        await self._line_reached(session, COMPACTING)
        done = await recovery.recover(session, failed, _progress_of(request))
        return wire.ErrorResult(
            overflow=done.verdict.overflow,
            kind=done.verdict.kind,
            retry=done.retry,
            reason=done.reason,
            max_output_tokens=done.max_output_tokens,
            compaction=done.compaction,
            floor=done.floor,
        )

    async def turn_begin(self, params: wire.SessionParams, request: Request) -> wire.BeginResult:
        """Waits for a compaction that runs."""
        session = self._sessions.get(params.session_id)
        await self._line_reached(session, COMPACTING)
        begun = await turns.begin(session, _progress_of(request))
        most = begun.max_output_tokens
        return wire.BeginResult(
            compaction=begun.compaction,
            pruned=begun.pruned,
            token_usage=session.token_usage(),
            max_output_tokens=UNSET if most is None else most,
        )


def _progress_of(request: Request) -> Progress | None:
    """Shows the progress of a compaction under the request's own token, if it has one."""
    return None if request.token is None else request.progress

"""Handlers that append messages to a session.

If the messages are too large to count on the event loop, a worker counts them. Later requests to that session
wait meanwhile, so the order of requests is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import UNSET, Struct

from compactd.agent import turns
from compactd.core.history.append import AppendRequest
from compactd.core.tokens.counting import messages_tokens
from compactd.daemon.handlers import decode
from compactd.daemon.handlers.base import Handled, HandlerGroup
from compactd.daemon.rpc.request import Request
from compactd.formats.messages.client_messages import read_given
from compactd.protocol import wire
from compactd.session.session import AppendOutcome, Session


class AppendHandlers(HandlerGroup):
    """Handlers of `session/append` and `turn/end`."""

    def session_append(self, params: wire.AppendParams, request: Request) -> Handled:
        """Append messages, and answer once they are on disk. `usage_update` is sent after the answer."""
        session = self._sessions.get(params.session_id)

        def answer(taken: AppendOutcome, new: AppendRequest) -> wire.AppendResult:
            return wire.AppendResult(
                entry_ids=taken.intake.entry_ids,
                duplicates=taken.intake.duplicates,
                pending_calls=session.pending.call_ids,
                token_usage=session.token_usage(),
                decision=session.decision,
                warnings=decode.usage_warnings(new, params) or UNSET,
            )

        def take(new: AppendRequest) -> Awaitable[Struct]:
            taken = session.append(new)
            if taken.intake.entries:
                request.after(session.emit_usage)
            return _finish_append(session, taken, answer(taken, new))

        return self._append(session, params, take)

    def turn_end(self, params: wire.EndParams, request: Request) -> Handled:
        """Append the last messages of a turn and end the turn. Also detect a silent overflow: a usage report
        which shows that the window was full although the request did not fail.
        """
        session = self._sessions.get(params.session_id)

        def take(new: AppendRequest) -> Awaitable[Struct]:
            taken = session.append(new)
            silent = turns.emit_end(session, taken, new.stop_reason)
            session.emit_usage()
            result = wire.EndResult(
                entry_ids=taken.intake.entry_ids,
                duplicates=taken.intake.duplicates,
                pending_calls=session.pending.call_ids,
                token_usage=session.token_usage(),
                decision=session.decision,
                silent_overflow=silent,
                warnings=decode.usage_warnings(new, params) or UNSET,
            )
            return _finish_turn(session, taken, result)

        return self._append(session, params, take)

    def _append(
        self,
        session: Session,
        params: wire.AppendParams | wire.EndParams,
        take: Callable[[AppendRequest], Awaitable[Struct]],
    ) -> Handled:
        session.require_journal()
        read = read_given(params.messages, params.format)
        size_bytes = sum(len(memoryview(raw)) for raw in params.messages)

        def new(tokens: Sequence[int]) -> AppendRequest:
            if session.agent_loop is not None:
                session.agent_loop.require_acceptable(message for message, _ in read)
            return decode.decode_append(params, read, tokens)

        def count() -> list[int]:
            return messages_tokens([message for message, _ in read], session.counter)

        if not session.counts_in_worker(size_bytes):
            return take(new(count()))

        async def counted() -> Struct:
            async with session.queue.hold():
                done = take(new(await self._daemon.in_worker(count)))
            return await done

        return counted()


async def _finish_append(session: Session, taken: AppendOutcome, result: Struct) -> Struct:
    """Wait until the messages are on disk, send their `message_appended` events, and return `result`."""
    await session.wait_durable(taken.commit_id)
    session.emit_appended(taken, client=session.client)
    return result


async def _finish_turn(session: Session, taken: AppendOutcome, result: Struct) -> Struct:
    """Wait until the messages are on disk and the turn's last snapshot is taken, and return `result`."""
    await _finish_append(session, taken, result)
    if session.snapshots is not None:
        await session.snapshots.take(session, "end")
    return result

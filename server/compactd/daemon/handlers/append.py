"""Handlers that append messages to a session.

If the messages are too large to count on the event loop, a worker counts them. Later requests to that session
wait meanwhile, so the order of requests is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import UNSET, Raw, Struct

from compactd.agent import turns
from compactd.core.history.append import AppendRequest
from compactd.core.tokens.counting import messages_tokens
from compactd.daemon.handlers import decode, encode
from compactd.daemon.handlers.base import Handled, HandlerGroup
from compactd.daemon.rpc.request import Request
from compactd.formats.messages.client_messages import read_given
from compactd.protocol import wire
from compactd.protocol.messages import Message, ToolResult
from compactd.session.host import acting
from compactd.session.session import AppendOutcome, Session

REDUCE = "compactd.session.reduce"
"""The module that reduces tool outputs. It is loaded when it is first needed."""


LARGE_CHARS = 256 * 1024
"""The most characters of a text that is encoded on the event loop (< 1 ms)."""


class AppendHandlers(HandlerGroup):
    """Handlers of `session/append`, `session/reduce` and `turn/end`."""

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
                reductions=encode.appended_reductions(session.state, taken) if params.reduce else UNSET,
            )

        def take(new: AppendRequest) -> Awaitable[Struct]:
            taken = session.append(new)
            if taken.intake.entries:
                request.after(session.emit_usage)
            return _finish_append(session, taken, answer(taken, new))

        return self._append(session, params, take)

    async def session_reduce(self, params: wire.ReduceParams, request: Request) -> Struct | Raw:
        """Reduce a tool's output, and answer once its original is on disk. A worker reduces; later requests
        to the session wait meanwhile.
        """
        session = self._sessions.get(params.session_id)
        given, level = decode.given_output(params), decode.reduce_level(params.level, session)
        session.require_journal()
        async with session.queue.hold():
            await self._daemon.modules.load(REDUCE)
            from compactd.session.reduce import reduce_given

            done = await reduce_given(session, given, level, observe=params.observe)
        if done.commit_id is not None:
            await session.wait_durable(done.commit_id)
        result = wire.ReduceResult(
            content=done.text,
            reduced=bool(done.rules),
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            entry_id=done.entry_id,
            rules=done.rules,
        )
        if len(done.text) <= LARGE_CHARS:
            return result
        return await self._daemon.in_worker(lambda: Raw(msgspec.json.encode(result)))

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
        if isinstance(params, wire.AppendParams) and params.reduce and has_results(read):
            return self._append_reduced(session, params, read, take)
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

    async def _append_reduced(
        self,
        session: Session,
        params: wire.AppendParams,
        read: Sequence[tuple[Message, Raw]],
        take: Callable[[AppendRequest], Awaitable[Struct]],
    ) -> Struct:
        """Reduce the tool results in `read`, and append the messages."""
        async with session.queue.hold():
            await self._daemon.modules.load(REDUCE)
            from compactd.session.reduce import reduce_messages

            reduced = await reduce_messages(session, read, session.resolved.settings.reduce_level)
            if session.agent_loop is not None:
                session.agent_loop.require_acceptable(message for message, _ in read)
            new = decode.decode_append(params, reduced.read, reduced.tokens)
            done = take(reduced.added_to(new))
        return await done


def has_results(read: Sequence[tuple[Message, Raw]]) -> bool:
    """Return true if a message contains a tool result."""
    return any(isinstance(block, ToolResult) for message, _ in read for block in message.content)


async def _finish_append(session: Session, taken: AppendOutcome, result: Struct) -> Struct:
    """Wait until the messages are on disk, send their `message_appended` events, and return `result`."""
    await session.wait_durable(taken.commit_id)
    session.emit_appended(taken, client=acting.get())
    return result


async def _finish_turn(session: Session, taken: AppendOutcome, result: Struct) -> Struct:
    """Wait until the messages are on disk and the turn's last snapshot is taken, and return `result`."""
    await _finish_append(session, taken, result)
    if session.snapshots is not None:
        await session.snapshots.take(session, "end")
    return result

"""The daemon's own agent loop: ask the model, run its tool calls, and repeat until its answer has no calls.

The modules `turns` and `recovery` do what is necessary before and after each request. Agents that run their
own loop use the same modules. A prompt has a limited number of requests, a request a limited number of
rejections, and a tool limited time (docs/dev/behaviour.md, law 3).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import aclosing

import msgspec
from msgspec import Raw, Struct

from compactd.agent import tool_calls, turns
from compactd.agent.next_request import next_request, output_limit, with_own_names
from compactd.agent.recovery import FailedRequest, recover
from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import Appended, EntryId, Queued, Unqueued
from compactd.core.history.tool_pairs import closes_calls
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.models.providers.provider import Finished, ModelFailed, Provider, Retrying, TextChunk
from compactd.models.providers.provider import ThinkingChunk as ThinkingArrived
from compactd.protocol.errors import CannotFit, CompactdError, SessionBusy
from compactd.protocol.messages import (
    NULL,
    AgentAbort,
    AgentEnd,
    AgentError,
    AgentStart,
    Message,
    MessageAppended,
    MessageDelta,
    MessageEnd,
    MessageQueued,
    MessageStart,
    Retry,
    ThinkingDelta,
    ToolCall,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnStart,
)
from compactd.session.host import AgentStatus, ClientRef, acting
from compactd.session.session import AppendOutcome, Session

LOWERED = 2
"""How many times a request is sent again with a lower output limit before the prompt fails."""

ABORT_S = 0.04
"""How many seconds an abort waits for the stopped work before it returns."""

_log = logging.getLogger("compactd.loop")


class PromptOutcome(Struct, frozen=True, kw_only=True):
    """A prompt that was written to the journal."""

    turn_id: str
    """The id of the prompt. All turns that answer the prompt have this id too."""
    queued: bool
    """Whether the prompt must wait: for earlier prompts, or for a running compaction or redaction."""
    number: int
    """The number of the prompt's journal record. `Session.wait_durable(number)` waits until it is on disk."""


class _Place(Struct, frozen=True, kw_only=True):
    """The prompt and the message to which a tool call belongs."""

    turn_id: str
    entry_id: EntryId | None
    """The entry of the message that contains the call."""


class AgentLoop:
    """The agent loop of one session. It answers one prompt at a time; further prompts wait in a queue."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self.turn_id: str | None = None
        """The id of the prompt that is being answered."""
        self._is_turn_open = False
        """Whether a `turn_start` was sent, but not yet its `turn_end`."""
        self._is_message_open = False
        """Whether a `message_start` was sent, but not yet its `message_end`."""
        self._partial: list[str] = []
        """The pieces of text of the answer that is arriving."""
        self._is_client_gone = False
        self.status: AgentStatus | None = None

    @property
    def is_running(self) -> bool:
        """Whether a prompt is being answered."""
        return self._task is not None and not self._task.done()

    def blocks_caller(self) -> bool:
        """Return whether a prompt is being answered by another task than the caller's. Then the caller must
        wait."""
        return self.is_running and asyncio.current_task() is not self._task

    def require_acceptable(self, messages: Iterable[Message]) -> None:
        """Raise `SessionBusy` if a prompt is being answered and the last of the client's `messages` is an
        assistant message.

        The next request would then end with this message. Some providers refuse such a request; others
        continue the message.
        """
        known = self._session.state.clients
        said = [message.role for message in messages if message.id not in known and closes_calls(message)]
        if self.status is not None and said and said[-1] == "assistant":
            raise SessionBusy(
                "The daemon is answering a prompt of this session. An assistant message that is appended now "
                "would take the place of the model's answer: append it after the `agent_end` event, or stop "
                "the prompt with agent/abort first.",
                holder="prompt",
                turn_id=self.turn_id,
            )

    def prompt(self, message: Message, raw: Raw) -> PromptOutcome:
        """Queue a user's message. It is answered at once, or after the prompts that are already queued.

        Raises `SessionLocked`, and `NoProvider` if there is no model to ask.
        """
        session, before = self._session, self._task
        session.require_journal()
        self._provider()
        turn_id = f"t{session.state.prompts + 1}"
        queued = self.is_running or session.operation is not None or bool(session.state.queued)
        number = session.write(Queued(at=session.host.now(), turn_id=turn_id, message=raw))
        client = acting.get()
        if client is not None:
            session.prompters[turn_id] = client
        if queued:
            session.emit(MessageQueued(turn_id=turn_id))
        if before is None or before.done() or before is self._stopping:
            self._task = asyncio.ensure_future(self._run_prompts(before))
        return PromptOutcome(turn_id=turn_id, queued=queued, number=number)

    async def abort(self) -> bool:
        """Stop answering the prompt. Return false if none is being answered.

        Other queued prompts are answered only after the next call of `prompt`. `abort` returns within
        `ABORT_S` seconds, whatever the provider does.
        """
        task = self.stop()
        if task is None:
            return False
        await asyncio.wait((task,), timeout=ABORT_S)
        return True

    def stop(self) -> asyncio.Task[None] | None:
        """Cancel the answering of the prompt. Return the task that answers it, which ends soon; None if no
        prompt is being answered."""
        task = self._task
        if task is None or task.done():
            return None
        if task is not self._stopping:
            self._stopping = task
            task.cancel()
        return task

    def give_up(self) -> None:
        """Stop answering the prompt, because its client has left. Waiting prompts of clients that are still
        there are answered next.
        """
        task = self._task
        if task is not None and not task.done() and task is not self._stopping:
            self._is_client_gone = True
            task.cancel()

    async def wait_ended(self) -> None:
        """Wait until no prompt is being answered."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    # --- one prompt after the other -----------------------------------------------------------------------

    async def _run_prompts(self, before: asyncio.Task[None] | None) -> None:
        """Answer the queued prompts one after the other. First wait for the end of `before`, the task that
        answered earlier prompts."""
        session = self._session
        if before is not None:
            # A stopped prompt may still be finishing a step of a compaction.
            await asyncio.wait((before,))
        while session.state.queued:
            if session.operation is not None:
                await session.operation.wait_ended()
            turn_id = next(iter(session.state.queued))
            self.turn_id = turn_id
            self._is_client_gone = False
            acting.set(session.prompters.get(turn_id))
            session.emit(AgentStart(turn_id=turn_id))
            try:
                self.status = "running"
                await self._append_prompt(turn_id)
                self._end(await self._run_turns(turn_id))
            except asyncio.CancelledError:
                self._append_partial()
                if not self._may_go_on():
                    return
            except CompactdError as error:
                self._emit_failure(error.code, error.message)
            except Exception:
                _log.exception("a prompt failed")
                self._emit_failure(-32603, "the agent loop failed; the daemon's log has the cause")
            finally:
                self.status = None
                if turn_id not in session.state.queued:
                    session.prompters.pop(turn_id, None)
            if turn_id in session.state.queued and not self._is_client_gone:
                # The journal refuses writes, so the prompt stays in the queue until the next call of
                # `prompt`.
                return
            if turn_id in session.state.queued:
                session.write(Unqueued(at=session.host.now(), turn_id=turn_id))
                session.prompters.pop(turn_id, None)

    def _may_go_on(self) -> bool:
        """Return whether the next prompt shall be answered after one that was stopped: if that one's client
        has left, and clients of others are still there.
        """
        task = asyncio.current_task()
        waiting = [self._session.prompters.get(turn_id) for turn_id in self._session.state.queued]
        if task is None or task is self._stopping or not self._is_client_gone:
            return False
        if not any(client is not None and client.is_connected for client in waiting):
            return False
        task.uncancel()
        return True

    async def _append_prompt(self, turn_id: str) -> None:
        """Move the prompt from the queue to the conversation. When this returns, the change is on disk."""
        session = self._session
        raw = session.state.queued[turn_id]
        message = decode_message(raw)
        tokens = await self._count(message, len(bytes(raw)))
        now, state = session.host.now(), session.state
        appended = Appended(
            id=state.next_id,
            at=now,
            tokens=(tokens, session.counter.name),
            message=raw,
            parent=state.leaf,
        )
        number = session.write(appended, Unqueued(at=now, turn_id=turn_id), messages=(message,))
        session.pending.add(message)
        client = session.prompters.get(turn_id)
        session.emit(
            MessageAppended(
                entry_id=appended.id,
                role=message.role,
                client=None if client is None else client.name_in(session.id),
                turn_id=turn_id,
            )
        )
        session.emit_usage()
        await session.wait_durable(number)

    def _end(self, stop_reason: str) -> None:
        """Send the event `agent_end`, which ends the prompt."""
        turn_id, self.turn_id = self.turn_id, None
        if turn_id is None:
            return
        usage = self._session.token_usage()
        self._session.emit(
            AgentEnd(
                turn_id=turn_id,
                usage=usage,
                context_window=usage.context_window,
                stop_reason=stop_reason,
            )
        )

    def _emit_failure(self, code: int, message: str) -> None:
        """Send the events that end a prompt which failed: the ends of its answer and turn, and the error."""
        self._end_message("error")
        self._end_turn()
        turn_id, self.turn_id = self.turn_id, None
        if turn_id is not None:
            self._session.emit(AgentError(turn_id=turn_id, code=code, message=message))

    def _append_partial(self) -> None:
        """Append what the model has said so far, marked as aborted, and send the end of the prompt."""
        session, text = self._session, "".join(self._partial)
        self._partial = []
        taken = None
        if text:
            try:
                taken = turns.append_own(
                    session, {"role": "assistant", "content": text, "stop_reason": "aborted"}
                )
            except CompactdError as error:
                _log.warning(
                    "the part of the answer that came before an abort could not be stored: %s", error
                )
        self._end_message("aborted", taken)
        self._end_turn(taken)
        if taken is not None:
            session.emit_appended(taken, turn_id=self.turn_id)
            session.emit_usage()
        if self.turn_id is not None:
            session.emit(AgentAbort(turn_id=self.turn_id))
        self._end("aborted")

    def _start_message(self, turn_id: str) -> None:
        """Send the event `message_start`, which begins an answer."""
        self._is_message_open = True
        self._session.emit(MessageStart(turn_id=turn_id))

    def _end_message(self, stop_reason: str, taken: AppendOutcome | None = None) -> None:
        """Send the event `message_end` if an answer has started. `taken` is the answer as it was appended;
        None if it was not appended."""
        if not self._is_message_open:
            return
        self._is_message_open = False
        answer = None if taken is None else taken.intake.answer
        self._session.emit(
            MessageEnd(
                message=NULL if answer is None else answer,
                stop_reason=stop_reason,
                turn_id=self.turn_id or "",
                entry_id=None if taken is None else taken.answer_id,
            )
        )

    def _end_turn(self, taken: AppendOutcome | None = None) -> None:
        """Send the event `turn_end`, unless it was already sent with the answer."""
        if self._is_turn_open:
            self._is_turn_open = False
            self._session.emit_turn_end(taken, None, self.turn_id)

    async def _count(self, message: Message, size_bytes: int) -> int:
        """Return the tokens of a message. A large one is counted in a worker."""
        session = self._session
        if session.counts_in_worker(size_bytes):
            return await session.host.in_worker(lambda: session.count_message(message))
        return session.count_message(message)

    # --- one prompt ---------------------------------------------------------------------------------------

    async def _run_turns(self, turn_id: str) -> str:
        """Answer one prompt. Return why the model stopped, or `steps` if the limit of model
        requests per prompt was reached."""
        session, limits = self._session, await self._session.host.loop_limits()
        for _ in range(limits.steps):
            # Each request is a new turn, so the rejections of earlier requests do not count.
            session.overflow_attempts = 0
            begun = await turns.begin(session)
            self._is_turn_open = True
            session.emit(TurnStart(turn_id=turn_id))
            finished = await self._request_model(turn_id, begun.max_output_tokens)
            calls, entry_id = await self._append_answer(finished, turn_id)
            if not calls:
                return finished.stop_reason
            await self._run_tools(calls, _Place(turn_id=turn_id, entry_id=entry_id), limits.tool_s)
            if self._is_client_gone or asyncio.current_task() is self._stopping:
                # The client is gone: its calls keep no result, and the next client continues. Or the prompt
                # was aborted just as a tool ended: `wait_for` in Python 3.11 loses such a cancellation.
                raise asyncio.CancelledError
        return "steps"

    async def _request_model(self, turn_id: str, max_output_tokens: int | None) -> Finished:
        """Return the model's answer. If the provider rejects the request, send a smaller one, as often as
        `recover` allows."""
        session, lowered = self._session, 0
        most = output_limit(session, max_output_tokens)
        while True:
            try:
                return await self._stream_answer(turn_id, most)
            except ModelFailed as failed:
                failure = failed.failure
                done = await recover(
                    session,
                    FailedRequest(
                        status=failure.status, code=failure.code, text=failure.text, provider=failure.provider
                    ),
                )
                if not done.retry:
                    if not done.overflow:
                        raise
                    floor = None if done.floor is None else msgspec.structs.asdict(done.floor)
                    standing = session.budget_status()
                    raise CannotFit(
                        done.reason, used=standing.used, window=standing.window, floor=floor
                    ) from None
                if done.compaction is None:
                    lowered += 1
                    if lowered > LOWERED:
                        raise
                most = output_limit(session, done.max_output_tokens)

    async def _stream_answer(self, turn_id: str, max_output_tokens: int | None) -> Finished:
        """Send one request to the model, pass its answer to the client piece by piece, and return the whole
        answer."""
        session = self._session
        await session.host.read_keys()
        provider, model = self._provider()
        request, names = await next_request(session, provider, model, max_output_tokens)
        self._partial = []
        self.status = "streaming"
        self._start_message(turn_id)
        try:
            async with aclosing(provider.stream(request)) as events:
                async for event in events:
                    match event:
                        case TextChunk(text=text):
                            self._partial.append(text)
                            session.emit(MessageDelta(delta=text, turn_id=turn_id))
                        case ThinkingArrived(text=text):
                            session.emit(ThinkingDelta(delta=text, turn_id=turn_id))
                        case Retrying(attempt=attempt, delay_s=delay_s, reason=reason):
                            self._end_message("error")
                            session.emit(
                                Retry(attempt=attempt, delay_s=delay_s, reason=reason, turn_id=turn_id)
                            )
                            self._start_message(turn_id)
                        case Finished():
                            self._partial = []
                            return with_own_names(event, names)
                        case _:
                            pass
        except ModelFailed:
            self._partial = []
            self._end_message("error")
            raise
        finally:
            self.status = "running"
        raise RuntimeError("a provider's stream ended without its last event")

    async def _append_answer(
        self, finished: Finished, turn_id: str
    ) -> tuple[Sequence[ToolCall], EntryId | None]:
        """Append the answer. Return (its tool calls, its entry id).

        An answer without content is not appended; its usage report is still counted.
        """
        session, message = self._session, finished.message
        calls = [block for block in message.content if isinstance(block, ToolCall)]
        raw = Raw(encode_message(message))
        tokens = await self._count(message, len(bytes(raw)))
        read, counts = (((message, raw),), (tokens,)) if message.content else ((), ())
        report = None if finished.usage is None else (finished.usage, True)
        taken = session.append(
            AppendRequest(read=read, tokens=counts, report=report, stop_reason=finished.stop_reason)
        )
        self._end_message(finished.stop_reason, taken)
        self._is_turn_open = False
        turns.emit_end(session, taken, finished.stop_reason, turn_id)
        session.emit_appended(taken, turn_id=turn_id)
        session.emit_usage()
        await session.wait_durable(taken.commit_id)
        if not calls and session.snapshots is not None:
            await session.snapshots.take(session, "end")
        return calls, taken.answer_id

    async def _run_tools(self, calls: Sequence[ToolCall], place: _Place, tool_s: float) -> None:
        """Run all `calls` at the same time, each for at most `tool_s` seconds. When this method returns or
        raises, no call is running any more."""
        self.status = "executing_tools"
        tasks = [asyncio.ensure_future(self._run_tool(call, place, tool_s)) for call in calls]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        self.status = "running"

    async def _run_tool(self, call: ToolCall, place: _Place, tool_s: float) -> None:
        """Let the client run one tool call, and append the result as soon as it arrives."""
        session = self._session
        if not tool_calls.is_runnable(call):
            refused = await tool_calls.refused_outcome(session, call)
            await self._append_result(session.append(refused.new), place, None)
            return
        taken, is_error = None, True
        session.emit(
            ToolExecutionStart(
                call_id=call.call_id, name=call.name, turn_id=place.turn_id, entry_id=place.entry_id
            )
        )
        try:
            outcome = await tool_calls.run_tool_call(session, call, place.turn_id, tool_s)
            if outcome is not None:
                taken, is_error = session.append(outcome.new), outcome.is_error
        finally:
            session.emit(
                ToolExecutionEnd(
                    call_id=call.call_id,
                    name=call.name,
                    is_error=is_error,
                    turn_id=place.turn_id,
                    entry_id=None if taken is None else taken.appended[0][0],
                )
            )
        if taken is None:
            self._is_client_gone = True
            return
        await self._append_result(taken, place, None if outcome is None else outcome.client)

    async def _append_result(self, taken: AppendOutcome, place: _Place, client: ClientRef | None) -> None:
        """Announce a tool result that was appended, and return when it is on disk."""
        session = self._session
        session.emit_appended(taken, client=client, turn_id=place.turn_id)
        session.emit_usage()
        await session.wait_durable(taken.commit_id)

    def _provider(self) -> tuple[Provider, str]:
        """Return (the provider of the session's model, the model's id at this provider)."""
        model = self._session.state.model
        return self._session.host.provider(model.model or "", model.base_url)


def agent_of(session: Session) -> AgentLoop:
    """Return the agent loop of `session`. The first call creates it."""
    agent = session.agent_loop
    if not isinstance(agent, AgentLoop):
        agent = session.agent_loop = AgentLoop(session)
    return agent

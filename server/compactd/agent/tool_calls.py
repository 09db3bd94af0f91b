"""Run one tool call of the agent loop. The client runs the call within a time limit; if that fails, the model
gets the error as the call's result."""

from __future__ import annotations

from functools import partial

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.append import AppendRequest
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import InvalidParams, LimitExceeded
from compactd.protocol.messages import Message, ToolCall
from compactd.session.host import ClientFailed, ClientRef
from compactd.session.reduce import reduce_messages
from compactd.session.session import Session


class ToolParams(Struct, frozen=True, kw_only=True):
    """Params of `tool/execute`, a request from the daemon to the client."""

    session_id: str
    """The session whose prompt is being answered."""
    call_id: str
    """The id of the call, as the model's message names it."""
    name: str
    """The name of the tool."""
    arguments: Raw
    """The arguments: a JSON object, byte for byte as the model wrote it."""
    turn_id: str
    """The prompt that is being answered."""


class ToolAnswer(Struct, frozen=True, kw_only=True):
    """Result of `tool/execute`."""

    content: Raw = Raw(b'""')
    """What the tool returned: text, or blocks."""
    is_error: bool = False
    """True if the tool failed. The model then reads `content` as the error."""


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """The result of a call as a message, ready to be appended."""

    new: AppendRequest
    is_error: bool
    client: ClientRef | None = None
    """The client that gave the result."""


def is_runnable(call: ToolCall) -> bool:
    """Return whether the client can run the call: its arguments are a JSON object."""
    return bytes(call.arguments).lstrip().startswith(b"{")


async def refused_outcome(session: Session, call: ToolCall) -> ToolOutcome:
    """Return the error message that the model gets for a call that is not runnable."""
    answer = _error("The arguments of this call are no JSON object; it was not run. Write it again.")
    return await session.host.in_worker(partial(_outcome, session, call, answer))


async def run_tool_call(session: Session, call: ToolCall, turn_id: str, tool_s: float) -> ToolOutcome | None:
    """Let the client run a call. Return its result, or an error for the model if there is none after `tool_s`
    seconds. With the setting `reduce_loop`, the result is reduced, and must be appended at once.

    Return None if no client is connected any more. O(result), in a worker.
    """
    answered = await _ask_client(session, call, turn_id, tool_s)
    if answered is None:
        return None
    answer, client = answered
    outcome = await session.host.in_worker(partial(_outcome, session, call, answer, client))
    settings = session.resolved.settings
    if not settings.reduce_loop:
        return outcome
    reduced = await reduce_messages(session, outcome.new.read, settings.reduce_level)
    return msgspec.structs.replace(outcome, new=reduced.added_to(outcome.new))


async def _ask_client(
    session: Session, call: ToolCall, turn_id: str, tool_s: float
) -> tuple[ToolAnswer, ClientRef | None] | None:
    """Ask the client that owns the prompt to run a tool call. Return (its answer, or an error text for the
    model if that fails or takes longer than `tool_s`; the client). Return None if no client is left that
    could answer."""
    owner = session.prompters.get(turn_id)
    params = ToolParams(
        session_id=session.id,
        call_id=call.call_id,
        name=call.name,
        arguments=call.arguments,
        turn_id=turn_id,
    )
    try:
        raw, owner = await session.host.ask_client(session.id, owner, "tool/execute", params, tool_s)
        return msgspec.json.decode(raw, type=ToolAnswer), owner
    except ClientFailed as error:
        return None if error.is_gone else (_error(error.message), owner)
    except msgspec.DecodeError as error:
        return _error(f"The client's answer is no tool result: {error}"), owner


def _outcome(
    session: Session, call: ToolCall, answer: ToolAnswer, client: ClientRef | None = None
) -> ToolOutcome:
    """Return the message with the client's answer as the result of `call`. If the answer is invalid, the
    message contains an error instead."""
    try:
        message, raw = _message(call, answer)
    except (InvalidParams, LimitExceeded) as error:
        answer = _error(f"The client's answer is no tool result: {error.message}")
        message, raw = _message(call, answer)
    new = AppendRequest(read=((message, raw),), tokens=(session.count_message(message),))
    return ToolOutcome(new=new, is_error=answer.is_error, client=client)


def _message(call: ToolCall, answer: ToolAnswer) -> tuple[Message, Raw]:
    """Return (a tool message with `answer` as the result of `call`, the same as JSON)."""
    block: dict[str, object] = {
        "type": "tool_result",
        "call_id": call.call_id,
        "name": call.name,
        "content": answer.content,
    }
    if answer.is_error:
        block["is_error"] = True
    raw = Raw(msgspec.json.encode({"role": "tool", "content": [block]}))
    return decode_message(raw), raw


def _error(text: str) -> ToolAnswer:
    """Return an answer that reports an error to the model."""
    return ToolAnswer(content=Raw(msgspec.json.encode(text)), is_error=True)

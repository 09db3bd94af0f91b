"""One tool call of the daemon's own loop: the client runs it, in its time; the model is told of all else."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import InvalidParams, LimitExceeded
from compactd.protocol.messages import Message, ToolCall
from compactd.session.host import ClientFailed
from compactd.session.session import Session


class ToolParams(Struct, frozen=True, kw_only=True):
    """Params of `tool/execute`, daemon to client."""

    session_id: str
    """The session whose prompt is being answered."""
    call_id: str
    """The call's id, as the model's message names it."""
    name: str
    """The tool's."""
    arguments: Raw
    """A JSON object, byte for byte as the model wrote it."""
    turn_id: str
    """The prompt that is being answered."""


class ToolAnswer(Struct, frozen=True, kw_only=True):
    """Result of `tool/execute`."""

    content: Raw = Raw(b'""')
    """Text, or blocks."""
    is_error: bool = False
    """True if the tool failed; the model reads `content` as the error."""


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """The message with a call's result, ready to be appended."""

    message: Message
    raw: Raw
    tokens: int
    is_error: bool


def is_runnable(call: ToolCall) -> bool:
    """Whether the client can be asked to run the call: its arguments are a JSON object."""
    return bytes(call.arguments).lstrip().startswith(b"{")


async def refused_outcome(session: Session, call: ToolCall) -> ToolOutcome:
    """What the model is told of a call that is not runnable."""
    answer = _error("The arguments of this call are no JSON object; it was not run. Write it again.")
    return await session.world.in_worker(lambda: _outcome(session, call, answer))


async def outcome_of(session: Session, call: ToolCall, turn_id: str, tool_s: float) -> ToolOutcome | None:
    """What the client gave back within `tool_s` seconds, or an error for the model; none if there is no
    client any more. O(result), in a worker."""
    answer = await _answer_of(session, call, turn_id, tool_s)
    if answer is None:
        return None
    given = answer
    return await session.world.in_worker(lambda: _outcome(session, call, given))


async def _answer_of(session: Session, call: ToolCall, turn_id: str, tool_s: float) -> ToolAnswer | None:
    params = ToolParams(
        session_id=session.id,
        call_id=call.call_id,
        name=call.name,
        arguments=call.arguments,
        turn_id=turn_id,
    )
    try:
        raw = await session.world.ask_client("tool/execute", params, tool_s)
        return msgspec.json.decode(raw, type=ToolAnswer)
    except ClientFailed as error:
        return None if error.is_gone else _error(error.message)
    except msgspec.DecodeError as error:
        return _error(f"The client's answer is no tool result: {error}")


def _outcome(session: Session, call: ToolCall, answer: ToolAnswer) -> ToolOutcome:
    try:
        message, raw = _message(call, answer)
    except (InvalidParams, LimitExceeded) as error:
        answer = _error(f"The client's answer is no tool result: {error.message}")
        message, raw = _message(call, answer)
    return ToolOutcome(
        message=message, raw=raw, tokens=session.count_message(message), is_error=answer.is_error
    )


def _message(call: ToolCall, answer: ToolAnswer) -> tuple[Message, Raw]:
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
    return ToolAnswer(content=Raw(msgspec.json.encode(text)), is_error=True)

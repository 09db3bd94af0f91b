"""Find what a provider would reject in a request: calls without results, results without calls, wrong roles.

Messages of all formats are first converted to steps (`Step`), which are then judged in the same way. The
rules come from the providers' API references and the texts of their 400 answers, seen 2026-11: Anthropic
"tool_use ids were found without tool_result blocks immediately after", "unexpected tool_use_id found in
tool_result blocks"; OpenAI "An assistant message with 'tool_calls' must be followed by tool messages
responding to each 'tool_call_id'", "messages with role 'tool' must be a response to a preceeding message with
'tool_calls'", "No tool output found for function call", "No tool call found for function call output"; Gemini
"the number of function response parts is equal to the number of function call parts".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Raw, Struct

from compactd_conformance.frames import read
from compactd_conformance.shapes import Context
from compactd_conformance.talk import NeutralMessage, blocks_of

FORMATS = ("neutral", "openai", "openai_responses", "anthropic", "gemini")


class Step(Struct, frozen=True):
    """One message: its role, and the ids of its calls and results. The same type is used for all formats."""

    role: str
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    is_empty: bool = False
    speaks: bool = True
    """Whether the message contains something other than results. After such a message, results of earlier
    calls come too late.
    """


class _Function(Struct, frozen=True):
    name: str = ""


class _Call(Struct, frozen=True):
    id: str = ""


class _Chat(Struct, frozen=True):
    role: str
    content: Raw = Raw(b"null")
    tool_calls: tuple[_Call, ...] = ()
    tool_call_id: str = ""


class _InputItem(Struct, frozen=True):
    type: str = "message"
    role: str = "assistant"
    call_id: str = ""


class _Part(Struct, frozen=True):
    type: str = ""
    id: str = ""
    tool_use_id: str = ""
    functionCall: _Function | None = None  # noqa: N815 - Gemini's name
    functionResponse: _Function | None = None  # noqa: N815


class _Claude(Struct, frozen=True):
    role: str
    content: str | tuple[_Part, ...]


class _Content(Struct, frozen=True):
    role: str
    parts: tuple[_Part, ...]


def steps_of(format: str, messages: Sequence[Raw]) -> tuple[Step, ...]:
    """Return `messages`, which are in the format `format`, as steps."""
    match format:
        case "openai":
            return tuple(_chat(read(raw, _Chat)) for raw in messages)
        case "openai_responses":
            return tuple(_item(read(raw, _InputItem)) for raw in messages)
        case "anthropic":
            return tuple(_claude(read(raw, _Claude)) for raw in messages)
        case "gemini":
            return tuple(_gemini([read(raw, _Content) for raw in messages]))
        case _:
            return tuple(_neutral(read(raw, NeutralMessage)) for raw in messages)


def calls_without_result(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the ids of calls whose result is missing or follows a message that is no result."""
    lost: list[str] = []
    waiting: list[str] = []
    for step in steps:
        waiting = [call for call in waiting if call not in step.results]
        if step.speaks and not (step.calls and step.role == "call"):
            lost += waiting
            waiting = []
        waiting += step.calls
    return (*lost, *waiting)


def results_without_call(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the ids of results without an earlier call. A second result for one call counts as well."""
    orphans: list[str] = []
    waiting: list[str] = []
    for step in steps:
        for one in step.results:
            if one in waiting:
                waiting.remove(one)
            else:
                orphans.append(one)
        waiting += step.calls
    return tuple(orphans)


def wrong_roles(format: str, context: Context) -> tuple[str, ...]:
    """Return one text for each problem that makes a provider reject the request: a wrong role, a wrong order
    of roles, or an empty message.
    """
    steps = steps_of(format, context.messages)
    allowed, alternates, first = _RULES[format]
    found = [f"role {step.role!r} at {at}" for at, step in enumerate(steps) if step.role not in allowed]
    found += [f"message {at} is empty" for at, step in enumerate(steps) if step.is_empty]
    if alternates:
        found += [
            f"two {one.role!r} in a row at {at}"
            for at, (one, other) in enumerate(pairwise(steps))
            if one.role == other.role and one.role in alternates
        ]
    if first and steps and steps[0].role != first:
        found.append(f"the first message is of {steps[0].role!r}")
    return tuple(found)


_RULES: dict[str, tuple[frozenset[str], frozenset[str], str]] = {
    "neutral": (frozenset(("user", "assistant", "tool", "system")), frozenset(), ""),
    "openai": (frozenset(("system", "developer", "user", "assistant", "tool")), frozenset(), ""),
    "openai_responses": (frozenset(("system", "developer", "user", "assistant", "call")), frozenset(), ""),
    # Anthropic merges adjacent messages of one role itself. Gemini rejects adjacent turns of its model.
    "anthropic": (frozenset(("user", "assistant")), frozenset(), "user"),
    "gemini": (frozenset(("user", "model")), frozenset(("model",)), "user"),
}
"""Format -> (allowed roles, roles of which two messages may not be adjacent, the role that must be first)."""


def _neutral(message: NeutralMessage) -> Step:
    blocks = blocks_of(message)
    return Step(
        role=message.role,
        calls=tuple(one.call_id for one in blocks if one.type == "tool_call"),
        results=tuple(one.call_id for one in blocks if one.type == "tool_result"),
        is_empty=not any(one.type != "text" or one.text.strip() for one in blocks),
        speaks=any(one.type not in ("tool_result", "text") or one.text.strip() for one in blocks),
    )


def _chat(message: _Chat) -> Step:
    is_result = message.role == "tool"
    return Step(
        role=message.role,
        calls=tuple(call.id for call in message.tool_calls),
        results=(message.tool_call_id,) if is_result else (),
        is_empty=(bytes(message.content) in (b'""', b"[]") and not is_result)
        or (bytes(message.content) == b"null" and not message.tool_calls),
        speaks=not is_result,
    )


def _item(item: _InputItem) -> Step:
    match item.type:
        case "function_call":
            return Step(role="call", calls=(item.call_id,))
        case "function_call_output":
            return Step(role="call", results=(item.call_id,), speaks=False)
        case "reasoning":
            return Step(role="call", speaks=False)
        case _:
            # Text of the model next to its calls may come after them.
            return Step(role=item.role, speaks=item.role != "assistant")


def _claude(message: _Claude) -> Step:
    parts = () if isinstance(message.content, str) else message.content
    return Step(
        role=message.role,
        calls=tuple(part.id for part in parts if part.type == "tool_use"),
        results=tuple(part.tool_use_id for part in parts if part.type == "tool_result"),
        is_empty=not message.content,
    )


def _gemini(contents: Sequence[_Content]) -> Iterator[Step]:
    # Gemini matches by position and name: the n-th call of a turn is answered in the next turn.
    turn = 0
    for content in contents:
        called = tuple(part.functionCall.name for part in content.parts if part.functionCall is not None)
        answered = tuple(
            part.functionResponse.name for part in content.parts if part.functionResponse is not None
        )
        results = tuple(f"{turn}.{at} {name}" for at, name in enumerate(answered))
        turn += bool(called)
        yield Step(
            role=content.role,
            calls=tuple(f"{turn}.{at} {name}" for at, name in enumerate(called)),
            results=results,
            is_empty=not content.parts,
        )

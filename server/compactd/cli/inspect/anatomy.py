"""What uses the tokens of a conversation: its parts and its largest entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from compactd.cli.framework.page import plural
from compactd.cli.inspect.context import round_each
from compactd.cli.inspect.markup import clip_to
from compactd.core.authors.authors import USER, author_of, spans_of
from compactd.core.history.entries import is_summary
from compactd.core.history.message_kinds import is_request
from compactd.core.tokens.counting import Counter, ScriptAware, block_tokens, is_encrypted_reasoning
from compactd.core.work.file_operations import arguments_of, is_change, is_search, paths_in
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

PARTS: tuple[str, ...] = (
    "system",
    "tools",
    "mcp_tools",
    "memory_files",
    "summary",
    "user",
    "text",
    "reasoning",
    "calls",
    "results",
)
"""The parts among which a request's tokens are divided: fixed parts, messages, tool calls and results."""

MEMORY_FILE_STARTS = ("# AGENTS.md instructions for", "<user_instructions>")
"""How the texts begin in which Codex gives its model the files AGENTS.md (openai/codex, codex-rs/core/src/
context, read 2026-11)."""

CLAUDE_MEMORY = ("<system-reminder>", "# claudeMd")
"""The beginning of the text in which Claude Code gives its model the files CLAUDE.md, and a heading near it.
Only recorded requests contain this text, not Claude Code's session files (2.1, 2026-11).
"""
MEMORY_HEAD_CHARS = 400

TARGETS = ("command", "cmd", "pattern", "query", "url", "script", "description", "prompt", "name", "task")
"""Names of arguments that say what a tool call is about, if the call names no file. The first of them whose
value is a text counts.
"""

WHAT_CHARS = 200


class MessagePlace(Struct, frozen=True):
    """The position of a message in the whole conversation."""

    number: int
    """The message's number, from 1. 0 for a summary that compactd wrote."""
    turn: int
    """The number of the user's request that the message belongs to, from 1. 0 before the first request."""


class ContextBlock(Struct, frozen=True, kw_only=True):
    """One block of a message, as a user would describe it."""

    kind: str
    """`tool result`, `tool call`, `text`, `thinking`, `user`, `summary`, `memory file`, `image`, `document`
    or `system`."""
    tokens: int
    turn: int
    message: int
    what: str
    note: str = ""
    """For example `failed` or `read 4 times, last in turn 61`."""
    failed: bool = False


class Anatomy(Struct, frozen=True, kw_only=True):
    """What uses the tokens, as this process estimates it, without the daemon."""

    parts: Mapping[str, int]
    """Tokens of each of `PARTS`."""
    largest: tuple[ContextBlock, ...]
    count: int
    """The number of blocks with at least one token. `largest` contains the largest of them."""
    by_message: Mapping[int, int]
    """Message number -> tokens of the message, so that no caller counts the same message again."""


def places_of(messages: Iterable[Message]) -> list[MessagePlace]:
    """Return the number and the turn of each message of a whole conversation, oldest first."""
    places: list[MessagePlace] = []
    turn = 0
    for number, message in enumerate(messages, start=1):
        turn += is_request(message)
        places.append(MessagePlace(number, turn))
    return places


def anatomy_of(
    messages: Sequence[Message],
    places: Sequence[MessagePlace],
    counter: Counter,
    *,
    system_tokens: int = 0,
    tools_tokens: int = 0,
    mcp_tokens: int = 0,
    working_dir: str | None = None,
    most: int = 10,
) -> Anatomy:
    """Return the parts of the context that consists of `messages`, and the `most` largest blocks of these
    messages. O(messages).

    `places`: the place of each message in the whole conversation. `mcp_tokens`: those of `tools_tokens` that
    are tools of MCP servers. Descriptions name files relative to `working_dir`.
    """
    parts = dict.fromkeys(PARTS, 0)
    parts["system"], parts["tools"] = system_tokens, tools_tokens - mcp_tokens
    parts["mcp_tools"] = mcp_tokens
    calls: dict[str, ToolCall] = {}
    reads: dict[str, list[int]] = {}
    found: list[tuple[int, int, Block, Message, MessagePlace, ToolCall | None]] = []
    by_message = dict.fromkeys((place.number for place in places), 0)
    for message, place in zip(messages, places, strict=True):
        for block in message.content:
            tokens = block_tokens(block, counter)
            by_message[place.number] += tokens
            call: ToolCall | None = None
            if isinstance(block, ToolCall):
                calls[block.call_id] = call = block
                for path in _read_by(block):
                    reads.setdefault(path, []).append(place.turn)
            elif isinstance(block, ToolResult):
                call = calls.get(block.call_id)
            parts[part_of(block, message)] += tokens
            found.append((-tokens, len(found), block, message, place, call))
    found.sort(key=lambda one: one[:2])
    return Anatomy(
        parts=parts,
        largest=tuple(
            _entry(-tokens, block, message, place, call, reads, working_dir)
            for tokens, _, block, message, place, call in found[:most]
            if tokens
        ),
        count=sum(one[0] < 0 for one in found),
        by_message=by_message,
    )


def divide(message: Message, tokens: int) -> Mapping[str, int]:
    """Divide the `tokens` of one message among `PARTS`, in proportion to the estimated tokens of its blocks.
    The sum of the parts is `tokens`.
    """
    estimates: dict[str, int] = {}
    for block in message.content:
        part = part_of(block, message)
        estimates[part] = estimates.get(part, 0) + block_tokens(block, ScriptAware())
    whole = max(1, sum(estimates.values()))
    shares = round_each(estimates.values(), lambda done: round(tokens * done / whole))
    return dict(zip(estimates, shares, strict=True))


def description_of(
    message: Message, calls: Mapping[str, ToolCall], working_dir: str | None
) -> tuple[str, str]:
    """Return (kind, description) of a message: the kind of its first block; the beginning of its text, and
    what its tool calls or results are about.

    `calls`: the tool calls before the message, by call id. The description names files relative to
    `working_dir`.
    """
    kind, what = "", ""
    for block in message.content:
        call = block if isinstance(block, ToolCall) else None
        if isinstance(block, ToolResult):
            call = calls.get(block.call_id)
        if not what:
            what = _subject(block, call, working_dir)
        elif call is not None:
            what += f" · {_subject(block, call, working_dir)}"
        kind = kind or _kind_of(block, message)
    return kind or message.role, clip_to(what, WHAT_CHARS)


def part_of(block: Block, message: Message) -> str:
    """Return which of `PARTS` a block belongs to."""
    if isinstance(block, ToolCall):
        return "calls"
    if isinstance(block, ToolResult):
        return "results"
    if is_summary(message):
        return "summary"
    if isinstance(block, Thinking) or (isinstance(block, Opaque) and is_encrypted_reasoning(block)):
        return "reasoning"
    if is_memory_file(block, message):
        return "memory_files"
    return {"system": "system", "user": "user"}.get(message.role, "text")


def is_memory_file(block: Block, message: Message) -> bool:
    """Return whether the block is a text with which the agent, not the user, gives the model the files that
    it always reads, such as AGENTS.md and CLAUDE.md.
    """
    if message.role != "user" or not isinstance(block, Text):
        return False
    text, (start, heading) = block.text, CLAUDE_MEMORY
    is_marked = text.startswith(MEMORY_FILE_STARTS) or (
        text.startswith(start) and heading in text[:MEMORY_HEAD_CHARS]
    )
    return is_marked and (
        author_of(message, block) != USER or not any(span.author == USER for span in spans_of(message, block))
    )


def _entry(
    tokens: int,
    block: Block,
    message: Message,
    place: MessagePlace,
    call: ToolCall | None,
    reads: Mapping[str, Sequence[int]],
    working_dir: str | None,
) -> ContextBlock:
    note, failed = "", False
    if isinstance(block, ToolResult):
        failed = block.is_error
        note = "failed" if failed else _read_again(call, reads) if call is not None else ""
    return ContextBlock(
        kind=_kind_of(block, message),
        tokens=tokens,
        turn=place.turn,
        message=place.number,
        what=clip_to(_subject(block, call, working_dir), WHAT_CHARS),
        note=note,
        failed=failed,
    )


def _kind_of(block: Block, message: Message) -> str:
    match block:
        case ToolCall():
            return "tool call"
        case ToolResult():
            return "tool result"
        case Thinking():
            return "thinking"
        case Opaque() if is_encrypted_reasoning(block):
            return "thinking"
        case Image():
            return "image"
        case Document():
            return "document"
        case _ if is_memory_file(block, message):
            return "memory file"
        case _:
            return (
                "text" if message.role == "assistant" else "summary" if is_summary(message) else message.role
            )


def _read_by(call: ToolCall) -> tuple[str, ...]:
    arguments = arguments_of(call)
    return () if is_search(call.name) or is_change(arguments) else paths_in(arguments)


def _read_again(call: ToolCall, reads: Mapping[str, Sequence[int]]) -> str:
    turns = [turn for path in _read_by(call)[:1] for turn in reads.get(path, ())]
    return f"read {plural(len(turns), 'time')}, last in turn {turns[-1]:,}" if len(turns) > 1 else ""


def _subject(block: Block, call: ToolCall | None, working_dir: str | None) -> str:
    """Return what a block is about. `call`: the block itself if it is a call; the call of a result."""
    if call is not None:
        return f"{call.name} {call_subject(call, working_dir)}"
    if isinstance(block, ToolResult):
        return block.name or "a call that is not in this context"
    return _beginning(block)


def call_subject(call: ToolCall, working_dir: str | None) -> str:
    """Return what a call is about: the file that it names (relative to `working_dir`), its command, or what
    it searches for.
    """
    arguments = arguments_of(call)
    if not is_search(call.name):
        paths = paths_in(arguments)
        if paths:
            return relative_path(paths[0], working_dir)
    for name in TARGETS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value[: 2 * WHAT_CHARS]
    return next((value[: 2 * WHAT_CHARS] for value in arguments.values() if isinstance(value, str)), "")


def relative_path(path: str, working_dir: str | None) -> str:
    """Return `path` relative to the conversation's folder, or unchanged if it is not in that folder."""
    if working_dir and path.startswith(working_dir.rstrip("/") + "/"):
        return path[len(working_dir.rstrip("/")) + 1 :]
    return path


def _beginning(block: Block) -> str:
    match block:
        case Text(text=text) | Thinking(text=text):
            return text[: 4 * WHAT_CHARS]
        case Image(media_type=media_type):
            return media_type
        case Document(media_type=media_type, title=title):
            return title or media_type
        case Opaque() if is_encrypted_reasoning(block):
            return "encrypted: only the provider can read it"
        case _:
            return ""

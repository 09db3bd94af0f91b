"""What a piece of an agent's transcript says: messages, and compactions between them.

The readers of session files (`compactd.formats`) do the work; here stands what they need to know of a piece
without its beginning.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.entries import is_summary
from compactd.formats.agents.claude_code_queue import Between
from compactd.formats.files.session_file import SessionFile
from compactd.integrations.hooks.events import Agent
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Block, Message, Text, ToolCall, ToolResult

MOST_STAYS: Final = 262_144
"""Characters of what an agent keeps beside its summary that are compared."""

MOST_CALLS: Final = 256
"""Whose results did not come yet."""

BOUNDARIES: dict[Agent, tuple[bytes, ...]] = {
    "claude-code": (b'"isCompactSummary":true', b'"isCompactSummary": true'),
    "codex": (b'"type":"compacted"', b'"type": "compacted"'),
    "gemini-cli": (b"<state_snapshot>",),
}
"""What a line holds that tells of a compaction (Claude Code 2.1 and Codex 0.169, seen 2026-11; Gemini CLI
0.61, `chatCompressionService.ts`)."""
ANSWERS: dict[Agent, bytes] = {
    "claude-code": b'"type":"assistant"',
    "codex": b'"role":"assistant"',
    "gemini-cli": b'"type":"gemini"',
}
"""What a line holds in which the model says something."""


_PREFACE: Final = "<session_context>"
"""How the message begins that Gemini CLI puts before every context (0.61, run 2026-11)."""


class Said(Struct, frozen=True):
    """A message."""

    message: Message
    raw: bytes
    """In neutral shape."""


class Compaction(Struct, frozen=True):
    """The agent compacted what came before."""

    summary: str
    stays: str = ""
    """What it kept word for word beside its summary."""
    kept: tuple[str, ...] = ()
    """Ids of messages before it that stayed."""
    first_kept: str = ""
    last_kept: str = ""
    """Where the agent says it so: of the messages that stayed, all from one to the other."""
    id: str = ""
    """Where the agent gives it one."""


Step = Said | Compaction


class Steps(Struct, frozen=True):
    """What a piece of a transcript says."""

    steps: list[Step]
    between: Between | None = None
    """What the next piece has to know of this one."""


def steps_of(agent: Agent, data: bytes, between: Between | None, *, is_last: bool) -> Steps:
    """The steps in `data`, whole lines or one JSON document, oldest first. O(bytes).

    `between` is what the piece before gave. `is_last`: the turn is over, and so is the file for now.
    """
    match agent:
        case "claude-code":
            from compactd.formats.agents import claude_code

            file, between = claude_code.read_piece(data, between, is_last=is_last)
            return Steps(_with_preserved(_plain(file), data), between)
        case "codex":
            from compactd.formats.agents import codex

            return Steps(_with_stays(_plain(codex.read(data)), data))
        case "gemini-cli":
            from compactd.formats.agents import gemini_cli

            return Steps(_with_kept(gemini_cli.read(data), data))


def _plain(file: SessionFile) -> list[Step]:
    return [_step(message, raw) for message, raw in file.messages]


def _step(message: Message, raw: Raw) -> Step:
    if is_summary(message):
        return Compaction(text_of(message), id=message.id or "")
    return Said(message, bytes(raw))


def _with_kept(file: SessionFile, data: bytes) -> list[Step]:
    """With the messages that stayed behind each summary; without the one that Gemini CLI puts before all."""
    steps = [_step(message, raw) for message, raw in file.messages if not _is_preface(message)]
    if not any(isinstance(step, Compaction) for step in steps):
        return steps
    kept = _behind_snapshots(data)
    return [
        msgspec.structs.replace(step, kept=kept.get(step.id, ())) if isinstance(step, Compaction) else step
        for step in steps
    ]


def _is_preface(message: Message) -> bool:
    return message.role == "user" and text_of(message).startswith(_PREFACE)


def _behind_snapshots(data: bytes) -> dict[str, tuple[str, ...]]:
    """By the id of each summary: those of the messages that the new history holds behind it."""
    from compactd.formats.files.lines import records
    from compactd.formats.messages.lenient_json import object_in, objects_in, text_in

    found: dict[str, tuple[str, ...]] = {}
    for _, record in records(data, _pass_over):
        if "$set" not in record or BOUNDARIES["gemini-cli"][0] not in bytes(record["$set"]):
            continue
        try:
            messages = objects_in(object_in(record, "$set"), "messages")
        except CompactdError:
            continue
        for at, message in enumerate(messages):
            if BOUNDARIES["gemini-cli"][0] in msgspec.json.encode(message):
                found[text_in(message, "id")] = tuple(text_in(one, "id") for one in messages[at + 1 :])
                break
    return found


_PRESERVED: Final = b'"preserved'


def _with_preserved(steps: list[Step], data: bytes) -> list[Step]:
    """With the messages that Claude Code kept, as the boundary before each summary tells: all of them, or
    the first and the last (`compactMetadata` of 2.1.205: meawoppl/rust-code-agent-sdks issue 188)."""
    if _PRESERVED not in data or not any(isinstance(step, Compaction) for step in steps):
        return steps
    from compactd.formats.files.lines import records
    from compactd.formats.files.session_file import is_true
    from compactd.formats.messages.lenient_json import object_in, text_in, texts_in

    kept: dict[str, Compaction] = {}
    told = Compaction("")
    for _, record in records(data, _pass_over):
        try:
            if text_in(record, "subtype") == "compact_boundary":
                about = object_in(record, "compactMetadata")
                segment = object_in(about, "preservedSegment")
                told = Compaction(
                    "",
                    kept=texts_in(object_in(about, "preservedMessages"), "uuids"),
                    first_kept=text_in(segment, "headUuid"),
                    last_kept=text_in(segment, "tailUuid"),
                )
            elif is_true(record, "isCompactSummary"):
                kept[text_in(record, "uuid")] = told
                told = Compaction("")
        except CompactdError:
            continue
    return [
        msgspec.structs.replace(step, kept=own.kept, first_kept=own.first_kept, last_kept=own.last_kept)
        if isinstance(step, Compaction) and (own := kept.get(step.id)) is not None
        else step
        for step in steps
    ]


def _with_stays(steps: list[Step], data: bytes) -> list[Step]:
    """With what each of Codex's `compacted` records keeps: users' messages, word for word."""
    stays = _histories(data) if any(isinstance(step, Compaction) for step in steps) else []
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Compaction) and stays:
            step = msgspec.structs.replace(step, stays=stays.pop(0))
        found.append(step)
    return found


def _histories(data: bytes) -> list[str]:
    from compactd.formats.files.lines import records
    from compactd.formats.messages.lenient_json import object_in, objects_in, text_in

    found: list[str] = []
    for _, record in records(data, _pass_over):
        if text_in(record, "type") != "compacted":
            continue
        try:
            items = objects_in(object_in(record, "payload"), "replacement_history")
            texts = [
                text_in(part, "text")
                for item in items
                for part in objects_in(item, "content")
                if "text" in part
            ]
        except CompactdError:
            texts = []
        found.append("\n".join(texts)[:MOST_STAYS])
    return found


def _pass_over(warning: str) -> None:
    """The reader of the messages warns of the same."""


def named(message: Message, calls: dict[str, str]) -> Message:
    """With the names of calls that came in an earlier piece: `calls`, by their ids, which this changes."""
    for block in message.content:
        if isinstance(block, ToolCall) and len(calls) < MOST_CALLS:
            calls[block.call_id] = block.name
    content = [_with_name(b, calls) if isinstance(b, ToolResult) else b for b in message.content]
    if all(new is old for new, old in zip(content, message.content, strict=True)):
        return message
    return msgspec.structs.replace(message, content=tuple(content))


def _with_name(result: ToolResult, calls: dict[str, str]) -> ToolResult:
    name = calls.pop(result.call_id, None)
    if name is None or result.name is not None:
        return result
    return msgspec.structs.replace(result, name=name)


def text_of(message: Message) -> str:
    """The words of a message."""
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


OURS: Final = "[compactd] Facts of this session"
"""How what we put back begins: agents write it into their transcripts again."""
_CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"
"""Around what a hook says, in a user's message of Gemini CLI (0.61, run 2026-11)."""


def without_ours(message: Message) -> Message | None:
    """`message` without what we put back, which is no new thing that was said; none where it is nothing else.
    O(length)."""
    if not any(isinstance(block, Text) and OURS in block.text for block in message.content):
        return message
    content: list[Block] = []
    for block in message.content:
        if isinstance(block, Text) and OURS in block.text:
            rest = _without_ours(block.text)
            if rest:
                content.append(Text(text=rest))
        else:
            content.append(block)
    return msgspec.structs.replace(message, content=tuple(content)) if content else None


def _without_ours(text: str) -> str:
    at = text.index(OURS)
    begin = text.rfind(_CONTEXT, 0, at)
    end = text.find(_CONTEXT_END, at)
    if begin < 0:
        return text[:at].strip()
    return (text[:begin] + (text[end + len(_CONTEXT_END) :] if end >= 0 else "")).strip()


def quotations(back: str) -> str:
    """What is quoted in a text that was put back: without our own words around it."""
    return "\n".join(line for line in back.split("\n") if not line.startswith(("## ", OURS)))

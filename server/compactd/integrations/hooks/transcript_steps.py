"""Parse a piece of an agent's transcript into messages and compactions.

The readers of session files (`compactd.formats`) do the parsing. This module adds what they need to read a
piece without the beginning of the file.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import Raw, Struct

from compactd.core.authors.authors import NOTIFICATION
from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.core.text.summary_format import EXCERPTS
from compactd.formats.agents.claude_code_queue import Between
from compactd.formats.files.session_file import SessionFile
from compactd.integrations.hooks.events import AgentName
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Block, Message, Text, ToolCall, ToolResult

MAX_KEPT_CHARS: Final = 262_144
"""The most characters that are used of the text that Codex keeps in addition to its summary."""

MAX_NAMED_CALLS: Final = 256
"""The most calls that are remembered until their results arrive. The results of further calls get no tool
name.
"""

BOUNDARIES: dict[AgentName, tuple[bytes, ...]] = {
    "claude-code": (b'"isCompactSummary":true', b'"isCompactSummary": true'),
    "codex": (b'"type":"compacted"', b'"type": "compacted"'),
    "gemini-cli": (b"<state_snapshot>",),
}
"""Bytes by which a line that records a compaction is found (Claude Code 2.1 and Codex 0.169, seen 2026-11;
Gemini CLI 0.61, `chatCompressionService.ts`).
"""
ANSWERS: dict[AgentName, bytes] = {
    "claude-code": b'"type":"assistant"',
    "codex": b'"role":"assistant"',
    "gemini-cli": b'"type":"gemini"',
}
"""Bytes by which a line that records an answer of the model is found."""


_PREFACE: Final = "<session_context>"
"""The beginning of the message that Gemini CLI puts before every context (0.61, run 2026-11)."""


class MessageStep(Struct, frozen=True):
    """A message in a transcript."""

    message: Message
    raw: bytes
    """The message in neutral form."""


class CompactionStep(Struct, frozen=True):
    """A compaction in a transcript. It replaced the messages before it by `summary`."""

    summary: str
    stays: str = ""
    """What the agent kept word for word in addition to its summary."""
    kept: tuple[str, ...] = ()
    """Ids of earlier messages that stayed in the context."""
    first_kept: str = ""
    last_kept: str = ""
    """The ids `first_kept` and `last_kept` are the ends of a range of messages that stayed, if the agent
    records a range.
    """
    id: str = ""
    """The compaction's id, if the agent gives it one."""
    is_own: bool = False
    """Whether compactd wrote the summary, in place of the agent's model."""


TranscriptStep = MessageStep | CompactionStep


def steps_of(
    agent: AgentName, data: bytes, between: Between | None, *, is_last: bool
) -> tuple[list[TranscriptStep], Between | None]:
    """Return (the steps in `data`, oldest first; the value to pass as `between` with the next piece of the
    transcript). `data`: whole lines, or one JSON document. O(bytes).

    Only Claude Code's transcripts need a value of `between`. `is_last`: the turn is over, so nothing more is
    written.
    """
    match agent:
        case "claude-code":
            from compactd.formats.agents import claude_code

            file, between = claude_code.read_piece(data, between, is_last=is_last)
            steps = with_own_summaries(_without_frames(_plain(file)), data)
            return _with_preserved(steps, data), between
        case "codex":
            from compactd.formats.agents import codex

            return _with_kept_messages(_plain(codex.read(data)), data), None
        case "gemini-cli":
            from compactd.formats.agents import gemini_cli

            return _with_kept(gemini_cli.read(data), data), None


_OWN_SUMMARY: Final = b'"subtype":"compact_boundary"'


def with_own_summaries(steps: list[TranscriptStep], data: bytes) -> list[TranscriptStep]:
    """Return `steps` of a Claude Code transcript, with each summary of compactd as a compaction. It directly
    follows the record of the boundary, and has no `isCompactSummary` (2.1.287 to 2.1.332, run 2026-11).
    O(bytes).
    """
    if _OWN_SUMMARY not in data:
        return steps
    from compactd.core.text.summary_format import LEAD
    from compactd.formats.files.json_lines import records
    from compactd.formats.files.session_file import text_field

    boundary, own = "", set[str]()
    for _, record in records(data, _ignore):
        if text_field(record, "subtype") == "compact_boundary":
            boundary = text_field(record, "uuid") or ""
        elif boundary and text_field(record, "parentUuid") == boundary:
            own.add(text_field(record, "uuid") or "")
            boundary = ""
    return [
        CompactionStep(text, id=step.message.id or "", is_own=True)
        if isinstance(step, MessageStep)
        and step.message.id in own
        and step.message.meta is not None
        and step.message.meta.synthetic
        and (text := join_text_blocks(step.message.content)).startswith(LEAD)
        else step
        for step in steps
    ]


def _plain(file: SessionFile) -> list[TranscriptStep]:
    return [_step(message, raw) for message, raw in file.messages]


def _without_frames(steps: list[TranscriptStep]) -> list[TranscriptStep]:
    """Return `steps`, with only the model's words in each summary of Claude Code."""
    from compactd.integrations.hooks.agent_summary import without_frame

    return [
        msgspec.structs.replace(step, summary=without_frame(step.summary))
        if isinstance(step, CompactionStep)
        else step
        for step in steps
    ]


def _step(message: Message, raw: Raw) -> TranscriptStep:
    if is_summary(message):
        return CompactionStep(join_text_blocks(message.content), id=message.id or "")
    return MessageStep(message, bytes(raw))


def _with_kept(file: SessionFile, data: bytes) -> list[TranscriptStep]:
    """Return the steps of Gemini CLI's `file`. Each compaction has the ids of the messages that stayed. The
    message that Gemini CLI puts before every context is left out.
    """
    steps = [_step(message, raw) for message, raw in file.messages if not _is_preface(message)]
    if not any(isinstance(step, CompactionStep) for step in steps):
        return steps
    kept = _ids_after_snapshots(data)
    return [
        msgspec.structs.replace(step, kept=kept.get(step.id, ()))
        if isinstance(step, CompactionStep)
        else step
        for step in steps
    ]


def _is_preface(message: Message) -> bool:
    return message.role == "user" and join_text_blocks(message.content).startswith(_PREFACE)


def _ids_after_snapshots(data: bytes) -> dict[str, tuple[str, ...]]:
    """Return summary id -> ids of the messages that stayed, for each compaction that Gemini CLI recorded in
    `data`. They follow the summary in the new history that it writes.
    """
    from compactd.formats.files.json_lines import records
    from compactd.formats.messages.lenient_json import object_in, objects_in, text_in

    found: dict[str, tuple[str, ...]] = {}
    for _, record in records(data, _ignore):
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


def _with_preserved(steps: list[TranscriptStep], data: bytes) -> list[TranscriptStep]:
    """Return `steps`, with the ids of the messages that Claude Code kept added to each compaction. They come
    from the `compact_boundary` record before the summary.

    The record names all of these messages, or the first and the last (`compactMetadata` of 2.1.205:
    meawoppl/rust-code-agent-sdks issue 188).
    """
    if _PRESERVED not in data or not any(isinstance(step, CompactionStep) for step in steps):
        return steps
    from compactd.formats.files.json_lines import records
    from compactd.formats.files.session_file import is_true
    from compactd.formats.messages.lenient_json import object_in, text_in, texts_in

    kept: dict[str, CompactionStep] = {}
    told = CompactionStep("")
    for _, record in records(data, _ignore):
        try:
            if text_in(record, "subtype") == "compact_boundary":
                about = object_in(record, "compactMetadata")
                segment = object_in(about, "preservedSegment")
                told = CompactionStep(
                    "",
                    kept=texts_in(object_in(about, "preservedMessages"), "uuids"),
                    first_kept=text_in(segment, "headUuid"),
                    last_kept=text_in(segment, "tailUuid"),
                )
            elif is_true(record, "isCompactSummary"):
                kept[text_in(record, "uuid")] = told
                told = CompactionStep("")
        except CompactdError:
            continue
    return [
        msgspec.structs.replace(step, kept=own.kept, first_kept=own.first_kept, last_kept=own.last_kept)
        if isinstance(step, CompactionStep) and (own := kept.get(step.id)) is not None
        else step
        for step in steps
    ]


def _with_kept_messages(steps: list[TranscriptStep], data: bytes) -> list[TranscriptStep]:
    """Return `steps`, with the text that Codex kept word for word added to each compaction. It comes from
    Codex's `compacted` record.
    """
    stays = _histories(data) if any(isinstance(step, CompactionStep) for step in steps) else []
    found: list[TranscriptStep] = []
    for step in steps:
        if isinstance(step, CompactionStep) and stays:
            step = msgspec.structs.replace(step, stays=stays.pop(0))
        found.append(step)
    return found


def _histories(data: bytes) -> list[str]:
    from compactd.formats.files.json_lines import records
    from compactd.formats.messages.lenient_json import object_in, objects_in, text_in

    found: list[str] = []
    for _, record in records(data, _ignore):
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
        found.append("\n".join(texts)[:MAX_KEPT_CHARS])
    return found


def _ignore(warning: str) -> None:
    """Ignore a warning, because the reader of the messages gives the same one."""


def with_call_names(message: Message, calls: dict[str, str]) -> Message:
    """Return `message`, with the name of the called tool added to each tool result. The names come from
    `calls` (call id -> name), to which the calls in `message` are added.
    """
    for block in message.content:
        if isinstance(block, ToolCall) and len(calls) < MAX_NAMED_CALLS:
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


RESTORED_ID: Final = "back-"
"""The beginning of the entry id under which the mirror keeps a text that compactd restored."""
RESTORED_LEAD: Final = "[compactd] Facts of this session"
"""The beginning of a text that compactd restored. Agents write the restored text into their transcripts."""
_CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"
"""The tags around the output of a hook in a user's message of Gemini CLI (0.61, run 2026-11)."""


_LAUNCHED: Final = "Async agent launched successfully."
"""The beginning of the result of a call that starts a background agent (Claude Code 2.1.330, run 2026-11)."""
_POINTER: Final = "\nIf you need specific details from before exiting plan mode ("
"""The beginning of a sentence that says where the transcript is (Claude Code 2.1.37, seen 2026-11)."""
_RESULT, _RESULT_END = "<result>", "</result>"
_CALL, _CALL_END = "<tool-use-id>", "</tool-use-id>"
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


def worth_restoring(message: Message) -> Message | None:
    """Return what of `message` is worth restoring after a compaction; None if nothing is. O(length).

    Left out is what an agent's program wrote, such as Claude Code's messages around a command, what Codex
    puts before each context, and the text that compactd restored earlier. What a background agent reported
    is returned as the tool output that it is.
    """
    meta = message.meta
    if message.role == "user" and meta is not None and meta.synthetic and not is_summary(message):
        return _report(message) if meta.author == NOTIFICATION else None
    said = without_restored(message)
    if said is None or said.role == "assistant":
        return said
    return _without_reminders(said) if said.role == "tool" else _without_pointer(said)


def _without_pointer(message: Message) -> Message:
    """Return a user's message without the sentence that Claude Code's program adds to an approved plan."""
    if not any(isinstance(block, Text) and _POINTER in block.text for block in message.content):
        return message
    content: list[Block] = []
    for block in message.content:
        if isinstance(block, Text) and (at := block.text.find(_POINTER)) >= 0:
            end = block.text.find("\n", at + 1)
            rest = block.text[end:] if end >= 0 else ""
            block = msgspec.structs.replace(block, text=f"{block.text[:at].rstrip()}{rest}")
        content.append(block)
    return msgspec.structs.replace(message, content=tuple(content))


def _report(message: Message) -> Message | None:
    """Return the report of a background agent in Claude Code's notification as the result of the call that
    started the agent; None if there is no report.
    """
    text = join_text_blocks(message.content)
    report = _between(text, _RESULT, _RESULT_END).strip()
    if not report or not text.lstrip().startswith("<task-notification"):
        return None
    call_id = _between(text[: text.index(_RESULT)], _CALL, _CALL_END).strip()
    result = ToolResult(call_id=call_id or message.id or "task", content=report)
    return Message(role="tool", content=(result,), id=message.id, created_at=message.created_at)


def _between(text: str, begin: str, end: str) -> str:
    """Return the text after the first `begin` and before the last `end`; empty if one is missing."""
    at, stop = text.find(begin), text.rfind(end)
    return text[at + len(begin) : stop] if 0 <= at < stop else ""


def _without_reminders(message: Message) -> Message | None:
    """Return a tool's message without the sentences that Claude Code's program put into the results."""
    content: list[Block] = []
    for block in message.content:
        if isinstance(block, ToolResult):
            texts = _result_texts(block)
            if any(text.startswith(_LAUNCHED) for text in texts):
                continue
            if any(_REMINDER in text for text in texts):
                kept = "\n".join(rest for text in texts if (rest := _without_reminder(text)))
                content.append(msgspec.structs.replace(block, content=kept))
                continue
        content.append(block)
    if len(content) == len(message.content) and all(
        new is old for new, old in zip(content, message.content, strict=True)
    ):
        return message
    return msgspec.structs.replace(message, content=tuple(content)) if content else None


def _result_texts(result: ToolResult) -> list[str]:
    if isinstance(result.content, str):
        return [result.content]
    return [block.text for block in result.content if isinstance(block, Text)]


def _without_reminder(text: str) -> str:
    """Return `text` without its last reminder, if the text ends with it. A reminder elsewhere may be part of
    a file, which a tool read.
    """
    begin = text.rfind(_REMINDER)
    return text[:begin].rstrip() if begin >= 0 and text.rstrip().endswith(_REMINDER_END) else text


def without_restored(message: Message) -> Message | None:
    """Return `message` without text that compactd restored, because it is not new; None if nothing else
    remains. O(length).
    """
    if not any(isinstance(block, Text) and RESTORED_LEAD in block.text for block in message.content):
        return message
    content: list[Block] = []
    for block in message.content:
        if isinstance(block, Text) and RESTORED_LEAD in block.text:
            rest = _without_restored_lines(block.text)
            if rest:
                content.append(Text(text=rest))
        else:
            content.append(block)
    return msgspec.structs.replace(message, content=tuple(content)) if content else None


def _without_restored_lines(text: str) -> str:
    at = text.index(RESTORED_LEAD)
    begin = text.rfind(_CONTEXT, 0, at)
    end = text.find(_CONTEXT_END, at)
    if begin < 0:
        return text[:at].strip()
    return (text[:begin] + (text[end + len(_CONTEXT_END) :] if end >= 0 else "")).strip()


_MARKS: Final = re.compile(r"^(?:- )?(?:\[e[\d.]+\] )?(?:\(tool\) )?")
"""What precedes the quoted words in a line of a restored text."""
_NUMBER: Final = re.compile(r" \[e[\d.]+\]$")
_TYPED_HEADINGS: Final = ("## Constraints the user set", "## What was asked")
_FOR_TYPED: Final = "The user: "


def quotations(back: str) -> str:
    """Return the quoted lines of the restored text `back`, without compactd's own words around them.

    The words that the user typed are left out, because the mirror carries the messages themselves.
    """
    lines: list[str] = []
    heading = ""
    for line in back.split("\n"):
        if line.startswith("## "):
            heading = line
        elif heading and heading not in _TYPED_HEADINGS and line != EXCERPTS:
            words = _NUMBER.sub("", _MARKS.sub("", line, count=1))
            if not words.startswith(_FOR_TYPED):
                lines.append(words)
    return "\n".join(lines)

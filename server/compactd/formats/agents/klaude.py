"""Read klaude-code's session files (`~/.klaude/projects/<project>/sessions/<id>/events.jsonl`).

The format is defined by inspirepan/klaude-code, `src/klaude_code/session/codec.py` (`{type: class name,
data}`) and `protocol/message.py`, read 2026-11. `first_kept_index` of a `CompactionEntry` is the first event,
counted from 0, that stays in the context. A `RewindEntry` takes back everything from `reverted_from_index`
on.

A `UserMessage` whose `source` is `user` or missing was typed. With the source `bash_mode`, it is a shell
command and its output. Everything that the program attaches (files, memory, skills, reminders) is a
`DeveloperMessage`.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import REMINDER, UNKNOWN
from compactd.formats.files.json_lines import records
from compactd.formats.files.session_file import SessionBuilder, SessionFile, text_field, unix_seconds
from compactd.formats.messages.lenient_json import (
    Given,
    count_in,
    number_in,
    object_in,
    objects_in,
    summary_meta,
    text_in,
)
from compactd.formats.messages.rendering import image_of_url
from compactd.protocol.messages import NULL, Block, Image, Meta, Opaque, Text, Thinking, ToolCall, ToolResult

MESSAGES = (
    "SystemMessage",
    "DeveloperMessage",
    "UserMessage",
    "AssistantMessage",
    "ToolResultMessage",
    "CompactionEntry",
)
_SILENT = (
    "StreamErrorItem",
    "InterruptEntry",
    "TaskFileChangeSummaryEntry",
    "TaskMetadataItem",
    "CacheHitRateEntry",
    "FallbackModelConfigWarnEntry",
    "AwaySummaryEntry",
    "PromptSuggestionEntry",
)


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A record that cannot be read is skipped with a warning. O(bytes)."""
    session = SessionBuilder("klaude")
    starts: list[int] = []
    for number, record in records(data, session.warn):
        starts.append(len(session.messages))
        with session.skipping("line", number):
            _event(session, text_in(record, "type"), object_in(record, "data"), starts)
    return session.finish()


def _event(session: SessionBuilder, kind: str, data: Given, starts: list[int]) -> None:
    id, at = text_field(data, "id"), unix_seconds(text_field(data, "created_at"))
    match kind:
        case "SystemMessage":
            session.add("system", _blocks(data), id=id, created_at=at)
        case "DeveloperMessage":
            meta = Meta(kind="developer", author=REMINDER, synthetic=True)
            session.add("user", _blocks(data), id=id, created_at=at, meta=meta)
        case "UserMessage":
            source = text_in(data, "source") or "user"
            meta_or_none = None
            if source != "user":
                shell = source == "bash_mode"
                meta_or_none = Meta(kind="bash_execution") if shell else Meta(author=UNKNOWN)
            session.add("user", _blocks(data), id=id, created_at=at, meta=meta_or_none)
        case "AssistantMessage":
            usage = object_in(data, "usage")
            _model(session, usage)
            session.add(
                "assistant",
                _blocks(data),
                id=id,
                created_at=at,
                usage=_usage(usage),
                stop_reason=text_field(data, "stop_reason"),
            )
        case "ToolResultMessage":
            session.add("tool", (_result(data),), id=id, created_at=at)
        case "CompactionEntry":
            _summary(session, data, starts, at)
        case "RewindEntry":
            index = count_in(data, "reverted_from_index")
            session.take_back(starts[index] if index < len(starts) else len(session.messages), "rewind")
            _note(session, data, at)
        case "SpawnSubAgentEntry":
            session.count_skipped("sub-agent, whose session is in another file")
        case _ if kind not in _SILENT:
            session.count_skipped(f"record of the unknown type {kind!r}")


def _summary(session: SessionBuilder, data: Given, starts: list[int], at: float | None) -> None:
    index, place = number_in(data, "first_kept_index"), len(session.messages)
    if index is not None and 0 <= index < len(starts) and starts[int(index)] < place:
        session.first_kept[place] = starts[int(index)]
    meta = summary_meta(object_in(data, "details"), "read_files", "modified_files")
    session.summary(text_in(data, "summary"), created_at=at, meta=meta)


def _note(session: SessionBuilder, data: Given, at: float | None) -> None:
    """Add the note that the model wrote for itself when it rewound the session. klaude-code gives the note to
    the model as a reminder (`session.py`, `get_llm_history`, read 2026-11).
    """
    rationale, note = text_in(data, "rationale"), text_in(data, "note")
    if rationale or note:
        meta = Meta(kind="developer", author=REMINDER, synthetic=True)
        text = f"Rewound. Rationale: {rationale}\nSummary: {note}"
        session.add("user", [Text(text=text)], created_at=at, meta=meta)


def _model(session: SessionBuilder, usage: Given) -> None:
    model, provider = text_in(usage, "model_name"), text_in(usage, "provider")
    session.set_model(model, "" if "/" in model else provider)
    session.add_window_evidence("limit", count_in(usage, "context_limit"))


def _usage(usage: Given) -> Raw | None:
    """Convert klaude-code's token counts to a usage report; None if there are none. `input_tokens` includes
    the cache (`protocol/models/usage.py`).
    """
    names = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
    counts = {name: count_in(usage, name) for name in names}
    if not any(counts.values()):
        return None
    limit = count_in(usage, "context_limit")
    return Raw(msgspec.json.encode({**counts, "context_window": limit} if limit else counts))


def _result(data: Given) -> ToolResult:
    text, pictures = text_in(data, "output_text"), _blocks(data)
    return ToolResult(
        call_id=text_in(data, "call_id"),
        name=text_field(data, "tool_name"),
        content=(Text(text=text), *pictures) if pictures else text,
        is_error=text_in(data, "status") in ("error", "aborted"),
    )


def _blocks(data: Given) -> list[Block]:
    blocks: list[Block] = []
    for part in objects_in(data, "parts"):
        match text_in(part, "type"):
            case "text":
                blocks.append(Text(text=text_in(part, "text")))
            case "thinking_text":
                blocks.append(Thinking(text=text_in(part, "text")))
            case "thinking_signature":
                _sign(blocks, part)
            case "tool_call":
                blocks.append(
                    ToolCall(
                        call_id=text_in(part, "call_id"),
                        name=text_in(part, "tool_name"),
                        arguments=part.get("arguments_json", Raw(b'"{}"')),
                    )
                )
            case "image_url":
                blocks.append(image_of_url(text_in(part, "url")))
            case "image_file":
                media_type = text_in(part, "mime_type") or "image/png"
                blocks.append(Image(media_type=media_type, url=f"file://{text_in(part, 'file_path')}"))
            case _:
                blocks.append(Opaque(provider="klaude", raw=Raw(msgspec.json.encode(part))))
    return blocks


def _sign(blocks: list[Block], part: Given) -> None:
    """Add the signature in `part` to the last of `blocks` if that is a thinking block. Otherwise the
    signature belongs to hidden thinking and becomes a block of its own.
    """
    signature = text_in(part, "signature")
    last = blocks[-1] if blocks else None
    if isinstance(last, Thinking) and last.signature is None and last.redacted is None:
        blocks[-1] = Thinking(text=last.text, signature=signature)
    elif part.get("signature", NULL) != NULL:
        blocks.append(Opaque(provider="klaude", raw=Raw(msgspec.json.encode(part))))

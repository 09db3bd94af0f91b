"""Cline's sessions, and those of Roo Code, which began as a copy of it.

Cline's extension keeps `tasks/<id>/api_conversation_history.json`, a list of Anthropic messages
(cline/cline, `src/core/storage/disk.ts`), its SDK and command line `<session>.messages.json`, an object with
the same list, each message with `id`, `ts` and, if a model wrote it, `modelInfo` and `metrics`
(`sdk/packages/core`, fixture session.messages.json). The SDK's summaries have `metadata.kind`
`compaction_summary` (`extensions/context/compaction-shared.ts`), Roo's `isSummary`
(RooCodeInc/Roo-Code, `src/core/condense/index.ts`). All read 2026-11.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.errors import CompactdError, InvalidParams
from compactd.formats.anthropic import read_block
from compactd.formats.documents import opened
from compactd.formats.loose import (
    Given,
    count_in,
    is_list,
    is_object,
    is_text,
    number_in,
    object_in,
    text_in,
    texts_in,
    usage_of,
)
from compactd.formats.parts import NULL, elements, fields, string
from compactd.formats.session_file import Collected, SessionFile, is_true, numbered, text_field
from compactd.messages import Block, Document, Meta, Text, ToolCall, ToolResult


def read(data: bytes) -> SessionFile:
    """The session in `data`. A message that cannot be read is left out with a warning. Raises
    `InvalidParams` where there is no list of messages. Cost: O(bytes)."""
    session = Collected("cline")
    about, messages = opened(data, session.warn, "messages")
    session.session_id = text_field(about, "sessionId")
    session.system_prompt = text_field(about, "system_prompt")
    names: dict[str, str] = {}
    for index, raw in enumerate(messages):
        try:
            _message(session, fields(raw, f"$.messages[{index}]", "a message"), names)
        except CompactdError as error:
            session.warn(f"message {index + 1} was left out: {error.message}")
    return session.finished()


def _message(session: Collected, given: Given, names: dict[str, str]) -> None:
    blocks = _content(given.get("content", NULL))
    at = number_in(given, "ts")
    id, created_at = text_field(given, "id"), at / 1000 if at else None
    if text_in(given, "role") == "assistant":
        names.update((block.call_id, block.name) for block in blocks if isinstance(block, ToolCall))
        _model(session, object_in(given, "modelInfo"))
        if is_true(given, "isSummary"):
            session.summary(_text(blocks), id=id, created_at=created_at)
        else:
            usage = _usage(object_in(given, "metrics"))
            session.add("assistant", blocks, id=id, created_at=created_at, usage=usage)
        return
    if text_in(given, "role") != "user":
        raise InvalidParams("role is user or assistant", "$.role")
    about = object_in(given, "metadata")
    if text_in(about, "kind") == "compaction_summary" or is_true(given, "isSummary"):
        details = object_in(about, "details")
        meta = Meta(
            type="compaction_summary",
            read_files=texts_in(details, "readFiles"),
            modified_files=texts_in(details, "modifiedFiles"),
        )
        session.summary(_text(blocks), id=id, created_at=created_at, meta=meta)
        return
    results = [block for block in blocks if isinstance(block, ToolResult)]
    for place, result in enumerate(results):
        whole = msgspec.structs.replace(result, name=result.name or names.get(result.call_id))
        session.add("tool", (whole,), id=numbered(id, place), created_at=created_at)
    rest = [block for block in blocks if not isinstance(block, ToolResult)]
    session.add("user", rest, id=numbered(id, len(results)), created_at=created_at)


def _content(raw: Raw) -> list[Block]:
    if is_text(raw):
        return [Text(text=string(raw, "$.content"))]
    return [_block(part) for part in elements(raw, "$.content")] if is_list(raw) else []


def _block(raw: Raw) -> Block:
    given = fields(raw, "$.content", "a block") if is_object(raw) else {}
    if text_in(given, "type") == "file":
        return Document(
            media_type="text/plain", title=text_field(given, "path"), text=text_in(given, "content")
        )
    return read_block(raw, "$.content")


def _text(blocks: list[Block]) -> str:
    return "\n\n".join(block.text for block in blocks if isinstance(block, Text))


def _model(session: Collected, given: Given) -> None:
    model = text_in(given, "id") or text_in(given, "modelId")
    provider = text_in(given, "provider") or text_in(given, "providerId")
    if model:
        session.model = model if "/" in model or not provider else f"{provider}/{model}"


def _usage(metrics: Given) -> Raw | None:
    """The SDK's input includes the cache; the extension's stands in `tokens` (seen 2026-07)."""
    tokens = object_in(metrics, "tokens")
    if tokens:
        cached = count_in(tokens, "cached")
        return usage_of(count_in(tokens, "prompt"), count_in(tokens, "completion"), read=cached)
    read, written = count_in(metrics, "cacheReadTokens"), count_in(metrics, "cacheWriteTokens")
    fresh = max(0, count_in(metrics, "inputTokens") - read - written)
    return usage_of(fresh, count_in(metrics, "outputTokens"), read=read, written=written)

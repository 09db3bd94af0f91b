"""Read sessions of Cline and of Roo Code, which started as a copy of it.

Cline's extension keeps `tasks/<id>/api_conversation_history.json`, a list of Anthropic messages (cline/cline,
`src/core/storage/disk.ts`). Its SDK and command line keep `<session>.messages.json`, an object with the same
list; each message has `id`, `ts` and, if a model wrote it, `modelInfo` and `metrics` (`sdk/packages/core`,
fixture session.messages.json). The SDK's summaries have `metadata.kind` `compaction_summary`
(`extensions/context/compaction-shared.ts`), Roo's have `isSummary` (RooCodeInc/Roo-Code,
`src/core/condense/index.ts`). All read 2026-11.

The extensions put tool results into user messages as text blocks: a header `[read_file for 'a.py'] Result:`,
then the result (`src/core/task/tools/utils/ToolResultUtils.ts`). What a person typed is in `<task>`,
`<feedback>`, `<answer>` or `<user_message>` (`src/core/prompts/responses.ts`, `src/core/task/index.ts`). All
other text is the program's. The SDK's user messages are typed unless `metadata.kind` names the program that
wrote them (`sdk/packages/core/src/session/checkpoint-message-filter.ts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import REMINDER, SUBAGENT, TOOL, TYPED_TAGS, UNKNOWN, author_of_wrapped
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.documents import open_document
from compactd.formats.files.session_file import (
    FileRequest,
    SessionBuilder,
    SessionFile,
    is_true,
    message_id,
    text_field,
)
from compactd.formats.messages.anthropic import read_block
from compactd.formats.messages.json_parts import elements, fields, string
from compactd.formats.messages.lenient_json import (
    Given,
    cost_in,
    count_in,
    is_list,
    is_object,
    is_text,
    number_in,
    object_in,
    read_usage,
    summary_meta,
    text_in,
)
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import (
    NULL,
    Author,
    Block,
    BlockMeta,
    Document,
    Meta,
    Text,
    ToolCall,
    ToolResult,
)

_HEADER: Final = LazyPattern(r"\s*\[(?P<tool>\w+)[^\n]*\] Result:\s*(?P<result>\S)?")
"""The header of a tool's result. The result may follow it in the same text or in the next one."""
_ASKING: Final = ("ask_followup_question", "plan_mode_respond", "attempt_completion")
"""Tools whose result is the user's answer."""
_LEAD: Final = LazyPattern(
    r"\s*(?:"
    r"The user (?:denied|approved) this operation and provided the following [a-z]+:"
    r"|The user provided the following feedback:"
    r"|The user has provided feedback on the results\.[^\n<]*"
    r"|You seem to be having trouble proceeding\. The user has provided the following feedback[^\n<]*:"
    r"|New (?:message to respond to|instructions for task continuation)[^\n]*:"
    r")?\s*"
    rf"<(?:{'|'.join(sorted(TYPED_TAGS))})[\s>]"
)
"""The beginning of a block that contains what a person typed."""
_REMINDERS: Final = (
    "[TASK RESUMPTION]",
    "[ERROR]",
    "[NOTE]",
    "The user approved switching to act mode.",
)
_TYPED_TAGS: Final = tuple(f"<{tag}>".encode() for tag in ("task", "feedback", "answer", "user_message"))


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A message that cannot be read is skipped with a warning. O(bytes).

    Raise `InvalidParams` if there is no list of messages.
    """
    session = SessionBuilder("cline")
    about, messages = open_document(data, session.warn, "messages")
    session.session_id = text_field(about, "sessionId")
    session.system_prompt = text_field(about, "system_prompt")
    names: dict[str, str] = {}
    # The extensions write a list of messages. If the list has none of their tags, another program wrote it.
    wraps = not about and any(tag in data for tag in _TYPED_TAGS)
    for index, raw in enumerate(messages):
        with session.skipping("message", index + 1):
            _message(session, fields(raw, f"$.messages[{index}]", "a message"), names, wraps=wraps)
    return session.finish()


def _message(session: SessionBuilder, given: Given, names: dict[str, str], *, wraps: bool) -> None:
    blocks = _content(given.get("content", NULL))
    at = number_in(given, "ts")
    id, created_at = text_field(given, "id"), at / 1000 if at else None
    if text_in(given, "role") == "assistant":
        names.update((block.call_id, block.name) for block in blocks if isinstance(block, ToolCall))
        session.model = _model(object_in(given, "modelInfo")) or session.model
        place, is_answer = len(session.messages), False
        if is_true(given, "isSummary"):
            session.summary(join_text_blocks(blocks, "\n\n"), id=id, created_at=created_at)
        else:
            usage = _usage(object_in(given, "metrics"))
            session.add("assistant", blocks, id=id, created_at=created_at, usage=usage)
            is_answer = len(session.messages) > place and usage is not None
        _request(session, given, created_at, place, is_answer=is_answer)
        return
    if text_in(given, "role") != "user":
        raise InvalidParams("role must be user or assistant", "$.role")
    about = object_in(given, "metadata")
    if text_in(about, "kind") == "compaction_summary" or is_true(given, "isSummary"):
        meta = summary_meta(object_in(about, "details"), "readFiles", "modifiedFiles")
        session.summary(join_text_blocks(blocks, "\n\n"), id=id, created_at=created_at, meta=meta)
        return
    results = [block for block in blocks if isinstance(block, ToolResult)]
    for place, result in enumerate(results):
        whole = msgspec.structs.replace(result, name=result.name or names.get(result.call_id))
        session.add("tool", (whole,), id=message_id(id, place), created_at=created_at)
    rest: list[Block] = [block for block in blocks if not isinstance(block, ToolResult)]
    by_program = Meta(author=REMINDER, synthetic=True) if text_in(about, "kind") else None
    if wraps:
        rest = _with_authors(rest)
    session.add("user", rest, id=message_id(id, len(results)), created_at=created_at, meta=by_program)


def _with_authors(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks of an extension's user message. Each text that no person typed gets its author."""
    told: list[Block] = []
    tool = ""  # The tool whose result the next text is.
    held: int | None = None  # The number of texts since a header, including the result.
    for block in blocks:
        if not isinstance(block, Text):
            told.append(block)
            continue
        text, asks = block.text, tool in _ASKING
        is_header = not tool and _HEADER.match(text) is not None
        author, tool = _author_of(text, tool)
        if is_header:
            held = 0 if tool else 1
        elif held is not None:
            # What a user adds to a result directly follows the result. Later texts may be parts of the
            # result.
            if author is None and not asks and (held != 1 or "<feedback" not in text):
                author = TOOL
            held += author != REMINDER
        told.append(block if author is None else Text(text=block.text, meta=BlockMeta(author=author)))
    return told


def _author_of(text: str, tool: str) -> tuple[Author | None, str]:
    """Return (the text's author, None for a person; the tool whose result the next text is).

    `tool`: the tool whose result this text is.
    """
    header = _HEADER.match(text)
    if header is not None and not tool:
        tool, is_alone = header["tool"], header["result"] is None
        if is_alone:
            return TOOL, tool
        text = text[header.start("result") :]
    is_typed = _LEAD.match(text) is not None
    if tool:
        by_program: Author = SUBAGENT if tool in ("new_task", "use_subagents") else TOOL
        return None if is_typed and tool in _ASKING else by_program, ""
    if is_typed:
        return None, ""
    if text.lstrip().startswith(_REMINDERS):
        return REMINDER, ""
    return author_of_wrapped(text) or UNKNOWN, ""


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


def _request(session: SessionBuilder, given: Given, at: float | None, place: int, *, is_answer: bool) -> None:
    """Read the request of an answer: its usage report, its model and its cost."""
    metrics = object_in(given, "metrics")
    usage = _usage(metrics)
    if usage is not None:
        session.requests[str(len(session.requests))] = FileRequest(
            usage=usage,
            model=_model(object_in(given, "modelInfo")),
            at=at,
            place=place,
            is_answer=is_answer,
            cost=cost_in(metrics, "cost"),
        )


def _model(given: Given) -> str:
    """Return the name of a model, with its provider if the file names it; empty if there is none."""
    model = text_in(given, "id") or text_in(given, "modelId")
    provider = text_in(given, "provider") or text_in(given, "providerId")
    return model if "/" in model or not provider or not model else f"{provider}/{model}"


def _usage(metrics: Given) -> Raw | None:
    """Convert a message's token counts to a usage report; None if there are none.

    The SDK's input tokens include the cache. The extension's counts are in `tokens` (seen 2026-07).
    """
    tokens = object_in(metrics, "tokens")
    if tokens:
        cached = count_in(tokens, "cached")
        return read_usage(count_in(tokens, "prompt"), count_in(tokens, "completion"), read=cached)
    read, written = count_in(metrics, "cacheReadTokens"), count_in(metrics, "cacheWriteTokens")
    fresh = max(0, count_in(metrics, "inputTokens") - read - written)
    return read_usage(fresh, count_in(metrics, "outputTokens"), read=read, written=written)

"""Read OpenCode's sessions: the output of `opencode export`, one JSON document `{info, messages[{info,
parts}]}`.

The format is defined by anomalyco/opencode (formerly sst/opencode),
`packages/opencode/src/session/message-v2.ts` (`Info`, `Part`, `ToolState`) and `session/index.ts`, read
2026-11. A compaction is a user message with a `compaction` part (`tail_start_id`: the first message that
stayed), then the assistant's answer with `summary: true`. A part of type `tool` is a call and its result.
Times are in milliseconds.

A text part with `synthetic: true` is the program's, also next to typed ones: a referenced file, an agent's
notice, a reminder (`session/prompt.ts`). A `subtask` part contains a command's prompt.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import FILE, SUBAGENT, UNKNOWN
from compactd.formats.files.documents import open_document
from compactd.formats.files.session_file import (
    FileRequest,
    SessionBuilder,
    SessionFile,
    is_true,
    text_field,
)
from compactd.formats.messages.json_parts import fields, first_byte
from compactd.formats.messages.lenient_json import (
    Given,
    cost_in,
    count_in,
    list_in,
    number_in,
    object_in,
    objects_in,
    read_usage,
    text_in,
)
from compactd.formats.messages.rendering import data_url
from compactd.protocol.messages import (
    NULL,
    Author,
    Block,
    BlockMeta,
    Document,
    Image,
    Meta,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_SILENT = ("step-start", "step-finish", "snapshot", "patch", "retry", "agent", "compaction")
"""Parts that no model sees."""
_FILE_FOLLOWS = ("Called the Read tool", "Called the List tool", "Called the list tool")
"""The beginning of a synthetic part that is followed by a file's text, in synthetic parts of its own."""


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A message that cannot be read is skipped with a warning. O(bytes).

    Raise `InvalidParams` if there is no list of messages.
    """
    session = SessionBuilder("opencode")
    about, messages = open_document(data, session.warn, "messages")
    info = object_in(about, "info")
    session.session_id = text_field(info, "id")
    session.title = text_field(info, "title")
    session.working_dir = text_field(info, "directory")
    is_subagents = "parentID" in info
    if is_subagents:
        session.warn("this is the session of a sub-agent; the main agent's session is in another file")
    reverted = text_in(object_in(info, "revert"), "messageID")
    reading = _Reader(session, is_subagents=is_subagents)
    for index, raw in enumerate(messages):
        with session.skipping("message", index + 1):
            given = fields(raw, f"$.messages[{index}]", "a message")
            about_it = object_in(given, "info")
            if reverted and text_in(about_it, "id") == reverted:
                session.warn(f"{len(messages) - index} messages were taken back by a revert")
                break
            reading.message(about_it, [fields(part, "$.parts", "a part") for part in list_in(given, "parts")])
    return session.finish()


def _has_tokens(tokens: Raw) -> bool:
    """Return whether the usage report of an answer counts any token. OpenCode requires the field, so a file
    without a report has zeros.
    """
    return first_byte(tokens) == b"{" and any(digit in bytes(tokens) for digit in b"123456789")


class _Reader:
    def __init__(self, session: SessionBuilder, *, is_subagents: bool = False) -> None:
        self._session = session
        self._is_subagents = is_subagents
        """Whether the prompts were written by another agent."""
        self._starts: dict[str, int] = {}
        self._tail = ""
        """The id of the first message that stayed in the context after the compaction that is being read."""

    def message(self, info: Given, parts: list[Given]) -> None:
        """Read one message and its parts."""
        session = self._session
        id, created_at = text_field(info, "id"), _seconds(object_in(info, "time"), "created")
        self._starts[id or ""] = len(session.messages)
        if text_in(info, "role") == "user":
            model = object_in(info, "model")
            session.set_model(text_in(model, "modelID"), text_in(model, "providerID"))
            marker = next((part for part in parts if text_in(part, "type") == "compaction"), None)
            if marker is not None:
                self._tail = text_in(marker, "tail_start_id")
            meta, blocks = self._with_authors(parts)
            session.add("user", blocks, id=id, created_at=created_at, meta=meta)
            return
        session.set_model(text_in(info, "modelID"), text_in(info, "providerID"))
        path = object_in(info, "path")
        session.working_dir = session.working_dir or text_field(path, "cwd")
        place = len(session.messages)
        if is_true(info, "summary"):
            self._request(info, created_at, place, is_answer=False)
            self._summary(info, parts, id, created_at)
            return
        blocks = [block for part in parts for block in _blocks(part)]
        tokens = info.get("tokens", NULL)
        session.add(
            "assistant",
            blocks,
            id=id,
            created_at=created_at,
            usage=tokens if _has_tokens(tokens) and "error" not in info else None,
            stop_reason=text_field(info, "finish"),
        )
        has_report = len(session.messages) > place and session.messages[place][0].usage is not None
        self._request(info, created_at, place, is_answer=has_report)
        for part in parts:
            if text_in(part, "type") == "tool":
                self._result(part, created_at)

    def _request(self, info: Given, at: float | None, place: int, *, is_answer: bool) -> None:
        """Read the request of an answer: its usage report, its model and its cost. In OpenCode's counts, the
        output does not include reasoning."""
        tokens = object_in(info, "tokens")
        cache, thoughts = object_in(tokens, "cache"), count_in(tokens, "reasoning")
        usage = read_usage(
            count_in(tokens, "input"),
            count_in(tokens, "output") + thoughts,
            read=count_in(cache, "read"),
            written=count_in(cache, "write"),
            reasoning=thoughts,
        )
        if usage is None:
            return
        provider, model = text_in(info, "providerID"), text_in(info, "modelID")
        requests = self._session.requests
        requests[text_in(info, "id") or f"#{len(requests)}"] = FileRequest(
            usage=usage,
            model=f"{provider}/{model}" if provider and model else model,
            at=at,
            place=place,
            is_answer=is_answer,
            cost=cost_in(info, "cost"),
        )

    def _with_authors(self, parts: list[Given]) -> tuple[Meta | None, list[Block]]:
        """Return (meta of a user message, its blocks). Each text that no person typed has its author."""
        blocks: list[Block] = []
        is_file = False
        for part in parts:
            author: Author | None = SUBAGENT if self._is_subagents else None
            kind = text_in(part, "type")
            if kind == "text" and is_true(part, "synthetic"):
                is_file = is_file or text_in(part, "text").startswith(_FILE_FOLLOWS)
                author = FILE if is_file else UNKNOWN
            elif kind == "subtask":
                author = UNKNOWN
            for block in _blocks(part):
                if isinstance(block, Text):
                    blocks.append(Text(text=block.text, meta=author and BlockMeta(author=author)))
                else:
                    blocks.append(block)
        texts = [part for part in parts if text_in(part, "type") == "text"]
        by_program = bool(texts) and all(is_true(part, "synthetic") for part in texts)
        return (Meta(synthetic=True) if by_program else None), blocks

    def _summary(self, info: Given, parts: list[Given], id: str | None, created_at: float | None) -> None:
        texts = [text_in(part, "text") for part in parts if text_in(part, "type") == "text"]
        if "error" in info or not any(texts):
            self._session.count_skipped("compaction that failed")
            return
        kept = self._starts.get(self._tail)
        if self._tail and kept is not None:
            self._session.first_kept[len(self._session.messages)] = kept
        self._tail = ""
        self._session.summary("\n\n".join(texts), id=id, created_at=created_at)

    def _result(self, part: Given, at: float | None) -> None:
        state = object_in(part, "state")
        status = text_in(state, "status")
        if status not in ("completed", "error"):
            return  # The call was still running when the session ended.
        text = text_in(state, "error" if status == "error" else "output")
        pictures = [block for one in objects_in(state, "attachments") for block in _blocks(one)]
        result = ToolResult(
            call_id=text_in(part, "callID"),
            name=text_in(part, "tool"),
            content=(Text(text=text), *pictures) if pictures else text,
            is_error=status == "error",
        )
        done = _seconds(object_in(state, "time"), "end") or at
        self._session.add("tool", (result,), id=text_field(part, "id"), created_at=done)


def _seconds(time: Given, name: str) -> float | None:
    at = number_in(time, name)
    return at / 1000 if at else None


def _blocks(part: Given) -> list[Block]:
    kind = text_in(part, "type")
    match kind:
        case "text":
            return [] if is_true(part, "ignored") else [Text(text=text_in(part, "text"))]
        case "reasoning":
            signature = text_field(object_in(object_in(part, "metadata"), "anthropic"), "signature")
            return [Thinking(text=text_in(part, "text"), signature=signature)]
        case "tool":
            arguments = object_in(part, "state").get("input", Raw(b"{}"))
            return [
                ToolCall(call_id=text_in(part, "callID"), name=text_in(part, "tool"), arguments=arguments)
            ]
        case "file":
            return [_file(part)]
        case "subtask":
            return [Text(text=text_in(part, "prompt"))]
        case _ if kind in _SILENT:
            return []
        case _:
            return [Opaque(provider="opencode", raw=Raw(msgspec.json.encode(part)))]


def _file(part: Given) -> Block:
    media_type, url = text_in(part, "mime"), text_in(part, "url")
    inline = data_url(url)
    data = None if inline is None else inline[1]
    if media_type.startswith("image/"):
        return Image(media_type=media_type, data=data, url=None if data else url)
    title = text_field(part, "filename")
    return Document(media_type=media_type, title=title, data=data, url=None if data else url)

"""Helpers for the writers of session files: splitting messages, times, usage reports, ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.authors.authors import UNKNOWN, USER, author_of, spans, spans_of
from compactd.core.text.message_text import join_text_blocks
from compactd.core.tokens.usage import normalise
from compactd.formats.files.session_file import MessageLine, SessionFile, message_id
from compactd.formats.messages.json_parts import first_byte, json_object, one_line, string
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import (
    Block,
    Image,
    Message,
    Meta,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)

Json = dict[str, object]

NEVER = "1970-01-01T00:00:00.000Z"
"""The time to write if a format requires a time and the real one is unknown. compactd's readers treat `NEVER`
as a missing time."""

WRITER = "compactd"
"""The name of the program in files that compactd writes."""


def split_messages(
    file: SessionFile, *, by_author: bool = False, joined: bool = False
) -> tuple[SessionFile, tuple[int, ...]]:
    """Return (the session with each tool result as a message of its own; for each of its messages, the
    position in `file` of the message from which it was made).

    A user message with tool results becomes one message per result, then one with its other blocks. Their ids
    are made by `session_file.message_id`, as in readers.

    With `by_author`, text that no person typed but that looks typed also becomes a message of its own, for
    formats that can only mark whole messages. With `joined`, this applies to all text that no person typed,
    for formats with one text per message. O(characters of the users' messages).
    """
    lines: list[MessageLine] = []
    origins: list[int] = []
    starts: list[int] = []
    for at, line in enumerate(file.messages):
        starts.append(len(lines))
        for piece in _pieces(line, by_author, joined):
            lines.append(piece)
            origins.append(at)
    starts.append(len(lines))
    first_kept = tuple((starts[place], starts[kept]) for place, kept in file.first_kept)
    pinned = tuple(
        (starts[place], tuple(i for one in places for i in range(starts[one], starts[one + 1])))
        for place, places in file.pinned
    )
    return replace(file, messages=tuple(lines), first_kept=first_kept, pinned=pinned), tuple(origins)


def looks_typed(message: Message, block: Block) -> bool:
    """Return whether `block` is text of a user message that no person typed, but that looks typed.
    O(characters).

    A written file must mark such text. Otherwise a model would obey it as if the user had typed it.
    """
    if message.role != "user" or not isinstance(block, Text) or author_of(message, block) == USER:
        return False
    return any(span.author == USER for span in spans(block.text))


def is_synthetic(message: Message) -> bool:
    """Return whether the message's `meta` says that no person wrote it."""
    return message.meta is not None and message.meta.synthetic


def is_by_program(message: Message) -> bool:
    """Return whether a written file must mark the message as not written by a person. O(characters)."""
    return is_synthetic(message) or any(looks_typed(message, block) for block in message.content)


def _by_author(line: MessageLine, joined: bool) -> Sequence[MessageLine]:
    """Split a user message into messages that the user typed and messages that a program inserted. Messages
    of a program get its `author` and are marked as `synthetic`. Blocks that are not text stay with the text
    before them. `joined` is as in `split_messages`.
    """
    message = line[0]
    is_foreign_in = is_untyped if joined else looks_typed
    foreign = [is_foreign_in(message, block) for block in message.content]
    if all(foreign) or not any(foreign):
        return (line,)
    runs: list[tuple[bool, list[Block]]] = []
    for block, is_foreign in zip(message.content, foreign, strict=True):
        if runs and (runs[-1][0] == is_foreign or not isinstance(block, Text)):
            runs[-1][1].append(block)
        else:
            runs.append((is_foreign, [block]))
    made = []
    for at, (is_foreign, blocks) in enumerate(runs):
        meta = message.meta
        if is_foreign:
            marked = next(block for block in blocks if isinstance(block, Text))
            author = author_of(message, marked)
            meta = Meta(author=UNKNOWN if author == USER else author, synthetic=True)
        one = replace(message, content=tuple(blocks), id=message_id(message.id, at), meta=meta)
        made.append((one, Raw(encode_message(one))))
    return made


def is_untyped(message: Message, block: Block) -> bool:
    """Return whether `block` is text that contains nothing that a person typed or pasted, judged by its
    author or its form.
    """
    if not isinstance(block, Text):
        return False
    if author_of(message, block) != USER:
        return True
    return bool(block.text) and not any(
        span.author == USER or span.pasted for span in spans_of(message, block)
    )


def _pieces(line: MessageLine, by_author: bool = False, joined: bool = False) -> Sequence[MessageLine]:
    message = line[0]
    if by_author and message.role == "user" and len(message.content) > 1:
        split = _by_author(line, joined)
        if len(split) > 1:
            return [piece for one in split for piece in _pieces(one)]
    results = [block for block in message.content if isinstance(block, ToolResult)]
    if not results or (len(results) == len(message.content) == 1 and message.role == "tool"):
        return (line,)
    rest = tuple(block for block in message.content if not isinstance(block, ToolResult))
    made = [
        replace(message, role="tool", content=(result,), id=message_id(message.id, at), meta=None)
        for at, result in enumerate(results)
    ]
    if rest:
        made.append(replace(message, content=rest, id=message_id(message.id, len(made))))
    return [(one, Raw(encode_message(one))) for one in made]


def iso(at: float | None) -> str:
    """Return Unix seconds as ISO 8601 in UTC, with milliseconds; `NEVER` for None or an impossible time."""
    if at is None:
        return NEVER
    try:
        return datetime.fromtimestamp(round(at, 3), UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    except (OverflowError, ValueError, OSError):
        return NEVER


def millis(at: float | None) -> int:
    """Return Unix seconds as milliseconds; 0 for None."""
    return 0 if at is None else round(at * 1000)


def usage_report(message: Message) -> Usage | None:
    """Return the message's normalised usage report; None if it has none that can be read."""
    if message.usage is None:
        return None
    try:
        return normalise(message.usage)[0]
    except CompactdError:
        return None


def generate_id(file: SessionFile, at: int) -> str:
    """Return a UUID for the message at position `at`. It depends only on the session's id and `at`."""
    digest = sha256(f"{file.session_id}:{at}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def ids_of(file: SessionFile) -> list[str]:
    """Return a unique id for each message: its own, or a generated one. O(messages)."""
    ids: dict[str, None] = {}
    for at, (message, _) in enumerate(file.messages):
        ids[message.id if message.id and message.id not in ids else generate_id(file, at)] = None
    return list(ids)


def session_id_of(file: SessionFile) -> str:
    """Return the session's id, or a generated one."""
    return file.session_id or generate_id(file, -1)


def model_parts(model: str | None) -> tuple[str, str]:
    """Return (provider, id) of a model's name `provider/id`. A part that the name does not
    contain is empty.
    """
    provider, slash, id = (model or "").partition("/")
    return (provider, id) if slash else ("", provider)


def only_result(message: Message) -> ToolResult:
    """Return the only result of a tool message."""
    return next(block for block in message.content if isinstance(block, ToolResult))


def blocks_in(result: ToolResult) -> tuple[Block, ...]:
    """Return the content of a result as blocks."""
    return (Text(text=result.content),) if isinstance(result.content, str) else result.content


def result_text(result: ToolResult) -> str:
    """Return the text of a result."""
    return join_text_blocks(blocks_in(result))


def result_pictures(result: ToolResult) -> list[Image]:
    """Return the images of a result."""
    return [block for block in blocks_in(result) if isinstance(block, Image)]


def arguments_object(call: ToolCall) -> Raw:
    """Return a call's arguments as an object; if they are not one, `{"input": …}`."""
    raw = call.arguments
    if first_byte(raw) == b'"':
        text = string(raw, "$.arguments").strip() or "{}"
        is_object = json_object(text) is not None
        return Raw(text.encode() if is_object else msgspec.json.encode({"input": text}))
    if first_byte(raw) == b"{":
        return raw
    return Raw(b'{"input":%b}' % bytes(raw))


def thinking_of(blocks: Sequence[Block]) -> list[Thinking]:
    """Return the thinking blocks among `blocks`."""
    return [block for block in blocks if isinstance(block, Thinking)]


def calls_of(blocks: Sequence[Block]) -> list[ToolCall]:
    """Return the calls among `blocks`."""
    return [block for block in blocks if isinstance(block, ToolCall)]


def picture_url(image: Image) -> str:
    """Return an image's URL; a `data:` URL if its data is included."""
    return f"data:{image.media_type};base64,{image.data}" if image.data else image.url or ""


def lines_of(records: Sequence[object]) -> bytes:
    """Return `records` encoded as one JSON value per line. A line break in raw JSON becomes a space."""
    return b"".join(one_line(msgspec.json.encode(record)) + b"\n" for record in records)


def without_none(fields: Mapping[str, object]) -> Json:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}

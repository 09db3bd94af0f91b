"""Compare a session with what is read back from a file written from it, and list what was lost, message by
message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import USER, author_of
from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import arguments_object, blocks_in, looks_typed, usage_report
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Message,
    Meta,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
)

_NEAR = 8
"""How many messages of the written file are compared with one message of the session, to find its match."""

Loss = tuple[int | None, str]
"""(position of the message that loses something, or None for the session itself; what is lost)."""


def losses(before: SessionFile, after: SessionFile) -> Iterator[Loss]:
    """Yield what `before` contains and `after` does not, in order. O(messages).

    `before` is the session that was written, `after` the session that was read back from the written file. An
    id or a time that only `after` has is not a loss.
    """
    yield from ((None, what) for what in _about(before, after))
    places: dict[int, int] = {}
    at = 0
    for place, (message, _) in enumerate(before.messages):
        found = _place(message, after, at)
        if found is None:
            yield place, _what(message)
            continue
        at = found + 1
        places[place] = found
        for what in _changed_fields(message, after.messages[found][0]):
            yield place, what
    yield from _kept_losses(before, after, places)


def _about(before: SessionFile, after: SessionFile) -> Iterator[str]:
    # Formats without a place for a system prompt store it as the first message.
    first = after.messages[0][0] if after.messages else None
    prompt = (
        join_text_blocks(first.content)
        if first is not None and first.role == "system"
        else after.system_prompt
    )
    for name, was, comes in (
        ("the session's id", before.session_id, after.session_id),
        ("the title", before.title, after.title),
        ("the model", before.model, after.model),
        ("the working directory", before.working_dir, after.working_dir),
        ("the system prompt", before.system_prompt, prompt),
    ):
        if was and was != comes:
            is_bare = name == "the model" and comes is not None and was.endswith(f"/{comes}")
            yield "the model's provider" if is_bare else name


def _place(message: Message, after: SessionFile, start: int) -> int | None:
    """Return the position in `after` of the message that was written from `message`; None if it is not found
    among the `_NEAR` messages from `start` on.

    A message with the same role, text and call ids is preferred. Otherwise, one with the same role and the
    same call ids is accepted; without calls, one with the same role and the same message id.
    """
    near = range(start, min(start + _NEAR, len(after.messages)))
    key = _key(message)
    same = next((at for at in near if _key(after.messages[at][0]) == key), None)
    if same is not None:
        return same
    return next((at for at in near if _could_be(message, after.messages[at][0])), None)


def _key(message: Message) -> tuple[str, str, tuple[str, ...]]:
    calls = tuple(block.call_id for block in message.content if isinstance(block, ToolCall | ToolResult))
    return message.role, join_text_blocks(message.content), calls


def _could_be(message: Message, other: Message) -> bool:
    if message.role != other.role or is_summary(message) != is_summary(other):
        return False
    mine, theirs = _key(message)[2], _key(other)[2]
    if mine or theirs:
        return mine == theirs
    return message.id is not None and message.id == other.id


def _what(message: Message) -> str:
    if message.role == "system":
        return "a system message between other messages"
    return "the summary" if is_summary(message) else "the message"


def _changed_fields(was: Message, comes: Message) -> Iterator[str]:
    yield from _content_changed(was.content, comes.content)
    if was.id is not None and was.id != comes.id:
        yield "the message's id"
    if was.created_at is not None and not _same_time(was.created_at, comes.created_at):
        yield "the time"
    reported = usage_report(was)
    if reported is not None and reported != usage_report(comes):
        yield "the usage report" if usage_report(comes) is None else "part of the usage report"
    if was.stop_reason is not None and was.stop_reason != comes.stop_reason:
        yield "the stop reason"
    if was.meta is not None:
        yield from _meta_changed(was.meta, comes.meta or Meta())
        if _loses_files(was.meta, comes):
            yield "the files that the summary lists"
    is_marked = was.meta is not None and bool(was.meta.synthetic or was.meta.kind or was.meta.type)
    if not is_marked and _becomes_typed(was, comes):
        yield "that no person wrote part of the message"


def _becomes_typed(was: Message, comes: Message) -> bool:
    """Return whether `comes` has a text of the user that no person typed according to `was`, the message
    before it was written."""
    foreign = {block.text for block in was.content if isinstance(block, Text) and looks_typed(was, block)}
    return bool(foreign) and any(
        isinstance(block, Text) and block.text in foreign and author_of(comes, block) == USER
        for block in comes.content
    )


def _same_time(was: float, comes: float | None) -> bool:
    return comes is not None and abs(was - comes) < 0.002


def _meta_changed(was: Meta, comes: Meta) -> Iterator[str]:
    if was.type != comes.type:
        yield "that the message is a summary"
    if was.synthetic and not comes.synthetic:
        yield "that no person wrote the message"
    if was.kind is not None and was.kind != comes.kind:
        yield f"that the message is of the kind {was.kind}"
    if was.pinned and not comes.pinned:
        yield "that the message is pinned"


def _loses_files(was: Meta, comes: Message) -> bool:
    """Return whether a file of a summary is neither in the list of the summary nor in its text."""
    now, text = comes.meta or Meta(), join_text_blocks(comes.content)
    if (was.read_files, was.modified_files) == (now.read_files, now.modified_files):
        return False
    return any(file not in text for file in (*was.read_files, *was.modified_files))


def _content_changed(was: Sequence[Block], comes: Sequence[Block]) -> Iterator[str]:
    mine, theirs = list(map(_plain, was)), list(map(_plain, comes))
    if mine == theirs:
        return
    if sorted(map(repr, mine)) == sorted(map(repr, theirs)):
        yield "the order of the message's blocks"
        return
    left = [repr(one) for one in theirs]
    told: set[str] = set()
    for block, plain in zip(was, mine, strict=True):
        if repr(plain) in left:
            left.remove(repr(plain))
            continue
        what = _block_lost(block, comes)
        if what not in told:
            told.add(what)
            yield what


def _plain(block: Block) -> object:
    """Return a value that is equal for two blocks with the same content, even if their JSON differs."""
    match block:
        case ToolCall():
            return "call", block.call_id, block.name, _value(arguments_object(block))
        case ToolResult():
            return "result", block.call_id, block.is_error, tuple(map(_plain, blocks_in(block)))
        case Opaque() | Unknown():
            return "opaque", _value(block.raw)
        case Text() | Document():
            return msgspec.structs.replace(block, meta=None)
        case _:
            return block


def _value(raw: Raw) -> object:
    try:
        return repr(msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return bytes(raw)


def _block_lost(block: Block, comes: Sequence[Block]) -> str:
    match block:
        case Text():
            is_there = block.text in join_text_blocks(comes)
            return "how the text is split into blocks" if is_there else "part of the text"
        case Thinking():
            same = any(isinstance(one, Thinking) and one.text == block.text for one in comes)
            return "the signature of the thinking" if same else "the thinking"
        case Image():
            return "an image"
        case Document():
            return "a document"
        case ToolCall():
            return "the arguments of the tool call" if _has_call(block, comes) else "a tool call"
        case ToolResult():
            return _result_lost(block, comes)
        case _:
            return "a block that only its provider understands"


def _has_call(call: ToolCall, comes: Sequence[Block]) -> bool:
    return any(isinstance(one, ToolCall) and one.call_id == call.call_id for one in comes)


def _result_lost(result: ToolResult, comes: Sequence[Block]) -> str:
    other = next((one for one in comes if isinstance(one, ToolResult)), None)
    if other is None:
        return "the tool result"
    if _comparable(result) != _comparable(other):
        return "images and other parts of the tool result that are not text"
    return (
        "that the call failed"
        if result.is_error != other.is_error
        else "how the tool result is split into blocks"
    )


def _comparable(result: ToolResult) -> tuple[object, ...]:
    return tuple(_plain(block) for block in blocks_in(result) if not isinstance(block, Text))


def _kept_losses(before: SessionFile, after: SessionFile, places: dict[int, int]) -> Iterator[Loss]:
    """Yield a loss for each summary if `before` and `after` do not keep the same messages in the context next
    to it. `places` maps positions of messages in `before` to positions in `after`."""
    tails, pins = dict(after.first_kept), dict(after.pinned)
    for place, kept in before.first_kept:
        if place in places and tails.get(places[place]) != places.get(kept):
            yield place, "which messages the summary left in the context"
    for place, kept_places in before.pinned:
        if place in places and pins.get(places[place]) != tuple(places.get(one) for one in kept_places):
            yield place, "which older messages the summary left in the context"

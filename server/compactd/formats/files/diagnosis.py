"""Find what is wrong with a recorded session, and build a repaired copy of it.

There are two kinds of findings. Findings of the file are incomplete, damaged or repeated lines and unknown
records, which the reader skips. Findings of the conversation are what a provider would reject, such as
results without calls and impossible roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.core.history.entries import Item, is_summary
from compactd.core.history.projection import Projection, project
from compactd.core.text.message_text import join_text_blocks
from compactd.core.tokens.counting import Chars4
from compactd.formats.agents.opal import LEAD
from compactd.formats.files.messages_file import read
from compactd.formats.files.session_file import MessageLine, SessionFile, has_content
from compactd.formats.messages.base import READABLE
from compactd.formats.messages.neutral_out import encode_message
from compactd.formats.messages.roles import with_roles
from compactd.protocol.messages import Block, Message, Meta, Role, Text, ToolCall, ToolResult

REPAIRS = {
    "missing_result": ("call without result", "the call {call} has no result"),
    "orphan_result": ("orphan result", "the result of {call} has no call before it"),
    "duplicate_result": ("duplicate result", "{call} already has a result"),
    "moved_result": ("late result", "the result of {call} is not directly after it"),
    "renamed_call": ("duplicate call id", "the id {call} was already used"),
    "empty_message": ("empty message", "the message is empty"),
}
"""Kind of `core.history.projection.Repair` -> (name of the finding, what is wrong)."""

_LIKELY_BYTES = 40
"""The minimum number of bytes of a line that is reported as repeated. A shorter line may be repeated on
purpose."""


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One problem of a session file."""

    kind: str
    text: str
    message: int | None = None
    """The number of the message, from 1."""
    line: int | None = None
    """The number of the line, from 1."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """A session and its problems."""

    findings: tuple[Finding, ...]
    """Problems of the file first, then those of the conversation in order."""
    repaired: SessionFile
    """The session without the problems of the conversation."""


def diagnose(data: bytes, file: SessionFile) -> Diagnosis:
    """Return what is wrong with `data`, which was read as `file`. O(bytes)."""
    found, data, file = _in_known_roles(data, file)
    found += _of_file(data, file)
    lines, places = _each_once(file, found)
    items = [Item(entry_id=str(at), body=message, tokens=0) for at, (message, _) in enumerate(lines)]
    projection = project(items, Chars4())
    found += _of_projection(projection, [origin for origin, _ in places], len(lines))
    mended = _rebuild(file, projection, lines, places)
    return Diagnosis(findings=tuple(found), repaired=mended)


def _in_known_roles(data: bytes, file: SessionFile) -> tuple[list[Finding], bytes, SessionFile]:
    """Repair wrong roles in a list of messages. Return (what was wrong, the repaired list, the session that
    was read from the repaired list)."""
    if file.format not in READABLE or not any(" was left out" in warning for warning in file.warnings):
        return [], data, file
    mended, changed = with_roles(data)
    if not changed:
        return [], data, file
    found = [Finding(kind="wrong role", text=what, message=number) for number, what in changed]
    return found, mended, read(mended, file.format)


# --- the file ---------------------------------------------------------------------------------------


def _of_file(data: bytes, file: SessionFile) -> Iterator[Finding]:
    for warning in file.warnings:
        yield Finding(kind=_kind_of(warning), text=warning, line=_line_in(warning))
    if not data[:4096].lstrip().startswith(b"{"):
        return
    seen: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        text = line.strip()
        if len(text) < _LIKELY_BYTES or not text.startswith(b"{"):
            continue
        if file.format == "claude-code" and b'"uuid"' not in text:
            continue  # Claude Code writes records of its own state again whenever it likes.
        first = seen.setdefault(text, number)
        if first != number:
            yield Finding(kind="repeated line", text=f"the same as line {first}", line=number)


def _kind_of(warning: str) -> str:
    if "cut off" in warning:
        return "torn line" if warning.startswith("line") else "torn file"
    if "U+FFFD" in warning:
        return "broken text"
    if "is damaged" in warning or "is not a JSON object" in warning:
        return "damaged line"
    if "role" in warning:
        return "wrong role"
    return "unknown record" if "unknown" in warning else "left out"


def _line_in(warning: str) -> int | None:
    words = warning.replace(":", " ").replace(",", " ").split()
    return int(words[1]) if words[:1] == ["line"] and words[1:2] and words[1].isdigit() else None


# --- the conversation -------------------------------------------------------------------------------

_Place = tuple[int, int]
"""The place of a piece of a message: (the message's position in the file, the piece's position among all
pieces)."""


def _each_once(file: SessionFile, found: list[Finding]) -> tuple[list[MessageLine], list[_Place]]:
    """Return (the messages, the place of each). A message is split if its role may not have all its blocks.
    Repeated summaries, messages and ids are removed. Append what was wrong to `found`.
    """
    lines: list[MessageLine] = []
    places: list[_Place] = []
    ids: set[str] = set()
    summaries: dict[str, int] = {}
    for origin, (message, raw) in enumerate(file.messages):
        number = origin + 1
        text = _text(message)
        is_compaction = file.format == "claude-code" and is_summary(message) and message.id not in ids
        if text and text in summaries and message.role == "user" and not is_compaction:
            first = summaries[text]
            found.append(
                Finding(
                    kind="summary twice",
                    text=f"the same summary as message {first}",
                    message=number,
                )
            )
            continue
        if message.id is not None and message.id in ids:
            if _is_repeated(lines, message):
                told = f"the id {message.id} and its text occur twice"
                found.append(Finding(kind="duplicate message", text=told, message=number))
                continue
            told = f"the id {message.id} occurs twice, with different text"
            found.append(Finding(kind="duplicate id", text=told, message=number))
            message = replace(message, id=None)
            raw = Raw(encode_message(message))
        if message.id is not None:
            ids.add(message.id)
        if not is_summary(message) and _is_unmarked_summary(message, text):
            found.append(
                Finding(
                    kind="summary unmarked",
                    text="this summary is not marked as one, so it looks like a user's request",
                    message=number,
                )
            )
            message = replace(message, meta=Meta(type="compaction_summary"))
            raw = Raw(encode_message(message))
        if is_summary(message) and text:
            summaries[text] = number
        pieces = list(_in_roles(message))
        if len(pieces) != 1 or pieces[0] is not message:
            told = f"a message with the role {message.role} cannot have all the blocks of this one"
            found.append(Finding(kind="wrong role", text=told, message=number))
        for piece in pieces:
            lines.append((piece, raw) if piece is message else (piece, Raw(encode_message(piece))))
            places.append((origin, len(lines) - 1))
    return lines, places


def _is_repeated(lines: Sequence[MessageLine], message: Message) -> bool:
    """Return whether an earlier message in `lines` has the same id and the same content."""
    return any(line[0].id == message.id and line[0].content == message.content for line in lines)


def _is_unmarked_summary(message: Message, text: str) -> bool:
    is_marked = message.meta is not None and (message.meta.type is not None or message.meta.kind is not None)
    return message.role == "user" and not is_marked and text[: len(LEAD)].lower() == LEAD


def _text(message: Message) -> str:
    """Return the text of a message that contains only text; otherwise empty."""
    if not all(isinstance(block, Text) for block in message.content):
        return ""
    return join_text_blocks(message.content).strip()


def _in_roles(message: Message) -> Iterator[Message]:
    """Yield the message, split so that each piece has a role that its blocks can have."""
    runs = [(role, tuple(run)) for role, run in groupby(message.content, lambda b: _role(message.role, b))]
    if len(runs) <= 1 and (not runs or runs[0][0] == message.role):
        yield message
        return
    for number, (role, blocks) in enumerate(runs):
        first = number == 0
        yield replace(
            message,
            role=role,
            content=blocks,
            id=message.id if first else None,
            usage=message.usage if role == "assistant" else None,
            meta=message.meta if role == message.role else None,
        )


def _role(role: Role, block: Block) -> Role:
    match block:
        case ToolCall():
            return "assistant"
        case ToolResult():
            return "tool" if role not in ("user", "tool") else role
        case _:
            return "user" if role == "tool" else role


def _of_projection(projection: Projection, origins: Sequence[int], count: int) -> Iterator[Finding]:
    open_calls = {block.call_id for block in _last_answer(projection, count)}
    for repair in projection.repairs:
        if repair.kind == "missing_result" and repair.call_id in open_calls:
            continue  # The session ended while its calls were running.
        kind, text = REPAIRS.get(repair.kind, (repair.kind, repair.kind))
        place = None if repair.entry_id is None else origins[int(repair.entry_id)] + 1
        yield Finding(kind=kind, text=text.format(call=repair.call_id), message=place)


def _last_answer(projection: Projection, count: int) -> list[ToolCall]:
    """Return the tool calls of the last projected message if it is also the last of the session's `count`
    messages; otherwise an empty list."""
    for projected in reversed(projection.messages):
        if projected.entry_id is not None:
            is_last = int(projected.entry_id) == count - 1
            return [b for b in projected.message.content if isinstance(b, ToolCall)] if is_last else []
    return []


def _rebuild(
    file: SessionFile, projection: Projection, lines: Sequence[MessageLine], places: Sequence[_Place]
) -> SessionFile:
    """Return the session with the repaired messages of `projection`. `first_kept` and `pinned` of the result
    contain the new positions of the messages.
    """
    messages: list[MessageLine] = []
    now: dict[int, int] = {}
    for projected in projection.messages:
        message = projected.message
        if not has_content(message.content) and message.role != "tool":
            continue
        if projected.entry_id is not None:
            at = int(projected.entry_id)
            now.setdefault(places[at][0], len(messages))
            if message == lines[at][0]:
                messages.append(lines[at])
                continue
        messages.append((message, Raw(encode_message(message))))
    return replace(
        file,
        messages=tuple(messages),
        compactions=sum(is_summary(message) for message, _ in messages),
        first_kept=tuple((now[a], now[b]) for a, b in file.first_kept if a in now and b in now),
        pinned=tuple(
            (now[a], tuple(now[b] for b in kept if b in now)) for a, kept in file.pinned if a in now
        ),
        warnings=(),
    )

"""Write a session as aider's chat history (see `aider`). The format has no tool calls and no times: calls are
written as text, and times are left out.
"""

from __future__ import annotations

from compactd.formats.agents.aider import ASKED, LINE_END, SHOWN, STARTED, author_of_prompt
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    is_by_program,
    is_untyped,
    iso,
    result_text,
)
from compactd.formats.messages.rendering import arguments_text
from compactd.protocol.messages import Block, Image, Message, Text, ToolCall, ToolResult


def write(file: SessionFile) -> bytes:
    """Return the session `file` as aider's chat history. O(bytes)."""
    pieces: list[str] = []
    role = ""
    for message, _ in file.messages:
        pieces.append(_message(message, after_answer=role == "assistant"))
        role = message.role
    if not pieces or not pieces[0].startswith(STARTED):
        at = next((message.created_at for message, _ in file.messages if message.created_at), None)
        pieces.insert(0, f"\n{STARTED} at {iso(at)[:19].replace('T', ' ')}\n\n")
    return "".join(pieces).encode("utf-8", "replace")


def _message(message: Message, *, after_answer: bool) -> str:
    text = "\n".join(one for one in map(_text, message.content) if one)
    kind = None if message.meta is None else message.meta.kind
    if message.role == "assistant" or kind == "aider_started":
        return f"{text}\n"
    lines = text.split("\n")
    texts = [block for block in message.content if isinstance(block, Text)]
    by_program = bool(texts) and all(is_untyped(message, block) for block in texts)
    is_foreign = message.role != "user" or by_program or is_by_program(message)
    if is_foreign and author_of_prompt(text) is None:
        return "".join(f"{SHOWN}{line}{LINE_END}\n" if line.strip() else f"{line}\n" for line in lines)
    start = "\n\n" if after_answer else "\n"
    return start + "".join(f"{ASKED}{line}{LINE_END}\n" for line in lines)


def _text(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolCall():
            return f"{block.name} {arguments_text(block.arguments)}"
        case ToolResult():
            return result_text(block)
        case Image():
            return "[image]"
        case _:
            return ""

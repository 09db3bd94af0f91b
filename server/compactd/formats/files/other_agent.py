"""Prepare the messages of one agent's session for the session file of another agent.

- Thinking is left out: its signature is valid only for the provider that wrote it, and providers reject
  thinking without a valid one.
- Messages of the role `developer` are left out: they describe the agent that ran the session, such as its
  sandbox.
- Names and ids of tool calls become such that all providers accept them.
- A text in the user's role that no person typed gets a tag that names its author, unless it has one already.
  A mark that only the file contains would not reach the model, and some files have none. A document that is
  a text becomes such a text, because not all files have documents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.authors.authors import (
    FILE,
    HOOK,
    NOTIFICATION,
    REMINDER,
    SKILL,
    SUBAGENT,
    SUMMARY,
    TOOL,
    author_of,
)
from compactd.core.history.entries import is_summary
from compactd.formats.files.writer_parts import looks_typed
from compactd.formats.messages.rendering import SafeNames
from compactd.protocol.messages import (
    Author,
    Block,
    Document,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

MAX_NAME_CHARS = 64
"""The most characters of a tool's name and of a call's id (OpenAI's and Anthropic's APIs, 2026-11)."""

TAGS: Mapping[Author, str] = {
    FILE: "file_content",
    HOOK: "hook_prompt",
    NOTIFICATION: "task-notification",
    REMINDER: "system-reminder",
    SKILL: "skill_content",
    SUBAGENT: "subagent_result",
    SUMMARY: "context_summary",
    TOOL: "tool_output",
}
"""Author -> the tag for its text. `core/authors` reads the author from the same tags."""
OTHER_TAG = "inserted-text"
"""The tag for a text whose author is unknown."""
DEVELOPER = "developer"


class Prepared(Struct, frozen=True, kw_only=True):
    """Messages that were prepared for another agent."""

    messages: tuple[Message, ...]
    changes: tuple[str, ...]
    """Sentences that say what was changed or left out."""


def prepare_for_other_agent(messages: Sequence[Message]) -> Prepared:
    """Return `messages` as another agent can continue with them. O(characters)."""
    names, ids = SafeNames(MAX_NAME_CHARS), SafeNames(MAX_NAME_CHARS)
    tools: dict[str, str] = {}
    made: list[Message] = []
    thinking = developer = tagged = 0
    for message in messages:
        if message.meta is not None and message.meta.kind == DEVELOPER:
            developer += 1
            continue
        blocks: list[Block] = []
        for block in message.content:
            match block:
                case Thinking():
                    thinking += 1
                case ToolCall():
                    tools[block.call_id] = names.of(block.name)
                    blocks.append(replace(block, call_id=ids.of(block.call_id), name=tools[block.call_id]))
                case ToolResult():
                    name = tools.get(block.call_id) or (names.of(block.name) if block.name else None)
                    blocks.append(replace(block, call_id=ids.of(block.call_id), name=name))
                case Document(text=str() as text) if message.role == "user":
                    tagged += 1
                    words = f"{block.title}\n{text}" if block.title else text
                    blocks.append(Text(text=_in_tag(words, author_of(message, block))))
                case Text() if not is_summary(message) and looks_typed(message, block):
                    tagged += 1
                    blocks.append(replace(block, text=_in_tag(block.text, author_of(message, block))))
                case _:
                    blocks.append(block)
        if blocks or not message.content:
            made.append(replace(message, content=tuple(blocks)))
    changes = (
        f"not kept: the model's thinking ({_count(thinking, 'part')})" if thinking else "",
        f"not kept: what the agent told its model about itself ({_count(developer, 'message')})"
        if developer
        else "",
        f"in tags that name the author: {_count(tagged, 'text')} in the user's role that no person typed"
        if tagged
        else "",
    )
    return Prepared(messages=tuple(made), changes=tuple(one for one in changes if one))


def _in_tag(text: str, author: Author) -> str:
    """Return `text` in a tag for `author`. The text cannot close the tag."""
    tag = TAGS.get(author, OTHER_TAG)
    inner = re.sub(rf"[<＜](?=\s*[/／]\s*{tag})", "&lt;", text, flags=re.IGNORECASE)
    return f"<{tag}>\n{inner}\n</{tag}>"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

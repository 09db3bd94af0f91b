"""A request in Anthropic's shape (`/v1/messages`).

The rules (Anthropic's API reference, "Create a message", its tool use and extended thinking guides, and its
error texts): the system prompt stands apart; roles alternate, the first is user's; the results of an
assistant's `tool_use` blocks come first in the next message; no text is empty or only white space, and the
last assistant's does not end in it; thinking goes back with its signature, comes first, and is never the last
block; an id matches `^[a-zA-Z0-9_-]+$`; the content of an error result is not empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.core.projection import Projection
from compactd.formats.anthropic_blocks import (
    ASSISTANT_BLOCKS,
    Json,
    result_blocks,
    text_block,
    text_blocks,
    thinking_blocks,
    user_blocks,
)
from compactd.formats.rendering import (
    Rendered,
    SafeNames,
    arguments_object,
    encode,
    object_schema,
    own_block,
    text_of,
)
from compactd.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

CONTINUES = "(conversation continues)"
"""The user message before an assistant's that would be the first."""

_LONGEST_ID = 64
_LONGEST_NAME = 128

_THINKING = ("thinking", "redacted_thinking")


def render(system: str | None, tools: Sequence[Tool], projection: Projection) -> Rendered:
    """The request as Anthropic's API takes it. Cost: O(bytes)."""
    names = SafeNames(_LONGEST_NAME, (tool.name for tool in tools))
    written = _Written(names)
    messages = [projected.message for projected in projection.messages]
    leading = _leading_system(messages)
    for message in messages[len(leading) :]:
        written.add(message)
    prompts = [prompt for prompt in (system or "", *leading) if prompt and not prompt.isspace()]
    return Rendered(
        system="\n\n".join(prompts) or None,
        messages=written.messages(),
        tools=[_tool(tool, names) for tool in tools] or None,
    )


def _tool(tool: Tool, names: SafeNames) -> Raw:
    given: Json = {"name": names.of(tool.name)}
    if tool.description:
        given["description"] = tool.description
    given["input_schema"] = object_schema(tool.input_schema)
    return Raw(encode(given))


def _leading_system(messages: Sequence[Message]) -> list[str]:
    """The texts of the system messages that come before anything else: they join the system prompt."""
    texts: list[str] = []
    for message in messages:
        if message.role != "system" or not all(isinstance(block, Text) for block in message.content):
            break
        texts.append("\n".join(text_of(block) for block in message.content))
    return texts


class _Turn:
    """Neighbouring messages of one role, merged. Results are kept apart: they go first."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.results: list[Json] = []
        self.blocks: list[Json | Raw] = []

    def content(self, is_last: bool) -> list[Json | Raw]:
        if self.role == "user":
            return [*self.results, *self.blocks]
        blocks = _without_misplaced_thinking(self.blocks)
        return _without_trailing_space(blocks) if is_last else blocks


class _Written:
    """The turns so far, and the pictures an assistant's message held: only a user's may."""

    def __init__(self, names: SafeNames) -> None:
        self._turns: list[_Turn] = []
        self._names = names
        self._ids = SafeNames(_LONGEST_ID)
        self._waiting: list[Json | Raw] = []

    def add(self, message: Message) -> None:
        if message.role == "assistant":
            blocks = [block for each in message.content for block in self._assistant_blocks(each)]
            if blocks:
                self._turn("assistant").blocks.extend(blocks)
            return
        results = [self._result(block) for block in message.content if isinstance(block, ToolResult)]
        rest = [block for each in message.content for block in user_blocks(each)]
        if message.role == "system":
            rest = _in_system_tags(rest)
        if results or rest:
            turn = self._turn("user")
            turn.results.extend(results)
            turn.blocks.extend(rest)

    def messages(self) -> list[Raw]:
        if self._waiting:
            self._turn("user")
        turns = [turn for turn in self._turns if turn.role == "user" or turn.content(is_last=False)]
        merged: list[_Turn] = []
        for turn in turns:
            if merged and merged[-1].role == turn.role:
                merged[-1].results.extend(turn.results)
                merged[-1].blocks.extend(turn.blocks)
            else:
                merged.append(turn)
        if merged and merged[0].role == "assistant":
            first = _Turn("user")
            first.blocks.append(text_block(CONTINUES))
            merged.insert(0, first)
        return [
            Raw(encode({"role": turn.role, "content": turn.content(is_last=turn is merged[-1])}))
            for turn in merged
        ]

    def _turn(self, role: str) -> _Turn:
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(_Turn(role))
        turn = self._turns[-1]
        if role == "user" and self._waiting:
            turn.blocks.extend(self._waiting)
            self._waiting = []
        return turn

    def _assistant_blocks(self, block: Block) -> list[Json | Raw]:
        match block:
            case ToolCall():
                return [
                    {
                        "type": "tool_use",
                        "id": self._ids.of(block.call_id),
                        "name": self._names.of(block.name),
                        "input": arguments_object(block.arguments),
                    }
                ]
            case Thinking():
                return thinking_blocks(block)
            case Image() | Document():
                self._waiting.extend(user_blocks(block))
                return []
            case Opaque() | Unknown():
                own = own_block(block, "anthropic", ASSISTANT_BLOCKS)
                return [own] if own is not None else text_blocks(block)
            case _:
                return text_blocks(block)

    def _result(self, result: ToolResult) -> Json:
        given: Json = {"type": "tool_result", "tool_use_id": self._ids.of(result.call_id)}
        content: str | list[Json | Raw]
        if isinstance(result.content, str):
            content = "" if result.content.isspace() else result.content
        else:
            content = [block for each in result.content for block in result_blocks(each)]
        if result.is_error:
            # "content cannot be empty if `is_error` is true" (400, Messages API)
            given["content"] = content or "[error without output]"
            given["is_error"] = True
        elif content:
            given["content"] = content
        return given


def _without_misplaced_thinking(blocks: list[Json | Raw]) -> list[Json | Raw]:
    """`blocks` with their thinking where it may stand, or without it.

    "If an assistant message contains any thinking blocks, the first block must be `thinking`" and "The final
    block in an assistant message cannot be `thinking`" (400, Messages API, seen 2025-12 and 2026-01).
    """
    thinks = [isinstance(block, dict) and block["type"] in _THINKING for block in blocks]
    if not any(thinks):
        return blocks
    if not thinks[0]:
        return [block for block, is_thinking in zip(blocks, thinks, strict=True) if not is_thinking]
    end = len(blocks)
    while end and thinks[end - 1]:
        end -= 1
    return blocks[:end]


def _without_trailing_space(blocks: list[Json | Raw]) -> list[Json | Raw]:
    """`blocks`, the last text without white space at its end."""
    # "final assistant content cannot end with trailing whitespace" (400, Messages API)
    last = blocks[-1] if blocks else None
    if isinstance(last, dict) and last["type"] == "text":
        return [*blocks[:-1], text_block(str(last["text"]).rstrip())]
    return blocks


def _in_system_tags(blocks: list[Json | Raw]) -> list[Json | Raw]:
    texts = [str(block["text"]) for block in blocks if isinstance(block, dict) and block["type"] == "text"]
    others = [block for block in blocks if not (isinstance(block, dict) and block["type"] == "text")]
    if not texts:
        return others
    return [text_block("\n".join(("<system-message>", *texts, "</system-message>"))), *others]

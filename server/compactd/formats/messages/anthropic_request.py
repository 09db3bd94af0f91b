"""Render a request in Anthropic's format (`/v1/messages`).

The rules come from Anthropic's API reference ("Create a message"), its guides to tool use and extended
thinking, and its error messages:

- The system prompt is separate. Roles alternate, and the first is the user's.
- The results of an assistant's `tool_use` blocks come first in the next message.
- No text is empty or only white space, and the last assistant text does not end in white space.
- Thinking is sent back with its signature. It is the first block of an answer, and never the last.
- An id matches `^[a-zA-Z0-9_-]+$`. The content of an error result is text and not empty.
- A call of Anthropic's own tools comes with its result.
- Claude 4.6 and later require a user message at the end.
- A summary by Anthropic's own compaction needs a beta header. One with a signature is the first block of the
  request. There is at most one with content (`provider_summary.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw, Struct

from compactd.core.history.projection import Projected, Projection
from compactd.formats.messages.anthropic_blocks import (
    ASSISTANT_BLOCKS,
    BETA_HEADER,
    ON_DEMAND_BETA,
    THRESHOLD_BETA,
    compaction_block,
    opaque_block,
    opaque_thinking,
    result_blocks,
    text_block,
    text_blocks,
    thinking_blocks,
    user_blocks,
)
from compactd.formats.messages.json_parts import fields
from compactd.formats.messages.provenance import ANTHROPIC, may_send_back, refuses_prefill
from compactd.formats.messages.rendering import (
    CONTINUES,
    ERROR_WITHOUT_OUTPUT,
    Json,
    Rendered,
    SafeNames,
    arguments_object,
    encode,
    from_result,
    joined_prompts,
    leading_system,
    object_schema,
    provider_block,
    string_field,
    system_message_text,
)
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Opaque,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

_MAX_ID_CHARS = 64
_MAX_NAME_CHARS = 128

_THINKING = ("thinking", "redacted_thinking")


def render(
    system: str | None,
    tools: Sequence[Tool],
    projection: Projection,
    model: str | None = None,
    *,
    to_compact: bool = False,
) -> Rendered:
    """Return the request in Anthropic's format, for `model` if it is known. With `to_compact`, it is a
    request for a summary, which may end with an answer. O(bytes)."""
    names = SafeNames(_MAX_NAME_CHARS, (tool.name for tool in tools))
    leading = leading_system([projected.message for projected in projection.messages])
    rest = projection.messages[len(leading) :]
    own = rest[0].instead if rest else None
    kept = _Compactions((), has_signed=True) if own is not None else _kept_compactions(rest)
    written = _RequestBuilder(names, model, kept.blocks)
    for projected in rest if own is None else rest[1:]:
        written.add(projected)
    messages = written.messages(starts_with_summary=kept.has_signed, may_end_with_answer=to_compact)
    if own is not None:
        messages.insert(0, Raw(b'{"role":"assistant","content":' + bytes(own) + b"}"))
    return Rendered(
        system=joined_prompts(system, leading),
        messages=messages,
        tools=[_tool(tool, names) for tool in tools] or None,
        names=names.made_names(),
        headers=kept.headers(),
    )


class _Compactions(Struct, frozen=True):
    """The summaries by Anthropic's own compaction, in the client's messages, that stay in the request."""

    blocks: tuple[Block, ...]
    has_signed: bool
    """Whether the request starts with one that has a signature."""

    def headers(self) -> dict[str, str]:
        """Return the headers that the request needs."""
        if self.has_signed:
            return {BETA_HEADER: ON_DEMAND_BETA}
        return {BETA_HEADER: THRESHOLD_BETA} if self.blocks else {}


def _kept_compactions(messages: Sequence[Projected]) -> _Compactions:
    """Return which summaries stay: the last one without a signature, and those that say nothing. Without any,
    one with a signature stays if it is the first block. Everything that another one stands for is in the
    request."""
    first = messages[0].message.content[:1] if messages and messages[0].message.role == "assistant" else ()
    signed: tuple[Block, ...] = ()
    plain: list[Block] = []
    empty: list[Block] = []
    for projected in messages:
        for block in projected.message.content:
            found = compaction_block(block) if isinstance(block, Opaque | Unknown) else None
            if found is None:
                continue
            if not found.content:
                empty.append(block)
            elif not found.signature:
                plain.append(block)
            elif first and block is first[0]:
                signed = (block,)
    if signed and not plain:
        return _Compactions(signed, has_signed=True)
    return _Compactions((*plain[-1:], *empty), has_signed=False)


def _tool(tool: Tool, names: SafeNames) -> Raw:
    given: Json = {"name": names.of(tool.name)}
    if tool.description:
        given["description"] = tool.description
    given["input_schema"] = object_schema(tool.input_schema)
    return Raw(encode(given))


class _Turn:
    """Adjacent messages of one role, merged. Tool results are kept apart from other blocks, because they come
    first in the request."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.results: list[Json] = []
        self.blocks: list[Json | Raw] = []

    def content(self, is_last: bool) -> list[Json | Raw]:
        if self.role == "user":
            return [*self.results, *self.blocks]
        blocks = _without_misplaced_thinking(_in_pairs(self.blocks, is_last))
        return _without_trailing_space(blocks) if is_last else blocks


class _RequestBuilder:
    """A request under construction: the turns so far, and the images and documents of an assistant's message,
    which wait until a user message can contain them."""

    def __init__(self, names: SafeNames, model: str | None, compactions: Sequence[Block]) -> None:
        self._turns: list[_Turn] = []
        self._compactions = compactions
        self._names = names
        self._model = model
        self._ids = SafeNames(_MAX_ID_CHARS)
        self._waiting: list[Json | Raw] = []

    def add(self, projected: Projected) -> None:
        message = projected.message
        if message.role == "assistant":
            is_own = may_send_back(ANTHROPIC, projected.model, self._model)
            blocks = [block for each in message.content for block in self._assistant_blocks(each, is_own)]
            if blocks:
                self._turn("assistant").blocks.extend(blocks)
            return
        results: list[Json] = []
        rest: list[Json | Raw] = []
        for block in message.content:
            if isinstance(block, ToolResult):
                result, beside = self._result(block)
                results.append(result)
                rest.extend(beside)
        said = [block for each in message.content for block in user_blocks(each)]
        rest.extend(_in_system_tags(said) if message.role == "system" else said)
        if results or rest:
            turn = self._turn("user")
            turn.results.extend(results)
            turn.blocks.extend(rest)

    def messages(self, *, starts_with_summary: bool, may_end_with_answer: bool) -> list[Raw]:
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
        if merged and merged[0].role == "assistant" and not starts_with_summary:
            merged.insert(0, _continue_turn())
        if not merged and starts_with_summary and not may_end_with_answer:
            merged.append(_continue_turn())
        last = merged[-1] if merged else None
        if may_end_with_answer:
            pass
        elif last is not None and last.role == "assistant" and refuses_prefill(self._model):
            # An answer that paused inside Anthropic's own tools is sent back unchanged: the model continues
            # it.
            is_paused = isinstance(last.blocks[-1], Raw)
            merged += [] if is_paused else [_continue_turn()]
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

    def _assistant_blocks(self, block: Block, is_own: bool) -> list[Json | Raw]:
        match block:
            case Opaque() | Unknown() if compaction_block(block) is not None:
                return [block.raw] if any(block is one for one in self._compactions) else []
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
                return thinking_blocks(block) if is_own else []
            case Image() | Document():
                self._waiting.extend(user_blocks(block))
                return []
            case Opaque():
                thinking = opaque_thinking(block)
                if thinking is not None:
                    return thinking_blocks(thinking)
                own = opaque_block(block)
                return [] if own is None else [own]
            case Unknown():
                own = provider_block(block, ANTHROPIC, ASSISTANT_BLOCKS)
                return [own] if own is not None else text_blocks(block)
            case _:
                return text_blocks(block)

    def _result(self, result: ToolResult) -> tuple[Json, list[Json | Raw]]:
        """Return (the tool result, its blocks that may not be inside it and follow the results instead)."""
        call_id = self._ids.of(result.call_id)
        given: Json = {"type": "tool_result", "tool_use_id": call_id}
        beside: list[Json | Raw] = []
        content: str | list[Json | Raw]
        if isinstance(result.content, str):
            content = "" if result.content.isspace() else result.content
        else:
            content = [
                block for each in result.content for block in result_blocks(each, is_error=result.is_error)
            ]
            if result.is_error:
                # "all content must be type `text` if `is_error` is true" (400, Messages API, seen 2026-03)
                beside = [block for block in content if not _is_text(block)]
                content = [block for block in content if _is_text(block)]
        if result.is_error:
            # "content cannot be empty if `is_error` is true" (400, Messages API)
            given["content"] = content or ERROR_WITHOUT_OUTPUT
            given["is_error"] = True
        elif content:
            given["content"] = content
        if beside:
            beside.insert(0, text_block(from_result(call_id)))
        return given, beside


def _continue_turn() -> _Turn:
    turn = _Turn("user")
    turn.blocks.append(text_block(CONTINUES))
    return turn


def _is_text(block: Json | Raw) -> bool:
    return isinstance(block, dict) and block["type"] == "text"


def _in_pairs(blocks: list[Json | Raw], is_last: bool) -> list[Json | Raw]:
    """Return the blocks of an answer. A call of Anthropic's own tools without its result becomes text, and so
    does a result without its call.

    "`web_search` tool use with id … was found without a corresponding `web_search_tool_result` block" (400,
    Messages API). If the answer is the last message (`is_last`), a call at its end stays, because it may
    still wait for its result (`pause_turn`).
    """
    raws = {at: block for at, block in enumerate(blocks) if isinstance(block, Raw)}
    own = {at: fields(raw, "$", "a block") for at, raw in raws.items()}
    calls = {string_field(given, "id") for given in own.values()}
    results = {string_field(given, "tool_use_id") for given in own.values()}
    paired = list(blocks)
    for at, given in own.items():
        if "tool_use_id" in given:
            stays = string_field(given, "tool_use_id") in calls - {""}
        elif "id" in given:
            waits = is_last and at == len(blocks) - 1
            stays = waits or string_field(given, "id") in results - {""}
        else:
            stays = True
        if not stays:
            paired[at] = text_block(bytes(raws[at]).decode())
    return paired


def _without_misplaced_thinking(blocks: list[Json | Raw]) -> list[Json | Raw]:
    """Return `blocks` without the thinking blocks that are not allowed at their places.

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
    """Return `blocks`, with white space removed from the end of the last text."""
    # "final assistant content cannot end with trailing whitespace" (400, Messages API)
    last = blocks[-1] if blocks else None
    if isinstance(last, dict) and last["type"] == "text":
        return [*blocks[:-1], text_block(str(last["text"]).rstrip())]
    return blocks


def _in_system_tags(blocks: list[Json | Raw]) -> list[Json | Raw]:
    texts = [str(block["text"]) for block in blocks if isinstance(block, dict) and _is_text(block)]
    others = [block for block in blocks if not _is_text(block)]
    return [text_block(system_message_text(texts)), *others] if texts else others

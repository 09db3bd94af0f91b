"""The new context that compactd's `extract` makes at a cut, with the daemon's token budgets."""

from __future__ import annotations

import json

import msgspec
from msgspec import Raw

from compactd.core.extract.extract import ExtractSource
from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Item
from compactd.core.history.message_kinds import is_request
from compactd.models.tokenizers.counters import counter_for
from compactd.protocol.messages import Message, Meta, Text, ToolCall, ToolResult

TAIL_SHARE = 0.25
LEAST_SUMMARY = 200


def counter():
    """o200k, as the judge counts."""
    return counter_for("tokenizer", "o200k_base").count


def neutral(record: dict) -> Message:
    """A message of the judge's neutral form in ours."""
    kind = record.get("kind")
    meta = (
        Meta(type="compaction_summary")
        if kind == "compaction_summary"
        else Meta(synthetic=True)
        if kind
        else None
    )
    if record["role"] == "tool":
        result = ToolResult(
            call_id=record.get("tool_call_id") or "x",
            name=record.get("tool_name"),
            content=record.get("text", ""),
            is_error=bool(record.get("is_error")),
        )
        return Message(role="tool", content=(result,))
    blocks = [Text(text=record["text"])] if record.get("text") else []
    blocks += [
        ToolCall(
            call_id=call["id"],
            name=call["name"],
            arguments=Raw(msgspec.json.encode(call.get("arguments", {}))),
        )
        for call in record.get("tool_calls", [])
    ]
    role = record["role"] if record["role"] in ("user", "assistant") else "user"
    return Message(role=role, content=tuple(blocks) or (Text(text="(empty)"),), meta=meta)


def shown(message: Message) -> str:
    """A message as the judge renders it."""
    out = []
    for block in message.content:
        match block:
            case Text(text=text):
                out.append(f"[{message.role}] {text}")
            case ToolCall(name=name, arguments=raw):
                given = json.loads(bytes(raw))
                values = (
                    f"{k}={v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}"
                    for k, v in given.items()
                )
                out.append(f"[call] {name} " + "; ".join(values))
            case ToolResult(content=str() as text):
                out.append(f"[tool] {text}")
    return "\n".join(out)


def items_of(past: list[dict], count) -> list[Item]:
    """Return the messages of a past, counted. System prompts are left out."""
    messages = [neutral(record) for record in past if record["role"] != "system"]
    return [
        Item(entry_id=f"e{n}", body=message, tokens=count(shown(message)))
        for n, message in enumerate(messages, 1)
    ]


def newest_request(items: list[Item]) -> int | None:
    """Return the index of the newest request of the user, or None."""
    return next((i for i in range(len(items) - 1, -1, -1) if is_request(items[i])), None)


def compacted(items: list[Item], budget: int, count, cache: FactCache) -> tuple[str, str]:
    """(the whole new context, the summary in it): request word for word, a tail, the rest for the summary."""
    at = newest_request(items)
    if at is not None and items[at].tokens > budget - LEAST_SUMMARY:
        at = None
    room = budget - (items[at].tokens if at is not None else 0)
    start, taken = len(items), 0
    for i in range(len(items) - 1, -1, -1):
        if i != at:
            taken += items[i].tokens
            if taken > TAIL_SHARE * room:
                break
            if items[i].message.role != "tool":
                start = i
    stays = {i for i in range(len(items)) if i >= start or i == at}
    kept = [items[i] for i in sorted(stays)]
    removed = [item for i, item in enumerate(items) if i not in stays]
    tail = "\n".join(shown(item.message) for item in kept)
    left = budget - count(tail) - count("[user] \n")
    source = ExtractSource(
        removed,
        kept,
        request=items[at] if at is not None else None,
        budget_tokens=left,
        cache=cache,
    )
    made = source.record(left, count)
    return f"[user] {made}\n{tail}", made

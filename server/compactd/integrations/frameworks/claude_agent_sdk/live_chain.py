"""Which entries of a transcript are in the conversation that Claude Code goes on with.

An entry names the one before it (`parentUuid`). The conversation is the chain that ends with the newest prompt or
answer. Results of parallel calls, and the blocks of one answer, may hang on it from the side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compactd.integrations.frameworks.claude_agent_sdk.transcript import uuid_of

Entry = dict[str, Any]


def is_message(entry: object) -> bool:
    """Return whether the entry is a prompt, an answer or a tool result of the conversation itself."""
    return (
        isinstance(entry, dict)
        and entry.get("type") in ("user", "assistant")
        and entry.get("isSidechain") is not True
        and uuid_of(entry) is not None
    )


def live_places(entries: Sequence[object]) -> list[int]:
    """Return the positions of the entries that are in the conversation, in their order. O(entries)."""
    parents: dict[str, str | None] = {}
    leaf: str | None = None
    for entry in entries:
        uuid = uuid_of(entry)
        if uuid is None or not isinstance(entry, dict):
            continue
        parent = entry.get("parentUuid")
        parents[uuid] = parent if isinstance(parent, str) else None
        if is_message(entry):
            leaf = uuid
    chain: set[str] = set()
    while leaf is not None and leaf in parents and leaf not in chain:
        chain.add(leaf)
        leaf = parents[leaf]
    answers, calls = _answers_and_calls(entries, chain)
    return [
        at
        for at, entry in enumerate(entries)
        if isinstance(entry, dict) and (uuid_of(entry) in chain or _is_beside(entry, answers, calls))
    ]


def _answers_and_calls(entries: Sequence[object], chain: set[str]) -> tuple[set[str], set[str]]:
    """Return (ids of the answers, ids of their tool calls) on the chain."""
    answers: set[str] = set()
    for entry in entries:
        if isinstance(entry, dict) and uuid_of(entry) in chain:
            answers.update(_answer_id(entry))
    calls = {
        block["id"]
        for entry in entries
        if isinstance(entry, dict) and answers.intersection(_answer_id(entry))
        for block in blocks_of(entry)
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }
    return answers, calls


def _is_beside(entry: Entry, answers: set[str], calls: set[str]) -> bool:
    """Return whether an entry that is not on the chain belongs to the conversation all the same."""
    if entry.get("isSidechain") is True or uuid_of(entry) is None:
        return False
    if entry.get("subtype") == "compact_boundary" or entry.get("isCompactSummary") is True:
        # The chain may lead past a compaction, through the messages that it kept.
        return True
    if answers.intersection(_answer_id(entry)):
        return True
    return any(
        block.get("type") == "tool_result" and block.get("tool_use_id") in calls for block in blocks_of(entry)
    )


def _answer_id(entry: Entry) -> Iterator[str]:
    message = entry.get("message")
    if entry.get("type") == "assistant" and isinstance(message, dict) and isinstance(message.get("id"), str):
        yield message["id"]


def blocks_of(entry: Entry) -> list[Entry]:
    """Return the blocks of an entry's message; empty if it has none."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []

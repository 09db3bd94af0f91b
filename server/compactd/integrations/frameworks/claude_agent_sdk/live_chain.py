"""Which entries of a transcript are in the conversation that Claude Code goes on with.

An entry names the one before it (`parentUuid`). The conversation is the chain that ends with the newest
prompt or answer. Results of parallel calls, and the blocks of one answer, may hang on it from the side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    before: dict[str, str | None] = {}
    leaf: str | None = None
    last: str | None = None
    after: list[str] = []
    boundary: int | None = None
    for at, entry in enumerate(entries):
        uuid = uuid_of(entry)
        if uuid is None or not isinstance(entry, dict):
            continue
        parent = entry.get("parentUuid")
        parents[uuid] = parent if isinstance(parent, str) else None
        if entry.get("isSidechain") is True:
            continue
        before[uuid], last = last, uuid
        if is_boundary(entry):
            boundary = at
        after.append(uuid)
        if is_message(entry):
            leaf = uuid
            after.clear()
    chain: set[str] = set()
    while leaf is not None and leaf not in chain:
        chain.add(leaf)
        parent = parents[leaf]
        # A parent is missing if the SDK could not store it.
        leaf = parent if parent is None or parent in parents else before.get(leaf)
    # Attachments and notes after the newest message hang on it.
    for uuid in after:
        if parents[uuid] in chain:
            chain.add(uuid)
    kept = set() if boundary is None else _kept_by(entries[boundary], parents)
    # If a plugin compacted, what stays is written once more; nothing older is named (2.1.330, run 2026-11).
    first = boundary if boundary is not None and not kept else 0
    chain |= kept
    answers, calls = _answers_and_calls(entries, chain)
    boundaries = {uuid_of(entry) for entry in entries if isinstance(entry, dict) and is_boundary(entry)}
    return [
        at
        for at, entry in enumerate(entries)
        if at >= first
        and isinstance(entry, dict)
        and (uuid_of(entry) in chain or _is_beside(entry, answers, calls, boundaries))
    ]


def is_boundary(entry: Entry) -> bool:
    """Return whether the entry begins what is left after a compaction."""
    return entry.get("subtype") == "compact_boundary" and entry.get("isSidechain") is not True


def _kept_by(boundary: object, parents: Mapping[str, str | None]) -> set[str]:
    """Return the ids of the older entries that are in the context after a compaction. O(entries)."""
    metadata = _object(boundary, "compactMetadata")
    named = _object(metadata, "preservedMessages")
    kept = {uuid for name in ("uuids", "allUuids") for uuid in _texts(named.get(name))}
    segment = _object(metadata, "preservedSegment")
    head, uuid = segment.get("headUuid"), segment.get("tailUuid")
    walked: set[str] = set()
    while isinstance(uuid, str) and uuid in parents and uuid not in walked:
        walked.add(uuid)
        uuid = None if uuid == head else parents[uuid]
    return kept | (walked if head in walked else set())


def _object(given: object, name: str) -> Entry:
    found = given.get(name) if isinstance(given, dict) else None
    return found if isinstance(found, dict) else {}


def _texts(given: object) -> list[str]:
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def _answers_and_calls(entries: Sequence[object], chain: set[str]) -> tuple[set[str], set[str]]:
    """Return (ids of the answers, ids of their tool calls) on the chain."""
    answers: set[str] = set()
    for entry in entries:
        if isinstance(entry, dict) and uuid_of(entry) in chain:
            answers.update(answer_ids(entry))
    calls = {
        block["id"]
        for entry in entries
        if isinstance(entry, dict) and answers.intersection(answer_ids(entry))
        for block in blocks_of(entry)
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }
    return answers, calls


def _is_beside(entry: Entry, answers: set[str], calls: set[str], boundaries: set[str | None]) -> bool:
    """Return whether an entry that is not on the chain belongs to the conversation all the same."""
    if entry.get("isSidechain") is True or uuid_of(entry) is None:
        return False
    parent = entry.get("parentUuid")
    if is_boundary(entry) or entry.get("isCompactSummary") is True:
        # The chain may lead past a compaction, through the messages that it kept.
        return True
    if entry.get("type") == "user" and isinstance(parent, str) and parent in boundaries:
        return True  # the summary of a plugin
    if answers.intersection(answer_ids(entry)):
        return True
    return any(
        block.get("type") == "tool_result" and block.get("tool_use_id") in calls for block in blocks_of(entry)
    )


def answer_ids(entry: Entry) -> Iterator[str]:
    """Yield the provider's id of the answer that the entry is a part of, if it is one."""
    message = entry.get("message")
    if entry.get("type") == "assistant" and isinstance(message, dict) and isinstance(message.get("id"), str):
        yield message["id"]


def blocks_of(entry: Entry) -> list[Entry]:
    """Return the blocks of an entry's message; empty if it has none."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []

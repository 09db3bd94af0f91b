"""The contract's rules for messages in compactd's neutral shape, as `session/context` returns them."""

from __future__ import annotations

BLOCKS_OF = {
    "user": {"text", "image", "document", "thinking", "opaque", "tool_result"},
    "assistant": {"text", "image", "document", "thinking", "opaque", "tool_call"},
    "system": {"text", "image", "document", "thinking", "opaque"},
    "tool": {"tool_result"},
}
KNOWN = set().union(*BLOCKS_OF.values())


def problems(messages: list[dict]) -> list[str]:
    """Return what would break a client that sends these messages to a model; empty if nothing."""
    found: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role, content = message["role"], message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not any(block.get("type") != "text" or block["text"].strip() for block in content):
            found.append(f"{where}: empty")
        for block in content:
            if block["type"] in KNOWN and block["type"] not in BLOCKS_OF[role]:
                found.append(f"{where}: {block['type']} in a {role} message")
        for block in content:
            if block["type"] != "tool_result":
                continue
            if block["call_id"] in waiting:
                waiting.remove(block["call_id"])
            else:
                found.append(f"{where}: no call {block['call_id']!r} waits for a result")
        others = [
            b for b in content if b["type"] != "tool_result" and (b["type"] != "text" or b["text"].strip())
        ]
        if others and waiting:
            found.append(f"{where}: calls {waiting} have no result before it")
            waiting = []
        calls = [block["call_id"] for block in content if block["type"] == "tool_call"]
        for call in calls:
            if call in seen or not call:
                found.append(f"{where}: call_id {call!r} is not unique")
            seen.add(call)
        waiting += calls
        entry_id = message.get("entry_id")
        if entry_id is None and not all(block.get("is_error") for block in content):
            found.append(f"{where}: no entry_id")
    if waiting:
        found.append(f"at the end: calls {waiting} have no result")
    return found

"""The session store for the Claude Agent SDK, offline: a long session is stored, and loaded compacted.

    pip install 'compactd[claude-agent-sdk]'
    python examples/frameworks/with_claude_agent_sdk.py

It needs no key, no network and no Claude Code: it appends the entries that Claude Code would write, and loads
them as the SDK does before it resumes a session.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from typing import Any
from uuid import uuid4

from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore

REPORTS = 30
LIMIT = 8_000
Entry = dict[str, Any]


def report(number: int) -> str:
    """Return what a tool answers."""
    drawn = random.Random(number)
    lines = [f"gauge {drawn.randrange(900)}: {drawn.uniform(1, 9):.3f} mm, steady" for _ in range(40)]
    lines.insert(20, f"The seal code of part {number} is K-{drawn.randrange(10_000, 99_999)}.")
    return "\n".join(lines)


def session(session_id: str) -> list[Entry]:
    """Return the entries of a session in which Claude reads reports."""
    entries: list[Entry] = []

    def add(role: str, content: object) -> None:
        message: Entry = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{len(entries)}", "model": "claude-opus-4-6", "type": "message"}
        entries.append(
            {
                "type": role,
                "uuid": str(uuid4()),
                "parentUuid": entries[-1]["uuid"] if entries else None,
                "sessionId": session_id,
                "timestamp": f"2026-11-28T07:{len(entries) // 60:02}:{len(entries) % 60:02}.000Z",
                "isSidechain": False,
                "cwd": tempfile.gettempdir(),
                "message": message,
            }
        )

    add("user", f"Read reports 1 to {REPORTS}. Never approve a part without a seal code.")
    for number in range(1, REPORTS + 1):
        call = f"toolu_{number}"
        add("assistant", [{"type": "tool_use", "id": call, "name": "report", "input": {"number": number}}])
        add("user", [{"type": "tool_result", "tool_use_id": call, "content": report(number)}])
    add("assistant", [{"type": "text", "text": "I have read all reports."}])
    return entries


def tokens(entries: list[Any]) -> str:
    """Return about how many tokens the messages of the entries have."""
    return f"about {sum(len(json.dumps(entry['message'])) for entry in entries if 'message' in entry) // 4:,}"


async def main() -> None:
    """Store a session, load it, and print what compactd did."""
    session_id = str(uuid4())
    key: Any = {"project_key": "example", "session_id": session_id}
    store = CompactdSessionStore(compact_on_load=LIMIT)

    entries: list[Any] = session(session_id)
    await store.append(key, entries)
    await store.append(key, entries[-5:])  # the SDK may send a batch again
    compacted: Any = await store.load(key)
    original: Any = await store.load_original(key)

    print(f"Stored:            {len(original)} entries, {tokens(original)} tokens")
    print(f"Loaded compacted:  {len(compacted)} entries, {tokens(compacted)} tokens, the limit is {LIMIT:,}")
    print(f"The first of them: {compacted[1]['message']['content'].splitlines()[0]}")
    print(f"The last is kept:  {compacted[-1] == entries[-1]}")
    print(f"Nothing is lost:   {original == entries}")
    await store.delete(key)


if __name__ == "__main__":
    asyncio.run(main())

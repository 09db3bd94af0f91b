"""A summary of a conversation that has no session, for frameworks that only ask for the text."""

from __future__ import annotations

from compactd.client import Client
from compactd.integrations.frameworks.engine import CALL_S
from compactd.integrations.frameworks.history import History
from compactd.protocol.messages import CompactionResult
from compactd.protocol.wire import StartResult


def summary_of(client: Client, history: History, name: str, target_tokens: int | None = None) -> str:
    """Return a summary of a whole history, made in a session that is not stored. Asks no model. O(text).

    `name`: the framework's. `target_tokens`: the length of the summary, about.
    """
    about = {"persist": False, "client": {"name": name, "version": "1"}}
    session = client.ask("session/start", about, StartResult, timeout_s=CALL_S).session_id
    try:
        messages = [history.encode(index) for index in range(len(history.keys))]
        # A compaction leaves the newest message out.
        messages.append({"role": "user", "content": "Go on."})
        client.session_append(session_id=session, messages=messages)
        done = client.ask(
            "session/compact",
            {"session_id": session, "keep_messages": 1, "force": True, "strategy": "extract"},
            CompactionResult,
        )
        parts = [done.summary]
        if done.pinned_entry_ids:
            pinned = client.session_expand(session_id=session, entry_ids=done.pinned_entry_ids, quoted=True)
            parts += ["## Kept word for word", *(str(entry.quoted) for entry in pinned.entries)]
        return "\n\n".join(parts)
    finally:
        client.session_close(session_id=session, timeout_s=CALL_S)

"""The slash commands `/compact`, `/context` and `/sessions`, which compactd answers instead of the agent."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from compactd.client.asynchronous import AsyncClient
from compactd.client.frames import Json
from compactd.integrations.mcp.recall_text import mark_controls
from compactd.protocol.messages import CompactionResult

CommandName = Literal["compact", "context", "sessions"]
NAMES: Final[tuple[CommandName, ...]] = ("compact", "context", "sessions")
COMPACT_S = 600.0
"""Timeout of a compaction in seconds: a model on this machine may write the summary."""
LISTED = 20

COMMANDS: Final[tuple[dict[str, Json], ...]] = (
    {
        "name": "compact",
        "description": "Replace older messages by a summary; nothing is deleted",
        "input": {"hint": "what the summary should focus on"},
    },
    {"name": "context", "description": "Show how full the context is, and what was compacted"},
    {"name": "sessions", "description": "List the conversations that are stored on this machine"},
)
"""The commands in the form of `available_commands_update`."""


def command_of(text: str) -> tuple[CommandName, str] | None:
    """Return (command, the text after it) if the prompt `text` starts with one of `COMMANDS`;
    otherwise None.
    """
    word, _, rest = text.strip().partition(" ")
    return next(((name, rest.strip()) for name in NAMES if word == f"/{name}"), None)


async def compact_session(client: AsyncClient, session_id: str, focus: str) -> CompactionResult:
    """Compact the session and return the result. `focus` is what the summary should focus on; it may be
    empty."""
    return await client.session_compact(
        session_id=session_id, instructions=focus or None, timeout_s=COMPACT_S
    )


def describe_compaction(result: CompactionResult) -> str:
    """Return the text that answers `/compact`."""
    if not result.compacted:
        return f"No compaction needed: {result.reason.removeprefix('nothing to compact: ')}"
    removed = f"{result.messages_removed:,} message{'' if result.messages_removed == 1 else 's'}"
    before, after, saved = result.tokens_before, result.tokens_after, result.tokens_saved
    return f"✓ Compacted {removed}\n  Tokens: {before:,} → {after:,} (saved {saved:,})"


async def context(client: AsyncClient, session_id: str, gauge: tuple[int, int] | None = None) -> str:
    """Return the text that answers `/context`. `gauge`: (used, window) in tokens, if the agent reports them
    itself.
    """
    state = await client.agent_state(session_id=session_id)
    usage = state.token_usage
    used, window = gauge or (usage.current_context_tokens or 0, usage.context_window or 0)
    lines = [
        f"Context: {used:,} tokens" + (f" of {window:,} ({100 * used / window:.0f} %)" if window else "")
    ]
    if gauge is None and window and usage.context_window_confidence == "guess":
        lines[0] += "; the size of the context window is a guess"
    if gauge is None and usage.threshold_tokens:
        lines.append(f"Compaction due at {usage.threshold_tokens:,} tokens")
    lines.append(f"Messages: {state.message_count:,} · model: {state.model or 'unknown'}")
    saved = f", {state.compaction.tokens_saved:,} tokens saved" if state.compaction.count else ""
    lines.append(f"Compactions: {state.compaction.count}{saved}")
    return mark_controls("\n\n".join(lines))


async def sessions(client: AsyncClient, here: str) -> str:
    """Return the text that answers `/sessions`. `here`: the id of the session in which the user typed the
    command.
    """
    stored = sorted((await client.session_list()).sessions, key=lambda one: one.updated_at, reverse=True)
    rows = []
    for one in stored[:LISTED]:
        when = datetime.fromtimestamp(one.updated_at).strftime("%Y-%m-%d %H:%M")
        mark = " (this one)" if one.session_id == here else ""
        title = f" · {one.title[:60]}" if one.title else ""
        rows.append(f"- `{one.session_id}`{mark} · {one.message_count:,} messages · {when}{title}")
    left = len(stored) - len(rows)
    return mark_controls(
        "\n".join((*rows, *((f"- {left:,} more: `compactd sessions`",) if left > 0 else ())))
    )

"""compactd in the Claude Agent SDK: a `SessionStore` on this machine's disk.

    options = ClaudeAgentOptions(session_store=CompactdSessionStore(), resume=session_id)

The entries of each transcript are lines of a file in Claude Code's own format, below compactd's data folder.
So storing needs no daemon, the SDK gets back exactly what it stored, and `compactd inspect`, `usage`,
`resume`, `handoff` and `import` read the files like those of Claude Code. Only a compaction on load asks the
daemon; its session is made from the file, so losing it loses nothing.
"""

from __future__ import annotations

from compactd.integrations.frameworks.claude_agent_sdk.versions import SDK

SDK.check()

from compactd.integrations.frameworks.claude_agent_sdk.store import CompactdSessionStore  # noqa: E402 - after `check`

__all__ = ["CompactdSessionStore"]

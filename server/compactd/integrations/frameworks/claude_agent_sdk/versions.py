"""Whether the installed claude-agent-sdk is one that this adapter knows."""

from __future__ import annotations

from collections.abc import Iterator

from compactd.integrations.frameworks.versions import Framework, parameters

TESTED = "claude-agent-sdk 0.2.189"
"""The version that the tests run with, and the Claude Code that it contains (2.1.332)."""


def lacks(sdk: object) -> Iterator[str]:
    """Yield what the SDK's module `sdk` should have and has not."""
    store = getattr(sdk, "SessionStore", None)
    for method, names in {
        "append": ("key", "entries"),
        "load": ("key",),
        "list_sessions": ("project_key",),
        "list_session_summaries": ("project_key",),
        "delete": ("key",),
        "list_subkeys": ("key",),
    }.items():
        given = parameters(getattr(store, method, None))
        yield from (f"parameter `{name}` of `SessionStore.{method}`" for name in names if name not in given)
    fold = parameters(getattr(sdk, "fold_session_summary", None))
    for name in ("prev", "key", "entries"):
        if name not in fold:
            yield f"parameter `{name}` of `fold_session_summary`"


SDK = Framework("claude-agent-sdk", "claude-agent-sdk", TESTED, ("claude_agent_sdk",), lacks)

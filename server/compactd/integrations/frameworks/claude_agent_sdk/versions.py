"""Whether the installed claude-agent-sdk is one that this adapter knows."""

from __future__ import annotations

import importlib.metadata
import inspect
from collections.abc import Iterator

TESTED = "claude-agent-sdk 0.2.189"
"""The version that the tests run with, and the Claude Code that it contains (2.1.332)."""


def check() -> None:
    """Raise `ImportError`, which says what to do, if the SDK is missing or lacks what this adapter uses."""
    try:
        import claude_agent_sdk
    except ImportError as error:
        raise ImportError(
            f"compactd.integrations.frameworks.claude_agent_sdk needs {TESTED}: "
            "pip install 'compactd[claude-agent-sdk]'"
        ) from error
    missing = list(lacks(claude_agent_sdk))
    if missing:
        raise ImportError(
            f"claude-agent-sdk {importlib.metadata.version('claude-agent-sdk')} has no {', '.join(missing)}. "
            f"compactd was tested with {TESTED}: pip install 'claude-agent-sdk~=0.2.189', or a newer compactd"
        )


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
        given = _parameters(getattr(store, method, None))
        yield from (f"parameter `{name}` of `SessionStore.{method}`" for name in names if name not in given)
    fold = _parameters(getattr(sdk, "fold_session_summary", None))
    for name in ("prev", "key", "entries"):
        if name not in fold:
            yield f"parameter `{name}` of `fold_session_summary`"


def _parameters(function: object) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters) if callable(function) else frozenset()

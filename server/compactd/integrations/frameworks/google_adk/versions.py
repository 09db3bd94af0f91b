"""Whether the installed ADK is one that this adapter knows."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from compactd.integrations.frameworks.versions import Framework, parameters

TESTED = "google-adk 2.13"
"""The versions that the tests run with."""

_CALLBACKS = {
    "before_model_callback": ("callback_context", "llm_request"),
    "after_model_callback": ("callback_context", "llm_response"),
    "on_model_error_callback": ("callback_context", "llm_request", "error"),
    "after_tool_callback": ("tool", "tool_args", "tool_context", "result"),
    "on_event_callback": ("invocation_context", "event"),
}
_FIELDS = {
    "LlmRequest": ("model", "contents", "config", "tools_dict", "previous_interaction_id"),
    "Event": ("actions", "author", "branch", "content", "invocation_id", "usage_metadata"),
    "InvocationContext": (
        *("agent", "branch", "isolation_scope", "node_path", "session", "session_service", "run_config"),
        *("invocation_id", "live_request_queue", "plugin_manager"),
    ),
}


def lacks(plugins: ModuleType) -> Iterator[str]:
    """Yield what ADK's module `base_plugin` should have and has not."""
    from google.adk.agents.invocation_context import InvocationContext

    base = getattr(plugins, "BasePlugin", None)
    for method, names in _CALLBACKS.items():
        given = parameters(getattr(base, method, None))
        yield from (f"parameter `{name}` of `BasePlugin.{method}`" for name in names if name not in given)
    classes = {"InvocationContext": InvocationContext}
    for owner, names in _FIELDS.items():
        fields = getattr(classes.get(owner, getattr(plugins, owner, None)), "model_fields", {})
        yield from (f"`{owner}.{name}`" for name in names if name not in fields)
    context = getattr(plugins, "CallbackContext", None)
    needed = ("actions", "agent_name", "session", "get_invocation_context")
    yield from (f"`CallbackContext.{name}`" for name in needed if not hasattr(context, name))


ADK = Framework(
    "google-adk",
    "google-adk",
    TESTED,
    (
        "google.adk.plugins.base_plugin",
        "google.adk.apps.base_events_summarizer",
        "google.adk.tools.base_tool",
    ),
    lacks,
)

"""Whether the installed LiteLLM is one that this adapter knows."""

from __future__ import annotations

from collections.abc import Iterator

from compactd.integrations.frameworks.versions import Framework, parameters

TESTED = "litellm 1.110"
"""The versions that the tests run with."""

_HOOKS = {
    "async_pre_call_deployment_hook": ("kwargs", "call_type"),
    "async_post_call_failure_deployment_hook": ("request_data", "exception", "call_type"),
    "async_post_call_success_deployment_hook": ("request_data", "response", "call_type"),
    "async_log_success_event": ("kwargs", "response_obj", "start_time", "end_time"),
    "log_success_event": ("kwargs", "response_obj", "start_time", "end_time"),
}


def lacks(module: object) -> Iterator[str]:
    """Yield what LiteLLM's module `integrations.custom_logger` should have and has not."""
    base = getattr(module, "CustomLogger", None)
    for hook, names in _HOOKS.items():
        given = parameters(getattr(base, hook, None))
        yield from (f"parameter `{name}` of `CustomLogger.{hook}`" for name in names if name not in given)
    kinds = getattr(module, "CallTypes", None)
    if not hasattr(kinds, "acompletion"):
        yield "`CallTypes.acompletion`"


LITELLM = Framework("litellm", "litellm", TESTED, ("litellm.integrations.custom_logger", "litellm"), lacks)

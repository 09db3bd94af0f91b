"""Checks that the installed Pydantic AI has what this adapter reads, and says so in one sentence if it has
not.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from compactd.integrations.frameworks.engine import CompactdWarning

TESTED: Final = "2.68.0"
"""The version of pydantic-ai-slim that the tests run with."""

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "messages.ModelRequest": ("parts", "instructions", "run_id", "conversation_id", "metadata"),
    "messages.ModelResponse": ("parts", "usage", "provider_name", "run_id"),
    "messages.SystemPromptPart": ("content", "context_id", "scope"),
    "messages.UserPromptPart": ("content",),
    "messages.ToolReturnPart": ("tool_name", "content", "tool_call_id", "outcome"),
    "messages.RetryFeedbackPart": ("content", "retry"),
    "messages.CompactionPart": ("content", "provider_name", "metadata"),
    "messages.TextPart": ("content",),
    "messages.ThinkingPart": ("content", "id", "signature"),
    "messages.ToolCallPart": ("tool_name", "args", "tool_call_id"),
    "messages.ToolAvailabilityDeltaPart": ("tools_added",),
    "models.ModelRequestContext": ("model", "messages", "model_settings", "model_request_parameters"),
    "models.ModelRequestParameters": ("function_tools", "output_tools", "output_object", "instruction_parts"),
    "tools.RunContext": ("messages", "model", "conversation_id"),
    "tools.ToolDefinition": ("name", "description", "parameters_json_schema", "defer_loading"),
}
_HOOKS: Final = (
    "before_model_request",
    "prepare_model_request",
    "on_model_request_error",
    "after_tool_execute",
    "after_run",
    "on_run_error",
    "get_toolset",
)


class IncompatibleFramework(ImportError):
    """The installed Pydantic AI lacks something that this adapter needs. Install the tested version."""


def installed() -> str:
    """Return the installed version of pydantic-ai-slim; `none` if it is not installed."""
    try:
        return version("pydantic-ai-slim")
    except PackageNotFoundError:
        return "none"


def incompatible(what: str) -> IncompatibleFramework:
    """Return the error for an installed version in which `what` is missing."""
    return IncompatibleFramework(
        "compactd's adapter for Pydantic AI was tested with pydantic-ai-slim "
        f"{TESTED}. The installed version is {installed()}, and {what}. Install the tested version, or a "
        "newer compactd."
    )


@cache
def check() -> None:
    """Raise `IncompatibleFramework` if a class, field or hook that the adapter uses is missing."""
    try:
        from pydantic_ai import capabilities, messages, models, tools
        from pydantic_ai.exceptions import RetryModelRequest  # noqa: F401 - this tests that it exists
    except ImportError as error:
        raise incompatible(f"this failed: {error}") from error
    modules = {"messages": messages, "models": models, "tools": tools}
    missing = missing_in(modules, capabilities.AbstractCapability)
    if missing:
        raise incompatible(missing)


def missing_in(modules: Mapping[str, object], capability: object) -> str | None:
    """Return what the adapter needs and the framework lacks, as part of a sentence; None if nothing is
    missing. `modules`: those in `_FIELDS`; `capability`: the class with the hooks.
    """
    for name, needed in _FIELDS.items():
        module, class_name = name.split(".")
        owner = getattr(modules[module], class_name, None)
        if not isinstance(owner, type) or not is_dataclass(owner):
            return f"it has no {class_name}"
        missing = set(needed) - {field.name for field in fields(owner)}
        if missing:
            return f"its {class_name} has no field {sorted(missing)[0]!r}"
    for hook in _HOOKS:
        if not hasattr(capability, hook):
            return f"its AbstractCapability has no {hook}()"
    return None


_warned: set[str] = set()


def warn_once(error: Exception) -> None:
    """Warn that the adapter could not read something, once for each kind of error in this process."""
    text = f"{type(error).__name__}: {error}"
    if text in _warned:
        return
    _warned.add(text)
    warnings.warn(
        f"compactd could not read this conversation of Pydantic AI {installed()} (tested: {TESTED}): {text}. "
        "The agent goes on with its messages as they are.",
        CompactdWarning,
        stacklevel=3,
    )

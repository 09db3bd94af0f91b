"""The provider's usage reports, kept until the answers that they belong to enter their sessions.

LiteLLM reports what a request cost when it is answered. The answer enters the session with the next request,
as the caller sends it. So this process remembers the last reports.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from compactd.integrations.frameworks.litellm.messages import Answer, ChatMessage, answer_of

MAX_REPORTS: Final = 1_000

_lock = threading.Lock()
_waiting: OrderedDict[tuple[str, Answer], dict[str, int]] = OrderedDict()


def remember(session: str, response: object) -> None:
    """Keep the report of an answer. Call it once for each: ids of answers are not unique at all providers."""
    usage, choices = getattr(response, "usage", None), getattr(response, "choices", None)
    message = getattr(choices[0], "message", None) if choices else None
    if usage is None or message is None:
        return
    report = _report(usage)
    with _lock:
        _waiting[session, answer_of(message)] = report
        while len(_waiting) > MAX_REPORTS:
            _waiting.popitem(last=False)


def take(session: str, message: ChatMessage) -> Mapping[str, int] | None:
    """Return the report of the answer `message`, and forget it."""
    with _lock:
        return _waiting.pop((session, answer_of(message)), None)


def _report(usage: Any) -> dict[str, int]:
    """Return a report in Anthropic's form, which counts the cached input apart."""
    details = getattr(usage, "prompt_tokens_details", None)
    read = _count(details, "cached_tokens") or _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens") or _count(details, "cache_creation_tokens")
    return {
        "input_tokens": max(0, _count(usage, "prompt_tokens") - read - written),
        "output_tokens": _count(usage, "completion_tokens"),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }


def _count(owner: object, name: str) -> int:
    value = getattr(owner, name, None)
    return value if isinstance(value, int) else 0

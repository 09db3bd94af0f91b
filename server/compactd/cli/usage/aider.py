"""Read the usage reports in aider's chat history (`.aider.chat.history.md`).

After each answer, aider writes a line such as `> Tokens: 5,244 sent, 604 received. Cost: $0.02 request, $0.17
session.`, with `k` for thousands from 1,000 or 10,000 on (Aider-AI/aider, aider/coders/base_coder.py,
`calculate_and_show_tokens_and_cost`, and aider/utils.py, `format_tokens`, read 2026-11). `cache write` and
`cache hit` may be named; `sent` includes them. So counts from aider are rounded. The model is in a line
`> Model: …` or `> Main model: …`; the time is that of the chat's beginning, in local time.
"""

from __future__ import annotations

import re
from datetime import datetime

from compactd.cli.usage.requests import FileUsage, Request

_LINE = re.compile(
    r"^(?:# aider chat started at (?P<at>[-0-9]{10} [:0-9]{8})"
    r"|> (?:Main model|Models?): (?P<model>[^ ,\n]{1,200})"
    r"|> Tokens: (?P<tokens>[^\n]{1,200}))",
    re.MULTILINE,
)
_COUNT = re.compile(r"([0-9][0-9,.]{0,15})(k?) (sent|received|cache write|cache hit)")
_COST = re.compile(r"Cost: \$([0-9][0-9,.]{0,15}) (?:message|request)")


def read(data: bytes, usage: FileUsage) -> None:
    """Add the requests of a chat history to `usage`. O(bytes)."""
    at = 0
    model = usage.model_index("", "")
    for found in _LINE.finditer(data.decode("utf-8", "replace")):
        if found["at"]:
            at = _local(found["at"])
        elif found["model"]:
            # aider marks a model with a prompt cache by a flash; older versions wrote a list of names.
            provider, slash, name = found["model"].strip("⚡[]'\"").partition("/")
            model = usage.model_index(provider, name) if slash else usage.model_index("", provider)
        else:
            request = _request(found["tokens"], at, model)
            if request is None:
                usage.unreadable += 1
            else:
                usage.requests.append(request)


def _request(text: str, at: int, model: int) -> Request | None:
    counts = {what: _number(number, kilo) for number, kilo, what in _COUNT.findall(text)}
    if "sent" not in counts:
        return None
    read, written = counts.get("cache hit", 0), counts.get("cache write", 0)
    cost = _COST.search(text)
    return Request(
        key=0,
        at=at,
        model=model,
        input=max(0, counts["sent"] - read - written),
        output=counts.get("received", 0),
        cache_write=written,
        cache_write_1h=0,
        cache_read=read,
        cost=float(cost[1].rstrip(".").replace(",", "")) if cost and cost[1].count(".") < 2 else None,
    )


def _number(text: str, kilo: str) -> int:
    try:
        return round(float(text.rstrip(".").replace(",", "")) * (1000 if kilo else 1))
    except ValueError:
        return 0


def _local(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError):
        return 0

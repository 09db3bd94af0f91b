"""The text in a function's response.

Gemini wants an object as a response. ADK makes `{"result": text}` of a function that returns a text, and
tools of MCP return a list of contents. compactd gets that text, and not its JSON, which would be harder to
shorten, to search and to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_TEXT_FIELDS = ("result", "output", "error")


def text_in(response: object) -> str | None:
    """Return the only text of a response; None if it has another form."""
    if isinstance(response, str):
        return response
    if not isinstance(response, Mapping):
        return None
    if len(response) == 1:
        ((name, value),) = response.items()
        if name in _TEXT_FIELDS and isinstance(value, str):
            return value
    item = _mcp_item(response)
    return None if item is None else str(item["text"])


def with_text(response: object, text: str) -> Any:
    """Return a response of the same form with another text."""
    if isinstance(response, str):
        return text
    if isinstance(response, Mapping):
        item = _mcp_item(response)
        if item is not None:
            return {**response, "content": [{**item, "text": text}]}
        if text_in(response) is not None:
            return dict.fromkeys(response, text)
    return {"result": text}


def is_error(response: object) -> bool:
    """Return whether a response says that the tool failed."""
    return isinstance(response, Mapping) and ("error" in response or response.get("isError") is True)


def whole_text(response: object) -> str:
    """Return all that a response says: its only text, or else its JSON."""
    text = text_in(response)
    return msgspec.json.encode(plain(response)).decode() if text is None else text


def plain(value: object) -> object:
    """Return a value that JSON can hold; what it cannot is written as text."""
    made: object = msgspec.to_builtins(value, enc_hook=repr, str_keys=True)
    return made


def _mcp_item(response: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the only content of an MCP result, if it is a text."""
    items = response.get("content")
    if not isinstance(items, list) or len(items) != 1 or response.get("structuredContent"):
        return None
    (item,) = items
    is_text = isinstance(item, Mapping) and item.get("type") == "text" and isinstance(item.get("text"), str)
    return item if is_text else None

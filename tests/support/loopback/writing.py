"""Helpers that all wire formats share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def numbers_in(text: str) -> Any:
    """JSON text as JSON; a wire that has objects cannot show what is none."""
    try:
        return json.loads(text)
    except ValueError:
        return {}

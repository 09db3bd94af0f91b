"""Recorded examples of the protocol: one request and answer of each method, one event of each type.

`tests/unit/protocol/record_examples.py` records them from the real daemon into `examples.json`; a test
compares the file with a new recording.
"""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct

Tree = str | int | float | bool | None | list["Tree"] | dict[str, "Tree"]
"""Any JSON value."""

FILE = Path(__file__).with_name("examples.json")
WIDTH = 100
"""The largest width of a line in columns. A line may be wider only if its value cannot be broken."""


class Example(Struct, frozen=True):
    """A request's params and its result."""

    params: dict[str, Tree]
    result: Tree


class Examples(Struct, frozen=True):
    """Examples by method and by type of event."""

    calls: dict[str, Example]
    events: dict[str, Tree]


def examples() -> Examples:
    """Return the recorded examples."""
    recorded: dict[str, dict[str, dict[str, Tree]]] = json.loads(FILE.read_bytes())
    calls: dict[str, Example] = {}
    for method, call in recorded["calls"].items():
        params = call["params"]
        calls[method] = Example(params if isinstance(params, dict) else {}, call["result"])
    return Examples(calls, dict(recorded["events"]))


def lay_out_json(value: Tree, indent: str = "", lead: str = "", tail: str = "") -> list[str]:
    """Return `value` as lines of JSON of at most `WIDTH` columns if possible. Short values stay on one line.
    `lead`, `tail`: text before and after the value.
    """
    flat = indent + lead + json.dumps(value, ensure_ascii=False) + tail
    match value:
        case dict() if value and len(flat) > WIDTH:
            inner = [(f"{json.dumps(name)}: ", one) for name, one in value.items()]
            brackets = "{}"
        case list() if value and len(flat) > WIDTH:
            inner = [("", one) for one in value]
            brackets = "[]"
        case _:
            return [flat]
    lines = [f"{indent}{lead}{brackets[0]}"]
    for number, (name, one) in enumerate(inner, 1):
        lines += lay_out_json(one, indent + " ", name, "," if number < len(inner) else "")
    return [*lines, f"{indent}{brackets[1]}{tail}"]

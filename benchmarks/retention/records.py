"""The messages of a recorded session as the metric reads them: text, tool calls, and their rendering."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

SUMMARY = "compaction_summary"
META = "meta"
"""Kinds of user messages that no person wrote; any other kind is one of those too."""

DIRECTORY_SHARE = 0.8


class Call(Struct, frozen=True):
    """A tool call."""

    call_id: str
    name: str
    arguments: dict[str, Json]


class Record(Struct, frozen=True, dict=True):
    """One message."""

    at: int
    """Its index in the session, from 0."""
    role: str
    """`system`, `user`, `assistant` or `tool`."""
    text: str = ""
    calls: tuple[Call, ...] = ()
    kind: str = ""
    call_id: str = ""
    """The id of the call that a tool's message answers."""
    tool: str = ""
    is_error: bool = False
    time: float | None = None
    """When it was recorded, in seconds since 1970; None if the file does not say."""

    @cached_property
    def given(self) -> str:
        """Names and argument values of its calls, one a line."""
        return "\n".join(
            call.name + "\n" + "\n".join(map(plain, call.arguments.values())) for call in self.calls
        )

    @cached_property
    def rendered(self) -> str:
        """The text in a context: `[role] text`, then `[call] name key=value; …`."""
        return "\n".join((f"[{self.role}] {self.text}", *map(call_line, self.calls)))

    @property
    def lines(self) -> list[str]:
        """The lines of its text and of what its calls were given."""
        return (self.text + "\n" + self.given).splitlines()


class Session(Struct, frozen=True):
    """A recorded session."""

    name: str
    records: tuple[Record, ...]


def plain(value: Json) -> str:
    """An argument's value as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def call_line(call: Call) -> str:
    """A call as a context shows it."""
    return f"[call] {call.name} " + "; ".join(
        f"{key}={plain(value)}" for key, value in call.arguments.items()
    )


def context_of(records: Iterable[Record]) -> str:
    """Messages as one text."""
    return "\n".join(record.rendered for record in records)


def path_of(call: Call) -> str | None:
    """The file or folder that a call names."""
    path = call.arguments.get("path") or call.arguments.get("file_path")
    return path if isinstance(path, str) else None


def working_dir(records: Sequence[Record]) -> str:
    """The longest folder that holds most of the absolute paths given to tools; empty where there are none."""
    held: Counter[str] = Counter()
    for record in records:
        for call in record.calls:
            path = path_of(call)
            if path is not None and path.startswith("/"):
                parts = path.split("/")
                held.update("/".join(parts[:end]) for end in range(3, len(parts)))
    if not held:
        return ""
    least = DIRECTORY_SHARE * max(held.values())
    return max((folder for folder, times in held.items() if times >= least), key=len)

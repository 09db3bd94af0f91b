"""The recall tool, for callers that run the tools of their agent themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.mirror import Mirror


class RecallTool:
    """A tool that looks up what was said earlier in one conversation. Add `definition` to the request's
    `tools`, and call the object with a call's arguments.
    """

    def __init__(self, mirror: Mirror, name: str = recall.NAME) -> None:
        """`name`: the tool's, if another tool has that name."""
        self._mirror = mirror
        self.name = name

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as LiteLLM takes it."""
        function = {"name": self.name, "description": recall.DESCRIPTION, "parameters": _PARAMETERS}
        return {"type": "function", "function": function}

    def __call__(self, arguments: str | Mapping[str, Any]) -> str:
        """Return the tool's answer to a call, given `call.function.arguments`. Arguments that cannot be read
        are answered with what is wrong.
        """
        try:
            given = msgspec.json.decode(arguments or "{}") if isinstance(arguments, str) else dict(arguments)
            wanted = msgspec.convert(given, _Arguments)
        except msgspec.MsgspecError as error:
            return f"The arguments cannot be read: {error}."
        return self._mirror.recall(wanted.query, wanted.entry_ids or (), wanted.start)


class _Arguments(msgspec.Struct, frozen=True):
    query: str = ""
    entry_ids: list[str] | None = None
    start: int = 0


_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": recall.QUERY},
        "entry_ids": {"type": "array", "items": {"type": "string"}, "description": recall.ENTRY_IDS},
        "start": {"type": "integer", "description": recall.START},
    },
}

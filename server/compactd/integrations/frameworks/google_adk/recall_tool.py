"""The tool with which a model looks up what was said earlier."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.google_adk.sessions import Sessions

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": recall.QUERY},
        "entry_ids": {"type": "array", "items": {"type": "string"}, "description": recall.ENTRY_IDS},
        "start": {"type": "integer", "description": recall.START},
    },
}


class RecallTool(BaseTool):
    """Finds what is not in an agent's requests any more."""

    def __init__(self, sessions: Sessions) -> None:
        super().__init__(name=recall.NAME, description=recall.DESCRIPTION)
        self._sessions = sessions

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=_SCHEMA
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Return what was found, as a text for the model."""
        mirror = self._sessions.of_run(tool_context)
        query, ids, start = args.get("query") or "", args.get("entry_ids") or [], args.get("start") or 0
        entry_ids = [ids] if isinstance(ids, str) else [str(each) for each in ids]
        return await asyncio.to_thread(mirror.recall, str(query), entry_ids, int(start))

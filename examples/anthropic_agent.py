"""An agent with Anthropic's SDK whose context never overflows, because compactd manages the conversation.

    python -m examples.anthropic_agent MODEL "Which file is the largest?"

It needs `ANTHROPIC_API_KEY`, and may read the files of the current folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anthropic
from anthropic.types import Message, ToolParam

from compactd.client import Client

SYSTEM = "You answer questions about the files of a folder. Read them with your tools; do not guess."
MAX_TOKENS = 4096
TOOLS: list[ToolParam] = [
    {
        "name": "read_file",
        "description": "The text of a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]


class Agent:
    """A conversation about one folder."""

    def __init__(self, client: Client, model: str, folder: Path) -> None:
        self._client = client
        # No automatic retries: a failed request is first reported to compactd.
        self._anthropic = anthropic.Anthropic(max_retries=0)
        self._model = model
        self._folder = folder
        started = client.session_start(model=f"anthropic/{model}", system_prompt=SYSTEM, tools=TOOLS)
        self.session_id = started.session_id

    def ask(self, question: str) -> str:
        """Returns the model's answer, after as many tool calls as the model makes."""
        self._append({"role": "user", "content": question})
        while True:
            content = self._answered().content
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": self._read(str(block.input.get("path"))),
                }
                for block in content
                if block.type == "tool_use"
            ]
            if not results:
                return "".join(block.text for block in content if block.type == "text")
            self._append({"role": "user", "content": results})

    def _answered(self) -> Message:
        """Returns the model's next message. A request that was too large is made smaller and sent again."""
        limit = MAX_TOKENS
        while True:
            self._client.turn_begin(session_id=self.session_id)
            request = self._client.session_context(session_id=self.session_id, format="anthropic")
            try:
                answer = self._anthropic.messages.create(
                    model=self._model,
                    max_tokens=limit,
                    system=SYSTEM,
                    messages=request.plain_messages(),
                    tools=request.plain_tools(),
                )
            except anthropic.APIStatusError as error:
                failed = {"status": error.status_code, "body": error.response.text}
                told = self._client.turn_error(session_id=self.session_id, error=failed, epoch=request.epoch)
                if not told.retry:
                    raise
                limit = min(told.max_output_tokens or limit, limit)
                continue
            self._client.turn_end(
                session_id=self.session_id,
                messages=[{"role": "assistant", "content": [block.to_dict() for block in answer.content]}],
                usage=answer.usage.to_dict(),
                epoch=request.epoch,
                format="anthropic",
            )
            return answer

    def _append(self, message: dict[str, object]) -> None:
        self._client.session_append(session_id=self.session_id, messages=[message], format="anthropic")

    def _read(self, path: str) -> str:
        file = (self._folder / path).resolve()
        if not file.is_relative_to(self._folder.resolve()) or not file.is_file():
            return f"there is no file {path}"
        return file.read_text("utf-8", "replace")


if __name__ == "__main__":
    with Client(restarts=True) as daemon:
        sys.stdout.write(Agent(daemon, sys.argv[1], Path.cwd()).ask(sys.argv[2]) + "\n")

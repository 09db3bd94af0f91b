"""An agent with OpenAI's SDK whose context never overflows, because compactd manages the conversation.

    python -m examples.openai_agent MODEL "Which file is the largest?"

It needs `OPENAI_API_KEY`, and `OPENAI_BASE_URL` for another server with the same API. It may read the files
of the current folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import openai
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageFunctionToolCall,
)

from compactd.client import Client

SYSTEM = "You answer questions about the files of a folder. Read them with your tools; do not guess."
TOOLS: list[ChatCompletionFunctionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "The text of a file.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        },
    }
]


class Agent:
    """A conversation about one folder."""

    def __init__(self, client: Client, model: str, folder: Path) -> None:
        self._client = client
        # No automatic retries: a failed request is first reported to compactd.
        self._openai = openai.OpenAI(max_retries=0)
        self._model = model
        self._folder = folder
        started = client.session_start(model=f"openai/{model}", system_prompt=SYSTEM, tools=TOOLS)
        self.session_id = started.session_id

    def ask(self, question: str) -> str:
        """Returns the model's answer, after as many tool calls as the model makes."""
        self._append({"role": "user", "content": question})
        while True:
            message = self._answered().choices[0].message
            if not message.tool_calls:
                return message.content or ""
            for call in message.tool_calls:
                if isinstance(call, ChatCompletionMessageFunctionToolCall):
                    text = self._read(json.loads(call.function.arguments)["path"])
                    self._append({"role": "tool", "tool_call_id": call.id, "content": text})

    def _answered(self) -> ChatCompletion:
        """Returns the model's next message. A request that was too large is made smaller and sent again."""
        limit: int | None = None
        while True:
            self._client.turn_begin(session_id=self.session_id)
            request = self._client.session_context(session_id=self.session_id, format="openai")
            try:
                answer = self._openai.chat.completions.create(
                    model=self._model,
                    messages=request.plain_messages(),
                    tools=TOOLS,
                    max_completion_tokens=limit if limit is not None else openai.omit,
                )
            except openai.APIStatusError as error:
                failed = {"status": error.status_code, "body": error.response.text}
                told = self._client.turn_error(session_id=self.session_id, error=failed, epoch=request.epoch)
                if not told.retry:
                    raise
                limit = told.max_output_tokens
                continue
            self._client.turn_end(
                session_id=self.session_id,
                messages=[answer.choices[0].message.to_dict()],
                usage=answer.usage.to_dict() if answer.usage else None,
                epoch=request.epoch,
                format="openai",
            )
            return answer

    def _append(self, message: dict[str, object]) -> None:
        self._client.session_append(session_id=self.session_id, messages=[message], format="openai")

    def _read(self, path: str) -> str:
        file = (self._folder / path).resolve()
        if not file.is_relative_to(self._folder.resolve()) or not file.is_file():
            return f"there is no file {path}"
        return file.read_text("utf-8", "replace")


if __name__ == "__main__":
    with Client(restarts=True) as daemon:
        sys.stdout.write(Agent(daemon, sys.argv[1], Path.cwd()).ask(sys.argv[2]) + "\n")

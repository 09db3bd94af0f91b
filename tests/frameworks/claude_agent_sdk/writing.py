"""Transcripts in Claude Code's form, written for tests."""

from __future__ import annotations

from typing import Any
from uuid import UUID

SESSION = "5f0e0f0c-0000-4000-8000-000000000000"
MODEL = "claude-opus-4-6"
Entry = dict[str, Any]


class Writer:
    """Writes entries as Claude Code does: each names the one before it."""

    def __init__(self, number: int = 1) -> None:
        self.entries: list[Entry] = []
        self.parent: str | None = None
        self._number = number * 1_000_000

    def add(self, kind: str, message: Entry | None = None, **more: Any) -> Entry:
        self._number += 1
        uuid = str(UUID(int=self._number))
        second = len(self.entries)
        entry: Entry = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-11-28T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z",
            "sessionId": SESSION,
            "version": "2.1.332",
            "cwd": "/",
            **({} if message is None else {"message": message}),
            **more,
        }
        self.entries.append(entry)
        if entry["isSidechain"] is False:
            self.parent = uuid
        return entry

    def ask(self, text: str) -> Entry:
        return self.add("user", {"role": "user", "content": text}, promptSource="sdk")

    def answer(self, *blocks: Entry) -> list[Entry]:
        """Write an answer: an entry for each block."""
        id_ = f"msg_{self._number}"
        return [
            self.add(
                "assistant",
                {
                    "id": id_,
                    "type": "message",
                    "role": "assistant",
                    "model": MODEL,
                    "content": [block],
                    "usage": {"input_tokens": 100, "output_tokens": 10},
                },
            )
            for block in blocks
        ]

    def say(self, text: str) -> None:
        self.answer({"type": "text", "text": text})

    def call(self, *outputs: str, name: str = "Bash") -> None:
        """Write an answer with a call for each output, and the results. As in Claude Code, the result of a
        parallel call hangs on its call, and the conversation goes on after the last one."""
        ids = [f"toolu_{self._number}_{at}" for at in range(len(outputs))]
        calls = self.answer(
            {"type": "thinking", "thinking": "Look.", "signature": "c2ln"},
            *({"type": "tool_use", "id": id_, "name": name, "input": {"command": id_}} for id_ in ids),
        )[1:]
        for id_, called, output in zip(ids, calls, outputs, strict=True):
            self.parent = called["uuid"]
            result = {"type": "tool_result", "tool_use_id": id_, "content": output}
            self.add("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": output})

    def note(self, kind: str, **fields: Any) -> None:
        """Write an entry without an id."""
        self.entries.append({"type": kind, "sessionId": SESSION, **fields})

    def work(self, turns: int, chars: int = 800) -> None:
        """Write a turn of the user's with so many calls."""
        self.ask(f"Task {self._number}: mend the gate number {self._number}.")
        for turn in range(turns):
            self.call(*(f"line {self._number} of the log " * (chars // 24) for _ in range(1 + turn % 2)))
        self.say(f"The gate is mended, see report {self._number}.")


def long_session(turns: int = 12) -> list[Entry]:
    """Return a session of about `turns` times 2,000 tokens."""
    writer = Writer()
    writer.note("mode", mode="normal")
    for turn in range(turns):
        writer.work(6)
        writer.note("last-prompt", lastPrompt=f"prompt {turn}", leafUuid=writer.parent)
        writer.add("attachment", attachment={"type": "total_tokens_reminder", "text": "many"})
    return writer.entries

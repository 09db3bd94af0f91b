"""Build a conversation of an agent at work, call by call, and derive the state of the work from it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from compactd.core.history.entries import EntryId, Item
from compactd.core.work.state import WorkReader
from compactd.protocol.messages import Block, Message, Meta, Role, Text, ToolCall, ToolResult
from compactd.protocol.work import Work


class AgentWork:
    """The messages e1, e2, … of a conversation. Each method adds messages and returns the id of the last."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._calls = 0

    def add(self, role: Role, *blocks: Block, meta: Meta | None = None) -> EntryId:
        """Add one message."""
        entry_id = f"e{len(self.items) + 1}"
        body = Message(role=role, content=blocks, meta=meta)
        self.items.append(Item(entry_id=entry_id, body=body, tokens=1))
        return entry_id

    def asks(self, text: str, meta: Meta | None = None) -> EntryId:
        """Add a message of the user."""
        return self.add("user", Text(text=text), meta=meta)

    def says(self, text: str, meta: Meta | None = None) -> EntryId:
        """Add a message of the agent, without calls."""
        return self.add("assistant", Text(text=text), meta=meta)

    def calls(self, name: str, **arguments: object) -> EntryId:
        """Add a call without its result."""
        self._calls += 1
        return self.add("assistant", call_block(f"t{self._calls}", name, **arguments))

    def gets(self, result: str, *, failed: bool = False) -> EntryId:
        """Add the result of the last call."""
        return self.add("tool", ToolResult(call_id=f"t{self._calls}", content=result, is_error=failed))

    def does(self, name: str, result: str = "ok", *, failed: bool = False, **arguments: object) -> EntryId:
        """Add a call and its result."""
        self.calls(name, **arguments)
        return self.gets(result, failed=failed)

    def runs(self, command: str, output: str = "", *, failed: bool = False) -> EntryId:
        """Add a shell command and its output."""
        return self.does("Bash", output, failed=failed, command=command)

    def edits(self, path: str, *, failed: bool = False) -> EntryId:
        """Add an edit of a file."""
        return self.does("Edit", file_path=path, old_string="a", new_string="b", failed=failed)

    @property
    def work(self) -> Work:
        """The state of the work after all messages."""
        return work_of(self.items)


def call_block(call_id: str, name: str, **arguments: object) -> ToolCall:
    """Return a tool call with these arguments."""
    return ToolCall(call_id=call_id, name=name, arguments=Raw(msgspec.json.encode(arguments)))


def work_of(items: Iterable[Item]) -> Work:
    """Return the state of the work after these messages, without constraints."""
    reader = WorkReader()
    for item in items:
        reader.add(item)
    return reader.work()

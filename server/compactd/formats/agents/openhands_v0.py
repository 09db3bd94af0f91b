"""Read OpenHands' events of version 0: actions, which have a field `action`, and observations, which have a
field `observation`.

The format is defined by All-Hands-AI/OpenHands until 2026, `openhands/events/serialization/event.py`
(`event_to_dict`), `openhands/events/tool.py` (`ToolCallMetadata`) and `openhands/events/action/agent.py`
(`CondensationAction`), read 2026-11. Event ids are whole numbers. An observation's `cause` is the action that
it answers. `tool_call_metadata` contains the model's own call and response.

A message with the source `user` was typed, except for the task that the model gives to another agent, which
follows the action `delegate` (`openhands/controller/agent_controller.py`, `start_delegate`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import UNKNOWN
from compactd.formats.agents.openhands_v1 import OpenHandsReader
from compactd.formats.files.session_file import SessionBuilder, is_true, text_field, unix_seconds
from compactd.formats.messages.json_parts import first_byte
from compactd.formats.messages.lenient_json import (
    Given,
    count_in,
    list_in,
    number_in,
    object_in,
    objects_in,
    text_in,
)
from compactd.protocol.messages import NULL, Block, Meta, Text, ToolCall, ToolResult

_SILENT = (
    "change_agent_state",
    "recall",
    "null",
    "agent_state_changed",
    "condensation_request",
    "loop_recovery",
)
_ADDED_ARGUMENTS = (
    "thought",
    "is_input",
    "hidden",
    "confirmation_state",
    "security_risk",
    "blocking",
    "keep_prompt",
)
"""Arguments that OpenHands adds to the model's own in an action."""


class OpenHandsV0Reader(OpenHandsReader):
    """A session of version 0 that is being read event by event."""

    def __init__(self, session: SessionBuilder) -> None:
        super().__init__(session)
        self._delegates = False
        """Whether the last action gave a task to another agent."""
        self._calls: dict[str, tuple[str, str]] = {}
        """Action id -> (the call's id, its name)."""

    def event(self, event: Given) -> None:
        """Read the next event."""
        number = number_in(event, "id")
        id = text_field(event, "id") if number is None else str(int(number))
        at = unix_seconds(text_field(event, "timestamp"))
        if "observation" in event:
            self._observation(event, id, at)
            return
        kind, given = text_in(event, "action"), object_in(event, "args")
        match kind:
            case "system":
                self.session.system_prompt = text_in(given, "content") or None
            case "message":
                self._words(event, given, id, at)
            case "condensation":
                self.add_compaction(text_in(given, "summary"), _forgotten_ids(given, self.starts), id, at)
            case "finish" if "tool_call_metadata" not in event:
                text = (
                    text_in(given, "final_thought") or text_in(given, "thought") or text_in(event, "message")
                )
                self.add_answer("", [Text(text=text)], id, at)
            case _ if kind and kind not in _SILENT:
                self._act(event, kind, given, id, at)
            case "":
                self.session.count_skipped("event that is neither action nor observation")

    def _words(self, event: Given, given: Given, id: str | None, at: float | None) -> None:
        text: list[Block] = [Text(text=text_in(given, "content") or text_in(event, "message"))]
        if text_in(event, "source") == "user":
            self.start(id)
            meta = Meta(author=UNKNOWN) if self._delegates else None
            self._delegates = False
            self.session.add("user", text, id=id, created_at=at, meta=meta)
        else:
            self.add_answer("", text, id, at)
            self.session.report(_usage(event))

    def _act(self, event: Given, kind: str, given: Given, id: str | None, at: float | None) -> None:
        about = object_in(event, "tool_call_metadata")
        call_id, name = (
            text_in(about, "tool_call_id") or f"action-{id}",
            text_in(about, "function_name") or kind,
        )
        self._calls[id or ""] = call_id, name
        self._delegates = kind == "delegate"
        made = _model_arguments(about, call_id)
        arguments = made if made is not None else _json(given)
        thought = text_in(given, "thought") or text_in(object_in(given, "thought"), "text")
        said: list[Block] = [Text(text=thought)] if thought else []
        made_by = object_in(about, "model_response")
        response = text_in(made_by, "id")
        self.session.model = text_field(made_by, "model") or self.session.model
        call = ToolCall(call_id=call_id, name=name, arguments=arguments)
        self.add_answer(response, [*said, call], id, at)
        self.session.report(_usage(event))

    def _observation(self, event: Given, id: str | None, at: float | None) -> None:
        kind = text_in(event, "observation")
        if kind in _SILENT:
            return
        about = object_in(event, "tool_call_metadata")
        cause = number_in(event, "cause")
        call_id, name = self._calls.get("" if cause is None else str(int(cause)), ("", kind))
        call_id = text_in(about, "tool_call_id") or call_id
        self.start(id)
        if not call_id:
            meta = Meta(synthetic=True)
            text = (Text(text=text_in(event, "content")),)
            self.session.add("user", text, id=id, created_at=at, meta=meta)
            return
        failed = count_in(object_in(object_in(event, "extras"), "metadata"), "exit_code") > 0
        result = ToolResult(
            call_id=call_id,
            name=text_in(about, "function_name") or name,
            content=text_in(event, "content"),
            is_error=kind == "error" or failed or event.get("success") == Raw(b"false"),
        )
        self.session.add("tool", (result,), id=id, created_at=at)


def _forgotten_ids(given: Given, known: Iterable[str]) -> list[str]:
    ids = list_in(given, "forgotten_event_ids")
    if ids:
        return [bytes(raw).decode().strip('"') for raw in ids]
    start, end = number_in(given, "forgotten_events_start_id"), number_in(given, "forgotten_events_end_id")
    if start is None or end is None:
        return []
    return [one for one in known if one.isdecimal() and start <= int(one) <= end]


def _model_arguments(about: Given, call_id: str) -> Raw | None:
    """Return the arguments that the model gave, from its own response."""
    for choice in objects_in(object_in(about, "model_response"), "choices"):
        for call in objects_in(object_in(choice, "message"), "tool_calls"):
            if text_in(call, "id") == call_id:
                return object_in(call, "function").get("arguments")
    return None


def _json(given: Given) -> Raw:
    return Raw(
        msgspec.json.encode({name: raw for name, raw in given.items() if name not in _ADDED_ARGUMENTS})
    )


def _usage(event: Given) -> Raw | None:
    response = object_in(object_in(event, "tool_call_metadata"), "model_response")
    usage = response.get("usage", NULL)
    if first_byte(usage) != b"{" or is_true(response, "stream"):
        return None
    return usage

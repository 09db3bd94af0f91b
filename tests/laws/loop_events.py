"""What the events of the daemon's own loop may look like: every start has its end, in its place."""

from __future__ import annotations

from typing import Any

ENDS = ("agent_end", "error")


def problems_of_events(events: list[dict[str, Any]], first_seq: int = 1) -> list[str]:
    """What is wrong with the events of one session, from its opening on; empty where nothing is."""
    order = _Order()
    for number, event in enumerate(events):
        if event["seq"] != number + first_seq:
            order.found.append(f"event {number}: seq {event['seq']}")
        order.take(event)
    return [*order.found, *order.left()]


class _Order:
    """Where the loop is, after the events so far."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._turn: str | None = None
        self._is_message_open = False
        self._is_turn_open = False
        self._tools: list[str] = []
        self._compaction: str | None = None

    def left(self) -> list[str]:
        """What was begun and never ended."""
        return [
            f"at the end: {name} is open"
            for name, is_open in (
                ("the prompt", self._turn is not None),
                ("a message", self._is_message_open),
                ("a tool", bool(self._tools)),
                ("a compaction", self._compaction is not None),
            )
            if is_open
        ]

    def take(self, event: dict[str, Any]) -> None:
        """The next event."""
        kind = event["type"]
        where = f"seq {event['seq']} {kind}"
        match kind:
            case "agent_start":
                self._wrong(self._turn is not None, f"{where} in {self._turn}")
                self._turn = event["turn_id"]
            case "agent_end" | "error":
                self._wrong(self._turn != event["turn_id"], f"{where} of {event['turn_id']} in {self._turn}")
                self._wrong(self._is_message_open, f"{where} before message_end")
                self._wrong(bool(self._tools), f"{where} before the end of {self._tools}")
                self._turn, self._is_turn_open = None, False
            case "agent_abort":
                self._wrong(self._turn != event["turn_id"], f"{where} outside")
            case "turn_start":
                self._wrong(self._turn is None or self._is_turn_open, where)
                self._is_turn_open = True
            case "turn_end":
                self._wrong(not self._is_turn_open or self._is_message_open, where)
                self._is_turn_open = False
            case "message_start":
                self._wrong(self._is_message_open or not self._is_turn_open, where)
                self._is_message_open = True
            case "message_delta" | "thinking_delta":
                self._wrong(not self._is_message_open, where)
            case "message_end":
                self._wrong(not self._is_message_open, where)
                self._is_message_open = False
            case "tool_execution_start":
                self._wrong(self._is_message_open or self._turn is None, where)
                self._tools.append(event["call_id"])
            case "tool_execution_end":
                self._wrong(event["call_id"] not in self._tools, where)
                if event["call_id"] in self._tools:
                    self._tools.remove(event["call_id"])
            case "compaction_start":
                self._wrong(self._compaction is not None, where)
                self._compaction = event["compaction_id"]
            case "compaction_end":
                self._wrong(self._compaction != event["compaction_id"], where)
                self._compaction = None

    def _wrong(self, is_wrong: bool, what: str) -> None:
        if is_wrong:
            self.found.append(what)

"""Checks the events of the daemon's own agent loop: every start has its end, in the right order."""

from __future__ import annotations

from typing import Any

OF_A_PROMPT = frozenset(
    (
        "turn_start",
        "message_start",
        "message_delta",
        "thinking_delta",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
    )
)
"""Events that carry the prompt that is being answered."""


def problems_of_events(events: list[dict[str, Any]], first_seq: int = 1) -> list[str]:
    """Return what is wrong with the events of one session since its opening; empty if nothing is."""
    order = _Order()
    for number, event in enumerate(events):
        if event["seq"] != number + first_seq:
            order.found.append(f"event {number}: seq {event['seq']}")
        order.take(event)
    return [*order.found, *order.left()]


class _Order:
    """The state of the loop after the events so far."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._turn: str | None = None
        self._is_message_open = False
        self._is_turn_open = False
        self._tools: list[str] = []
        self._compaction: str | None = None
        self._ended: dict[str, Any] | None = None
        """The last `message_end`, until its `turn_end`."""
        self._appended: set[str] = set()
        self._due: list[str] = []
        """Entries that an event named, and no `message_appended` yet."""

    def left(self) -> list[str]:
        """Return what was begun and never ended."""
        return [
            f"at the end: {name} is open"
            for name, is_open in (
                ("the prompt", self._turn is not None),
                ("a turn", self._is_turn_open),
                ("a message", self._is_message_open),
                ("a tool", bool(self._tools)),
                ("a compaction", self._compaction is not None),
                (f"the announcement of {self._due}", bool(self._due)),
            )
            if is_open
        ]

    def take(self, event: dict[str, Any]) -> None:
        """The next event."""
        kind = event["type"]
        where = f"seq {event['seq']} {kind}"
        if kind in OF_A_PROMPT:
            self._wrong(event["turn_id"] != self._turn, f"{where} of {event['turn_id']} in {self._turn}")
        match kind:
            case "agent_start":
                self._wrong(self._turn is not None, f"{where} in {self._turn}")
                self._turn = event["turn_id"]
            case "agent_end" | "error":
                self._wrong(self._turn != event["turn_id"], f"{where} of {event['turn_id']} in {self._turn}")
                self._wrong(self._is_message_open, f"{where} before message_end")
                self._wrong(self._is_turn_open, f"{where} before turn_end")
                self._wrong(bool(self._tools), f"{where} before the end of {self._tools}")
                self._turn = None
            case "agent_abort":
                self._wrong(self._turn != event["turn_id"], f"{where} outside")
                self._wrong(self._is_turn_open, f"{where} before turn_end")
            case "turn_start":
                self._wrong(self._turn is None or self._is_turn_open or bool(self._tools), where)
                self._is_turn_open, self._ended = True, None
            case "turn_end":
                self._wrong(not self._is_turn_open or self._is_message_open, where)
                self._wrong((event["message"] is None) != (event["entry_id"] is None), f"{where}: its entry")
                told = None if self._ended is None else self._ended["entry_id"]
                self._wrong(event["entry_id"] != told, f"{where} of {event['entry_id']}, not {told}")
                self._is_turn_open = False
            case "message_start":
                self._wrong(self._is_message_open or not self._is_turn_open, where)
                self._wrong(self._ended is not None and self._ended["message"] is not None, f"{where} again")
                self._is_message_open = True
            case "message_delta" | "thinking_delta":
                self._wrong(not self._is_message_open, where)
            case "message_end":
                self._wrong(not self._is_message_open, where)
                self._wrong((event["message"] is None) != (event["entry_id"] is None), f"{where}: its entry")
                self._is_message_open, self._ended = False, event
                self._names(event["entry_id"])
            case "retry" if event["turn_id"] is not None:
                self._wrong(self._is_message_open or not self._is_turn_open, where)
            case "tool_execution_start":
                self._wrong(self._is_turn_open or self._turn is None, where)
                self._wrong(event["entry_id"] not in self._appended, f"{where} of {event['entry_id']}")
                self._tools.append(event["call_id"])
            case "tool_execution_end":
                self._wrong(event["call_id"] not in self._tools, where)
                if event["call_id"] in self._tools:
                    self._tools.remove(event["call_id"])
                self._names(event["entry_id"])
            case "message_appended":
                self._wrong(event["entry_id"] in self._appended, f"{where} of {event['entry_id']} again")
                self._appended.add(event["entry_id"])
                if event["entry_id"] in self._due:
                    self._due.remove(event["entry_id"])
            case "compaction_start":
                self._wrong(self._compaction is not None, where)
                self._compaction = event["compaction_id"]
            case "compaction_end":
                self._wrong(self._compaction != event["compaction_id"], where)
                self._compaction = None

    def _names(self, entry_id: str | None) -> None:
        if entry_id is not None:
            self._due.append(entry_id)

    def _wrong(self, is_wrong: bool, what: str) -> None:
        if is_wrong:
            self.found.append(what)


def tools_asked(events: list[dict[str, Any]], executed: list[dict[str, Any]]) -> list[str]:
    """Calls that have a `tool_execution_start` and that the client was not asked to run, or the other way
    round, by prompt. Ask once every prompt has ended."""
    told = [(e["turn_id"], e["call_id"]) for e in events if e["type"] == "tool_execution_start"]
    asked = [(p["turn_id"], p["call_id"]) for p in executed]
    return [
        f"{call}: told {told.count(call)}, asked {asked.count(call)}"
        for call in {*told, *asked}
        if told.count(call) != asked.count(call)
    ]

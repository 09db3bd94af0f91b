"""The clock of a model that answers at once: what a framework does between two of its calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

from tests.frameworks.support.talk import FIRST, ToolUse

CALLS = 60
"""Tool calls of the request that is timed."""
HISTORY = 320
"""Tool calls of the history: with their outputs, about 200,000 tokens."""
REQUEST = "Inspect the parts that are left. Say when you are done."
EARLIER = "Inspect the parts that came yesterday."
DONE = "All parts are inspected."


@dataclass
class Clock:
    """When a model was called and when it answered."""

    asked: float = 0.0
    """When the user's request was given."""
    calls: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)

    def begin(self) -> None:
        """Note that the user's request is given now."""
        self.asked = perf_counter()

    def called(self) -> ToolUse | None:
        """Note a call of the model. Return what it does: a tool call, or None for its last words."""
        self.calls.append(perf_counter())
        at = len(self.calls) - 1
        return use(HISTORY + at) if at < CALLS else None

    def answered(self) -> None:
        """Note that the model answers now."""
        self.answers.append(perf_counter())

    @property
    def first_ms(self) -> float:
        """Return the time from the user's request to the first call."""
        return 1_000 * (self.calls[0] - self.asked)

    @property
    def gaps_ms(self) -> list[float]:
        """Return the times from each answer to the next call: the tool, the framework, and the adapter."""
        return [1_000 * (call - answer) for call, answer in zip(self.calls[1:], self.answers, strict=False)]


def use(at: int) -> ToolUse:
    """Return the call number `at` of a long conversation, from 0."""
    return ToolUse("inspect_part", FIRST + at)


def history() -> list[ToolUse]:
    """Return the calls of the history."""
    return [use(at) for at in range(HISTORY)]


def call_id(of: ToolUse) -> str:
    """Return the id of a call."""
    return f"call_{of.number:020}"

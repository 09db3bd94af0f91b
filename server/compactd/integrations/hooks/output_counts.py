"""How much the hook left out of tool outputs, or would have left out, by tool and by rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct


class OutputCount(Struct, frozen=True, array_like=True):
    """A number of outputs and their sizes."""

    count: int = 0
    tokens_before: int = 0
    tokens_after: int = 0

    def plus(self, other: OutputCount) -> OutputCount:
        """Return both together."""
        return OutputCount(
            self.count + other.count,
            self.tokens_before + other.tokens_before,
            self.tokens_after + other.tokens_after,
        )


class OutputCounts(Struct, frozen=True):
    """The counts of a session."""

    tools: dict[str, OutputCount] = {}
    rules: dict[str, OutputCount] = {}
    """By the rules that acted. An output counts for each of its rules."""

    @property
    def total(self) -> OutputCount:
        """All outputs."""
        return sum_of(self.tools.values())

    def plus(self, tool: str, rules: Sequence[str], one: OutputCount) -> OutputCounts:
        """Return the counts with one more output."""
        return self.both(OutputCounts({tool: one}, dict.fromkeys(rules, one)))

    def both(self, other: OutputCounts) -> OutputCounts:
        """Return the counts of two sessions."""
        return OutputCounts(_merged(self.tools, other.tools), _merged(self.rules, other.rules))


class _State(Struct, frozen=True):
    reduced: OutputCounts = OutputCounts()
    observed: OutputCounts = OutputCounts()


def sum_of(counts: Iterable[OutputCount]) -> OutputCount:
    """Return all together."""
    total = OutputCount()
    for one in counts:
        total = total.plus(one)
    return total


def counts_in(folder: Path) -> tuple[OutputCounts, OutputCounts]:
    """Return (what the hooks of all sessions left out, what they would have left out). `folder` is the hooks'
    folder. O(sessions).
    """
    reduced = observed = OutputCounts()
    for state in _states(folder):
        reduced, observed = reduced.both(state.reduced), observed.both(state.observed)
    return reduced, observed


def _states(folder: Path) -> Iterator[_State]:
    for path in folder.glob("*.json"):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=_State)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue


def _merged(counts: Mapping[str, OutputCount], others: Mapping[str, OutputCount]) -> dict[str, OutputCount]:
    names = dict.fromkeys((*counts, *others))
    return {name: sum_of(one[name] for one in (counts, others) if name in one) for name in names}

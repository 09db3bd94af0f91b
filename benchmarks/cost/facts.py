"""The facts of a recorded session: what each message holds, and which of it the agent uses later.

A fact is an atom (path, identifier, literal) or a command of `benchmarks.retention.atoms`, or a line of 24 to
200 characters. Facts that three unrelated sources of recordings share are common and do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from benchmarks.retention.aside import source_of
from benchmarks.retention.atoms import Atoms, commands, folded
from benchmarks.retention.probes import lines_of
from benchmarks.retention.records import Record, working_dir
from benchmarks.retention.sessions import COMMON_SOURCES

Fact = tuple[str, str]


class Facts:
    """Finds the facts of one session's messages."""

    def __init__(self, records: Sequence[Record], common: Collection[Fact] = frozenset()) -> None:
        self.folder = working_dir(records)
        self._atoms = Atoms(self.folder)
        self._common = common

    def of(self, record: Record) -> frozenset[Fact]:
        """Return the facts of a message. O(length)."""
        found: set[Fact] = set(self._atoms.of(record))
        found.update(("cmd", command) for command in commands(record, self.folder))
        found.update(("line", line) for line in lines_of(record))
        return frozenset(found.difference(self._common))

    def of_text(self, text: str) -> frozenset[Fact]:
        """Return the facts of a text without calls. O(length)."""
        return self.of(Record(at=0, role="user", text=text))

    def is_in(self, fact: Fact, text: str) -> bool:
        """Return whether a text contains the fact, whatever surrounds it. O(length)."""
        kind, value = fact
        if kind == "line":
            return value in text
        plain = text.replace(self.folder + "/", "") if self.folder else text
        return value in (folded(plain) if kind == "cmd" else plain)


def common_facts(sessions: Iterable[tuple[str, Sequence[Record]]]) -> frozenset[Fact]:
    """Return the facts that unrelated sources share. `sessions`: names and messages. O(length)."""
    shown: dict[Fact, set[str]] = defaultdict(set)
    for name, records in sessions:
        found = Facts(records)
        for record in records:
            for fact in found.of(record):
                shown[fact].add(source_of(name))
    return frozenset(fact for fact, sources in shown.items() if len(sources) >= COMMON_SOURCES)

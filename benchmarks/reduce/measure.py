"""What a reduction saves and loses in one session.

A *fact* of a tool result is a path, an identifier, a literal or a line (24 to 200 characters) that no earlier
message shows. It is *used* if the agent writes it in one of the next 60 messages, before a result or the user
shows it again. A reduction keeps it if the reduced text still has it. An *edit* is a call that replaces a
text that an earlier result contains whole; it is still possible if a reduced one contains it whole. An *error
line* is a line of a failed call's result that reports an error.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from benchmarks.reduce.reducers import Reducer
from benchmarks.retention.atoms import Atoms
from benchmarks.retention.probes import lines_of
from benchmarks.retention.records import Call, Record, Session
from compactd.core.reduce.calls import written_texts
from compactd.core.reduce.kinds import recognise
from compactd.core.reduce.output import ToolOutput
from compactd.core.text.atoms import ERROR

HORIZON = 60
"""A fact counts as used if the agent writes it within so many messages."""
ERROR_CHARS = range(15, 241)
MIN_OLD_CHARS = 40
"""A shorter old text of one line is no evidence: it may stand anywhere."""
CHARS_PER_TOKEN = 4

Fact = tuple[str, str]
_NUMBER = re.compile(r"^[ \t]*\d+[→|\t]", re.MULTILINE)


class Tally(Struct):
    """Sums over outputs."""

    outputs: int = 0
    tokens: float = 0
    reduced_tokens: float = 0
    used: int = 0
    kept: int = 0
    error_lines: int = 0
    kept_error_lines: int = 0

    def add(self, other: Tally) -> None:
        """Add the sums of another tally."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Measured(Struct):
    """One session under one reducer."""

    name: str
    whole: Tally
    by_kind: dict[str, Tally] = field(default_factory=dict)
    edits: int = 0
    possible_edits: int = 0
    """Edits whose old text stands whole in a reduced result."""
    visible_edits: int = 0
    """Edits whose old text stands whole in a reduced result or in an earlier call."""
    seconds: float = 0.0
    characters: int = 0


class Reading(Struct, frozen=True):
    """What is the same for all reducers: the outputs of a session, their used facts, and the edits."""

    session: Session
    outputs: Mapping[int, ToolOutput]
    """By the number of the message."""
    used: Mapping[int, frozenset[Fact]]


def read(session: Session, common: frozenset[tuple[str, str]]) -> Reading:
    """Return the outputs of a session and the facts that the agent used of each. O(characters)."""
    atoms = Atoms("")
    calls: dict[str, Call] = {}
    facts: list[frozenset[Fact]] = []
    outputs: dict[int, ToolOutput] = {}
    for number, record in enumerate(session.records):
        calls.update((call.call_id, call) for call in record.calls)
        facts.append(facts_of(record, atoms, common))
        if record.role == "tool" and record.text:
            call = calls.get(record.call_id, Call("", record.tool, {}))
            outputs[number] = ToolOutput(call.name, call.arguments, record.text, record.is_error)
    return Reading(session, outputs, dict(_used(session.records, facts)))


def facts_of(record: Record, atoms: Atoms, common: frozenset[tuple[str, str]]) -> frozenset[Fact]:
    """Return the facts in a message."""
    return frozenset(atoms.of(record) - common) | {("line", line) for line in lines_of(record)}


def _used(
    records: Sequence[Record], facts: Sequence[frozenset[Fact]]
) -> Iterator[tuple[int, frozenset[Fact]]]:
    """Yield, for each tool result, the facts of it that the agent used."""
    seen: set[Fact] = set()
    for number, record in enumerate(records):
        waiting = set(facts[number] - seen)
        seen |= facts[number]
        if record.role != "tool":
            continue
        used: set[Fact] = set()
        for later in range(number + 1, min(len(records), number + 1 + HORIZON)):
            if records[later].role == "assistant":
                used |= waiting & facts[later]
            waiting -= facts[later]
            if not waiting:
                break
        yield number, frozenset(used)


def measure(reading: Reading, reducer: Reducer, common: frozenset[tuple[str, str]]) -> Measured:
    """Return what a reducer saves and loses in a session. O(characters)."""
    atoms = Atoms("")
    done = Measured(reading.session.name, Tally())
    kinds: dict[str, Tally] = defaultdict(Tally)
    wholes: list[str] = []
    reduced: list[str] = []
    written: list[str] = []
    for number, record in enumerate(reading.session.records):
        for old in old_texts(record):
            if any(old in text for text in wholes):
                done.edits += 1
                is_possible = any(old in text for text in reduced)
                done.possible_edits += is_possible
                done.visible_edits += is_possible or any(old in text for text in written)
        for call in record.calls:
            written.extend(without_numbers(text) for text in written_texts(call.arguments))
        output = reading.outputs.get(number)
        if output is None:
            continue
        began = time.process_time()
        text = reducer(output)
        done.seconds += time.process_time() - began
        done.characters += len(output.text)
        shown = facts_of(Record(0, "tool", text), atoms, common)
        used = reading.used[number]
        errors = set(_error_lines(output)) if output.is_error else set()
        tally = Tally(
            outputs=1,
            tokens=len(output.text) / CHARS_PER_TOKEN,
            reduced_tokens=len(text) / CHARS_PER_TOKEN,
            used=len(used),
            kept=sum(fact in shown or (fact[0] != "line" and fact[1] in text) for fact in used),
            error_lines=len(errors),
            kept_error_lines=sum(line in text for line in errors),
        )
        done.whole.add(tally)
        kinds[recognise(output).kind].add(tally)
        wholes.append(without_numbers(output.text))
        reduced.append(without_numbers(text))
    done.by_kind = dict(kinds)
    return done


def _error_lines(output: ToolOutput) -> Iterator[str]:
    for line in output.text.splitlines():
        if len(line.strip()) in ERROR_CHARS and ERROR.search(line) is not None:
            yield line.strip()


def old_texts(record: Record) -> Iterator[str]:
    """Yield the texts that the calls of a message replace, as `without_numbers` shows them."""
    for call in record.calls:
        nested = call.arguments.get("edits")
        parts = [call.arguments, *(nested if isinstance(nested, list) else ())]
        for part in parts:
            if not isinstance(part, dict):
                continue
            old = part.get("old_string") or part.get("old_str") or part.get("oldText")
            if isinstance(old, str) and ("\n" in old.strip() or len(old.strip()) >= MIN_OLD_CHARS):
                yield "\n".join(line.rstrip() for line in old.strip("\n").splitlines())


def without_numbers(text: str) -> str:
    """Return a text without line numbers and without white space at the ends of lines."""
    return "\n".join(line.rstrip() for line in _NUMBER.sub("", text).splitlines())

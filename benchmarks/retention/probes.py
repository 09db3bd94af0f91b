"""The probes of a past: what the agent had to remember, found from the future that followed.

A probe is one of: an atom of the past whose first occurrence in the future is written by the agent; a command
or a line that the agent writes again before it is shown; a sentence of the user; a sentence with a decision
or an error whose atoms are probes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from benchmarks.retention.atoms import DECIDES, FAILS, Atom, Atoms, commands, neighbours, sentences, words
from benchmarks.retention.records import Record

CATEGORIES = ("path", "id", "lit", "cmd", "user", "decision", "error", "line")
NAMES = {
    "path": "path",
    "id": "identifier",
    "lit": "literal",
    "cmd": "command",
    "user": "user",
    "decision": "decision",
    "error": "error",
    "line": "line",
}

Probe = tuple[str, str | tuple[str, ...]]
"""(category, what is looked for): an atom, command or line; of a sentence its content words, sorted."""

REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_NUMBERED = re.compile(r"^\s*\d+[→|]\s?")
_LISTED = re.compile(r"^\s*\d+[→:|-]")

OWN_WORDS_CHARS = 6_000
LEAST_WORDS = 3
"""Content words of a sentence that can be looked for."""
LINE_CHARS = range(24, 201)
ERROR_CHARS = range(15, 241)
ERRORS_A_RESULT = 3
ANCHOR_LINE_CHARS = 2_000
ANCHOR_WORD_CHARS = 4
ANCHOR_LINES = 3


class Probes(Struct):
    """The probes of one cut."""

    atoms: dict[Atom, int]
    """Atoms and commands; where in the session the agent wrote them again."""
    sentences: dict[Probe, str]
    """The sentences as they were written."""
    anchors: dict[Atom, frozenset[str]]
    """Words that stood with an atom on its last lines."""
    lines: dict[str, int]
    """Lines, and where the agent wrote them again."""


def probes_of(
    past: Sequence[Record],
    future: Sequence[Record],
    atoms: Atoms,
    folder: str,
    common: Collection[Atom] = frozenset(),
) -> Probes:
    """The probes of `past`. `common` are atoms that say nothing. O(length of both)."""
    found = _atoms_again(past, future, atoms, folder, common)
    return Probes(
        atoms=found,
        sentences=_sentences(past, atoms, found),
        anchors=_anchors(past, atoms, found),
        lines=_lines_again(past, future),
    )


def _atoms_again(
    past: Sequence[Record], future: Sequence[Record], atoms: Atoms, folder: str, common: Collection[Atom]
) -> dict[Atom, int]:
    known: set[Atom] = set()
    ran: set[str] = set()
    for record in past:
        known |= atoms.of(record)
        ran.update(commands(record, folder))
    known.difference_update(common)
    shown: set[Atom] = set()
    run: set[str] = set()
    found: dict[Atom, int] = {}
    for record in future:
        if record.role != "assistant":
            shown |= atoms(record.text)
            continue
        mine = atoms.of(record) - shown
        found.update(dict.fromkeys(sorted(mine & known), record.at))
        shown |= mine
        for command in commands(record, folder):
            if command in ran and command not in run:
                found["cmd", command] = record.at
            run.add(command)
    return found


def lines_of(record: Record) -> set[str]:
    """The lines of a message that can be asked for verbatim, their numbers off."""
    bare = (_NUMBERED.sub("", line).strip() for line in record.lines)
    return {line for line in bare if len(line) in LINE_CHARS}


def _lines_again(past: Sequence[Record], future: Sequence[Record]) -> dict[str, int]:
    known = set().union(*(lines_of(record) for record in past))
    shown: set[str] = set()
    found: dict[str, int] = {}
    for record in future:
        mine = lines_of(record)
        if record.role == "assistant":
            found.update(dict.fromkeys(sorted((mine - shown) & known), record.at))
        shown |= mine
    return found


def _sentences(past: Sequence[Record], atoms: Atoms, again: dict[Atom, int]) -> dict[Probe, str]:
    found: dict[Probe, str] = {}
    for record in past:
        for category, sentence in _sentences_of(record, atoms, again):
            content = tuple(sorted(set(words(sentence))))
            if len(content) >= LEAST_WORDS:
                found[category, content] = sentence
    return found


def _sentences_of(record: Record, atoms: Atoms, again: dict[Atom, int]) -> Iterator[tuple[str, str]]:
    if record.role == "user" and not record.kind:
        text = REMINDER.sub("", record.text)
        if len(text) < OWN_WORDS_CHARS:
            yield from (("user", sentence) for sentence in sentences(text))
    elif record.role == "assistant":
        for sentence in sentences(record.text):
            if DECIDES.search(sentence) and any(atom in again for atom in atoms(sentence)):
                yield "decision", sentence
    elif record.role == "tool":
        errors = 0
        for line in map(str.strip, record.text.splitlines()):
            if (
                len(line) in ERROR_CHARS
                and FAILS.search(line)
                and sum(atom in again for atom in atoms(line)) >= 2
                and not _LISTED.match(line)
            ):
                yield "error", line
                errors += 1
                if errors >= ERRORS_A_RESULT:
                    return


def _anchors(past: Sequence[Record], atoms: Atoms, again: dict[Atom, int]) -> dict[Atom, frozenset[str]]:
    beside: dict[Atom, list[set[str]]] = {}
    for record in past:
        for line in record.lines:
            line = line[:ANCHOR_LINE_CHARS]
            for atom in atoms(line):
                if atom in again and atom[0] != "cmd":
                    near = neighbours(line.replace(atom[1], " ")) - {atom[1].lower()}
                    near = {word for word in near if len(word) >= ANCHOR_WORD_CHARS}
                    if near:
                        beside.setdefault(atom, []).append(near)
    return {atom: frozenset().union(*near[-ANCHOR_LINES:]) for atom, near in beside.items()}

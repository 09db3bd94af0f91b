"""Two simple rival methods: summaries with sections filled by rules, and summaries of the most salient lines.

Both are built from one-line descriptions, because nothing else is known of the originals. Their scores are
near the shared figures on average, not at each cut.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from benchmarks.retention.atoms import DECIDES, FAILS, Atom, Atoms, commands, sentences
from benchmarks.retention.baselines import CHANGING, Method, newest
from benchmarks.retention.points import Cut, count
from benchmarks.retention.probes import ERROR_CHARS, OWN_WORDS_CHARS, REMINDER
from benchmarks.retention.records import Record, path_of

SHARES = {"User": 0.24, "Files": 0.06, "Commands": 0.08, "Errors": 0.06, "Notes": 0.08}
"""The largest share of the budget for each section; the tail gets what is left."""

RANKED_SHARE = 0.8
"""The share of the budget for the lines; the tail gets what is left."""

PICKED_CHARS = range(8, 241)
SPEAKING_WORDS = 4
"""A line of so many words says something of what it names."""


def structured(cut: Cut, budget: int) -> str:
    """The user's sentences, files, commands, errors, notes, the newest of each; then the newest messages."""
    atoms = Atoms(cut.folder)
    sections = {
        "User": _asked(cut.past),
        "Files": _files(cut),
        "Commands": [command for record in cut.past for command in commands(record, cut.folder)],
        "Errors": _errors(cut.past, atoms),
        "Notes": _notes(cut.past, atoms),
    }
    parts: list[str] = []
    for name, lines in sections.items():
        shown = _that_fit(_last_of_each(lines), int(budget * SHARES[name]))
        if shown:
            parts.append("\n".join((f"## {name}", *shown)))
    head = "\n".join(parts)
    return head + "\n" + newest(cut.past, budget - count(head) - 1, cut.sizes)


def _last_of_each(lines: Iterable[str]) -> list[str]:
    """Each line once, where it stands last."""
    last = {line: at for at, line in enumerate(lines)}
    return sorted(last, key=last.__getitem__)


def _that_fit(lines: Sequence[str], budget: int) -> list[str]:
    """The last lines that fit, in order."""
    shown: list[str] = []
    for line in reversed(lines):
        line = f"- {line}"
        budget -= count(line) + 1
        if budget < 0:
            break
        shown.append(line)
    return shown[::-1]


def _asked(past: Sequence[Record]) -> Iterator[str]:
    for record in past:
        if record.role == "user" and not record.kind:
            text = REMINDER.sub("", record.text)
            if len(text) < OWN_WORDS_CHARS:
                yield from sentences(text)


def _files(cut: Cut) -> Iterator[str]:
    for record in cut.past:
        for call in record.calls:
            path = path_of(call)
            if path is not None:
                yield f"{'changed' if call.name.lower() in CHANGING else 'read'} {path}"


def _errors(past: Sequence[Record], atoms: Atoms) -> Iterator[str]:
    for record in past:
        if record.role == "tool":
            for line in map(str.strip, record.text.splitlines()):
                if len(line) in ERROR_CHARS and FAILS.search(line) and atoms(line):
                    yield line


def _notes(past: Sequence[Record], atoms: Atoms) -> Iterator[str]:
    for record in past:
        if record.role == "assistant":
            yield from (s for s in sentences(record.text) if DECIDES.search(s) or atoms(s))


class _Line(Struct):
    text: str
    at: int
    """Its index among the lines."""
    atoms: frozenset[Atom]
    tokens: int
    own: float
    """Its own worth, independent of the atoms in it."""

    def worth(self, shown: Counter[Atom], covered: set[Atom]) -> float:
        """Return the worth per token. `shown` counts the messages that show an atom; `covered` atoms add
        nothing."""
        named = sum(math.log(1 + shown[atom]) for atom in sorted(self.atoms - covered))
        if len(self.text.split()) >= SPEAKING_WORDS:
            named *= 2
        return (self.own + named) / self.tokens


def salience(cut: Cut, budget: int) -> str:
    """Lines by what they name for their tokens, each atom paid once; then the newest messages."""
    atoms = Atoms(cut.folder)
    shown: Counter[Atom] = Counter()
    for record in cut.past:
        shown.update(atoms.of(record))
    lines = _lines(cut, atoms)
    covered: set[Atom] = set()
    heap = [(-line.worth(shown, covered), line.at, line) for line in lines]
    heapq.heapify(heap)
    room = left = int(budget * RANKED_SHARE)
    picked: list[_Line] = []
    while heap:
        _, at, line = heapq.heappop(heap)
        worth = line.worth(shown, covered)
        if worth <= 0:
            continue
        if heap and -worth > heap[0][0]:
            heapq.heappush(heap, (-worth, at, line))
        elif line.tokens <= left:
            left -= line.tokens
            picked.append(line)
            covered |= line.atoms
    picked.sort(key=lambda line: line.at)
    body = "\n".join(line.text for line in picked)
    return body + "\n" + newest(cut.past, budget - room, cut.sizes)


def _lines(cut: Cut, atoms: Atoms) -> list[_Line]:
    """The lines that can be picked, each once, where it stands last."""
    worth: dict[str, float] = {}
    for record in cut.past:
        for text, own in _candidates(record, cut.folder, atoms):
            worth[text] = max(own, worth.pop(text, 0.0))
    return [
        _Line(text, at, frozenset(atoms(text) - cut.common), count(text) + 1, own)
        for at, (text, own) in enumerate(worth.items())
    ]


def _candidates(record: Record, folder: str, atoms: Atoms) -> Iterator[tuple[str, float]]:
    """(line, what it is worth whatever it names)."""
    yield from ((sentence, 10.0) for sentence in _asked([record]))
    yield from (("$ " + command, 5.0) for command in commands(record, folder))
    if record.role == "assistant":
        for sentence in sentences(record.text):
            if DECIDES.search(sentence):
                yield sentence, 3.0 if atoms(sentence) else 0.0
    for line in map(str.strip, record.rendered.splitlines()):
        if len(line) in PICKED_CHARS:
            fails = record.role == "tool" and FAILS.search(line) is not None and bool(atoms(line))
            yield line, 2.0 if fails else 0.0


RANKED: dict[str, Method] = {"structured": structured, "salience": salience}
"""The methods, by their names in the shared figures."""

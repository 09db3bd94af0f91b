"""Scores a context: the probes in it that are near their anchors, and its help in predicting the future."""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from benchmarks.retention.atoms import Atoms, folded, neighbours, words
from benchmarks.retention.probes import CATEGORIES, Probe, Probes
from benchmarks.retention.records import Record

WINDOW_CHARS = 200
"""Either side of an atom, where the words that it stood with are looked for."""
OCCURRENCES = 60
SENTENCE_SHARE = 0.6
PLACES = 400
"""How many of a word's last occurrences are examined."""
LEAST_PROBES = 3
"""The fewest probes of a category that make it count in a cut."""
FUTURE_TOKENS = 15_000

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 24}]


def kept(probes: Probes, context: str, atoms: Atoms, folder: str) -> set[Probe]:
    """The probes that `context` holds, linked. O(length + probes × occurrences)."""
    plain = context.replace(folder + "/", "") if folder else context
    shown = atoms(context)
    lower, flat = plain.lower(), folded(plain)
    found: set[Probe] = set()
    for atom in probes.atoms:
        category, value = atom
        if category == "cmd":
            is_there = value in flat
        elif atom in shown or (category == "path" and value in plain):
            is_there = _is_linked(value.lower(), probes.anchors.get(atom), lower)
        else:
            is_there = False
        if is_there:
            found.add(atom)
    said = _Places(context)
    found.update(probe for probe in probes.sentences if said.covers(probe[1]))
    found.update(("line", line) for line in probes.lines if line in context)
    return found


def _is_linked(value: str, anchors: Collection[str] | None, lower: str) -> bool:
    if anchors is None:
        return True
    needed = min(2, len(anchors))
    at = lower.find(value)
    for _ in range(OCCURRENCES):
        if at < 0:
            return False
        end = at + len(value)
        near = lower[max(0, at - WINDOW_CHARS) : at] + " " + lower[end : end + WINDOW_CHARS]
        if len(neighbours(near).intersection(anchors)) >= needed:
            return True
        at = lower.find(value, end)
    return False


class _Places:
    """The positions of each content word of a text."""

    def __init__(self, text: str) -> None:
        self._places: dict[str, list[int]] = {}
        for at, word in enumerate(words(text)):
            self._places.setdefault(word, []).append(at)

    def covers(self, wanted: Sequence[str]) -> bool:
        """True where enough of the words stand within one window."""
        known = [(word, self._places[word][-PLACES:]) for word in wanted if word in self._places]
        if len(known) / len(wanted) < SENTENCE_SHARE:
            return False
        reach = max(12, 2 * len(wanted) + 8)
        events = sorted((at, word) for word, places in known for at in places)
        inside: Counter[str] = Counter()
        first = 0
        for at, word in events:
            inside[word] += 1
            while events[first][0] < at - reach:
                left = events[first][1]
                inside[left] -= 1
                if not inside[left]:
                    del inside[left]
                first += 1
            if len(inside) / len(wanted) >= SENTENCE_SHARE:
                return True
        return False


def tally(full: Collection[Probe], found: Collection[Probe]) -> dict[str, tuple[int, int]]:
    """Return for each category (probes found, probes that the whole past contains)."""
    all_of = Counter(probe[0] for probe in full)
    found_of = Counter(probe[0] for probe in full if probe in found)
    return {name: (found_of[name], all_of[name]) for name in CATEGORIES if all_of[name]}


def linked(tallied: Mapping[str, Sequence[int]]) -> float | None:
    """Return the mean share over the categories with enough probes; None if no category has enough."""
    shares = [found / total for found, total in tallied.values() if total >= LEAST_PROBES]
    return sum(shares) / len(shares) if shares else None


def written_and_seen(future: Sequence[Record], tokens: Sequence[int]) -> tuple[bytes, bytes]:
    """Return what the agent wrote in the next tokens, and what it observed meanwhile. `tokens` has the size
    of each message."""
    wrote: list[str] = []
    saw: list[str] = []
    spent = 0
    for record, size in zip(future, tokens, strict=True):
        spent += size
        if record.role == "assistant":
            wrote.append(record.text + "\n" + record.given)
        else:
            saw.append(record.text)
        if spent > FUTURE_TOKENS:
            break
    return "\n".join(wrote).encode(), ("\n".join(saw) + "\n").encode()


def packed(data: bytes) -> int:
    """K: bytes that LZMA2 makes of `data`."""
    return len(lzma.compress(data, format=lzma.FORMAT_RAW, filters=_FILTERS))


def surprise(context: str, wrote: bytes, saw: bytes) -> int:
    """K(A|C,O): bytes that what the agent wrote takes for who knows `context` and what it observed."""
    known = context.encode() + b"\n" + saw
    return packed(known + wrote) - packed(known)

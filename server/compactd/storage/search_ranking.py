"""Rank the messages that contain all words of a query (BM25), and make their snippets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from compactd.protocol.wire import Hit
from compactd.storage.search_words import readable

SNIPPET_CHARS = 160
"""The most code points of a snippet."""

# The constants of BM25, as in FTS5 (sqlite.org/fts5.html, "The bm25() function").
_K1 = 1.2
_B = 0.75


class Candidate(Struct, frozen=True):
    """A message that contains all words of the query."""

    session_id: str
    entry_id: str
    role: str
    at: float
    text: str
    """An `index_text`."""


def best_hits(found: Sequence[Candidate], phrases: Sequence[Sequence[str]], limit: int) -> tuple[Hit, ...]:
    """Return the `limit` best candidates as hits, best first. See `best`."""
    return tuple(
        Hit(
            session_id=one.session_id,
            entry_id=one.entry_id,
            role=one.role,
            at=one.at,
            snippet=readable(part),
        )
        for one, part in best(found, phrases, limit)
    )


def best(
    found: Sequence[Candidate], phrases: Sequence[Sequence[str]], limit: int
) -> list[tuple[Candidate, str]]:
    """Return the `limit` best candidates, each with a snippet. They are sorted by their BM25 score,
    those with equal scores newest first.

    All candidates contain all phrases, so the rarity of a phrase does not matter. The score depends on how
    often the phrases occur, relative to the message's length. O(length of the texts).
    """
    patterns = [re.compile(r"\W+".join(map(re.escape, words))) for words in _fold_phrases(phrases)]
    mean = sum(len(one.text) for one in found) / len(found) if found else 0
    scored: list[tuple[float, float, int, int]] = []
    for number, one in enumerate(found):
        text = one.text.lower()
        norm = _K1 * (1 - _B + _B * len(text) / mean) if mean else _K1
        score, first = 0.0, -1
        for pattern in patterns:
            hit = pattern.search(text)
            # The index also folds accents, which `lower` does not. So no hit here still counts as one.
            count = 1 if hit is None else _count(pattern, text)
            if first < 0 and hit is not None:
                first = hit.start()
            score += count * (_K1 + 1) / (count + norm)
        scored.append((-score, -one.at, number, first))
    scored.sort()
    return [
        (found[number], snippet(found[number].text, max(first, 0))) for _, _, number, first in scored[:limit]
    ]


def snippet(text: str, at: int) -> str:
    """Return the text around the offset `at`, on one line, cut at word boundaries."""
    begin = max(0, at - SNIPPET_CHARS // 3)
    end = min(len(text), begin + SNIPPET_CHARS)
    part = text[begin:end]
    if begin:
        head, blank, rest = part.partition(" ")
        part = f"…{rest}" if blank and len(head) < at - begin else f"…{part}"
    if end < len(text):
        kept, blank, _ = part.rpartition(" ")
        part = f"{kept}…" if blank and len(kept) > SNIPPET_CHARS // 2 else f"{part}…"
    return " ".join(part.split())


def _fold_phrases(phrases: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[word.lower() for word in words] for words in phrases]


MAX_COUNTED = 50
"""The most occurrences of a phrase that are counted in a message. More would hardly change BM25's score."""


def _count(pattern: re.Pattern[str], text: str) -> int:
    count = 0
    for count, _ in enumerate(pattern.finditer(text), start=1):
        if count == MAX_COUNTED:
            break
    return count

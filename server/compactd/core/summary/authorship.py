"""Who wrote what in a conversation, and what earlier versions took for the user's that is not.

Until authors were decided where text enters, any text in the role `user` could set a constraint unless its
form was on a list. A session stored then is judged anew: constraints, goals and requests are worked out from
the originals at each compaction, by today's rules. This module tells what that changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from compactd.core.authors.authors import USER, stretches
from compactd.core.constraints.constraints import is_constraint
from compactd.core.constraints.user_text import sentences_in
from compactd.core.history.entries import Item, is_summary
from compactd.core.history.pins import is_pinned
from compactd.core.summary.answers import heading_of
from compactd.core.summary.attribution import ForeignWords, TypedWords, attributed
from compactd.core.text.summary_format import CONSTRAINTS, CONTEXT
from compactd.protocol.messages import Author


class Foreign(Struct, frozen=True, kw_only=True):
    """A sentence in the user's role that sets a limit and that the user did not type."""

    entry_id: str
    author: Author
    text: str


class Claim(Struct, frozen=True, kw_only=True):
    """A line of a summary that speaks for the user without the user's words."""

    entry_id: str
    text: str


class Authorship(Struct, frozen=True, kw_only=True):
    """What a conversation holds in the role `user`, by author, and what of it only looked like the user's."""

    stretches: dict[str, int]
    """Texts in the role `user` by author, summaries left out."""
    foreign: tuple[Foreign, ...]
    """Sentences that an earlier version could have taken for the user's constraints."""
    claims: tuple[Claim, ...]
    """Of the newest summary. The next compaction shows them as remarks, or not at all."""
    pinned: tuple[str, ...]
    """Messages that the file pins although nobody typed them."""

    @property
    def is_clean(self) -> bool:
        """Nothing in it changed its author."""
        return not (self.foreign or self.claims or self.pinned)


def authorship(items: Sequence[Item]) -> Authorship:
    """Judges the originals of a conversation and its summaries, oldest first. O(characters)."""
    counts: Counter[str] = Counter()
    foreign: list[Foreign] = []
    pinned: list[str] = []
    summary: Item | None = None
    for item in items:
        message = item.message
        if is_summary(message):
            summary = item
            continue
        if message.role != "user":
            continue
        has_typed = False
        for stretch in stretches(message):
            if stretch.text.strip():
                counts[stretch.author] += 1
                has_typed = has_typed or stretch.author == USER
                if stretch.author != USER:
                    foreign.extend(
                        Foreign(entry_id=item.entry_id, author=stretch.author, text=sentence)
                        for line in stretch.text.split("\n")
                        for sentence in sentences_in(line)
                        if is_constraint(sentence)
                    )
        if is_pinned(message) and not has_typed:
            pinned.append(item.entry_id)
    claims = tuple(_claims(summary, items)) if summary is not None else ()
    return Authorship(
        stretches=dict(counts.most_common()), foreign=tuple(foreign), claims=claims, pinned=tuple(pinned)
    )


def _claims(summary: Item, items: Sequence[Item]) -> Iterator[Claim]:
    originals = [item for item in items if not is_summary(item.message)]
    text = "\n".join(stretch.text for stretch in stretches(summary.message))
    found = attributed(
        text,
        TypedWords(originals),
        ForeignWords(originals),
        rules=(heading_of(CONSTRAINTS),),
        mixed=(),
        remarks_under=CONTEXT,
        fits=lambda _: True,
    )
    yield from (Claim(entry_id=summary.entry_id, text=line) for line in found.remarks)

"""Report who wrote what in a session, and what earlier versions of compactd wrongly took for the user's
words.

Earlier versions decided by the role of a message: any text in the role `user` could set a constraint unless
its form was on a list. Now each stretch of text gets an author when it is read
(docs/dev/decisions/0007-authors-and-quoting.md). Old sessions need no migration, because constraints, goals
and requests are derived again from the originals at each compaction. This report lists what the new rule
changes for an old session.
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
from compactd.core.summary.attribution import ForeignWords, TypedWords, attribute
from compactd.core.text.summary_format import CONSTRAINTS, CONTEXT
from compactd.protocol.messages import Author


class ForeignSentence(Struct, frozen=True, kw_only=True):
    """A sentence of a message in the role `user` that sets a limit but that the user did not type."""

    entry_id: str
    author: Author
    """Who wrote it instead."""
    text: str


class Claim(Struct, frozen=True, kw_only=True):
    """A line of a summary that makes a statement in the user's name which the user's words do not support."""

    entry_id: str
    """The id of the summary."""
    text: str


class Authorship(Struct, frozen=True, kw_only=True):
    """The authors of the texts in the role `user`, and the texts that only seemed to be the user's."""

    stretches: dict[str, int]
    """The number of texts in the role `user`, by author. Summaries are not counted."""
    foreign: tuple[ForeignSentence, ...]
    """Sentences that an earlier version could have taken for the user's constraints."""
    claims: tuple[Claim, ...]
    """Unsupported lines of the newest summary. The next compaction turns them into remarks or drops them."""
    pinned: tuple[str, ...]
    """Ids of messages that the session file pins although the user typed nothing in them."""

    @property
    def is_clean(self) -> bool:
        """Whether the report lists nothing, so that nothing changes for this session."""
        return not (self.foreign or self.claims or self.pinned)


def authorship(items: Sequence[Item]) -> Authorship:
    """Find out who wrote the messages of a conversation. `items` are its originals and summaries, oldest
    first. O(characters)."""
    counts: Counter[str] = Counter()
    foreign: list[ForeignSentence] = []
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
                        ForeignSentence(entry_id=item.entry_id, author=stretch.author, text=sentence.text)
                        for line in stretch.text.split("\n")
                        for sentence in sentences_in(line)
                        if is_constraint(sentence.text)
                    )
        if is_pinned(message) and not has_typed:
            pinned.append(item.entry_id)
    claims = tuple(_claims(summary, items)) if summary is not None else ()
    return Authorship(
        stretches=dict(counts.most_common()), foreign=tuple(foreign), claims=claims, pinned=tuple(pinned)
    )


def _claims(summary: Item, items: Sequence[Item]) -> Iterator[Claim]:
    """Yield the unsupported lines of a summary."""
    originals = [item for item in items if not is_summary(item.message)]
    text = "\n".join(stretch.text for stretch in stretches(summary.message))
    found = attribute(
        text,
        TypedWords(originals),
        ForeignWords(originals),
        rules=(heading_of(CONSTRAINTS),),
        mixed=(),
        remarks_under=CONTEXT,
        fits=lambda _: True,
    )
    yield from (Claim(entry_id=summary.entry_id, text=line) for line in found.remarks)

"""Condense the newest request if it is too large for a target: keep what the user typed, and the beginning
and the end of what the user pasted.

The sentences that the user typed stay word for word and in order. A long pasted part becomes a quotation of
its beginning and its end, with a mark between them, so that no later reader takes pasted words for the user's
own. The journal keeps the whole message; `session/expand` returns it. (Rules: docs/dev/behaviour.md, "A
compaction", 2.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.constraints.constraints import Constraints
from compactd.core.constraints.typed_stretches import TypedStretch, typed_stretches
from compactd.core.constraints.user_text import typed_sentences
from compactd.core.history.entries import EntryId, Item, Stub, with_stub
from compactd.core.history.outline import Outline
from compactd.core.planning.clip import MIN_CLIP, clip_text, level_of, write_mark
from compactd.core.planning.prune import restate_stub
from compactd.core.planning.request import Inputs
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.tokens.counting import Counter, block_tokens, message_tokens
from compactd.protocol.messages import Text

REQUEST_DIVISOR: Final = 3
"""A newest request that takes more than a third of the target that a client chose is condensed to a third of
it. This is the divisor."""

SHARES: Final = (1.0, 0.9, 0.8, 0.65, 0.5)
"""If pasted parts do not fit the room that they should fit, they get these shares of it."""

GAP: Final = "> …"
"""What is shown instead of a part that is left out, except for the part with the mark."""
SMALL_GAP: Final = 4
"""A pasted part of at most this many tokens is shown, because a gap would take as many."""

_SENTENCES: Final = LazyPattern(r"(?:(?![.!?]\s)[^\n。！？])*+(?:[.!?](?=\s)|[\n。！？]|\Z)\s*+")
"""Matches a sentence, or the rest of a line, with the white space after it."""
_PIECES: Final = LazyPattern(r"\S{1,40}\s*|\s+")
"""Matches a word of at most 40 characters, with the white space after it."""


class _Part(Struct, frozen=True):
    """A part of the message's texts."""

    block: int
    """The index of its block in the message."""
    text: str
    is_typed: bool
    whole: str
    """How the part is shown if all of it is shown."""
    is_quoted: bool
    """Whether the part becomes a quotation if it is clipped. A part whose author the message names needs no
    quotation marks."""
    tokens: int
    """The tokens of `whole`."""


def condensed_request(inputs: Inputs, outline: Outline) -> Stub | None:
    """Return how the newest request is shown if it takes more than a third of the target that a client chose;
    None if it stays as the view shows it. `outline` is that of the view. O(length of the request)."""
    target, at = inputs.request.chosen_target, outline.request
    if target is None or at is None or outline.tokens(at) * REQUEST_DIVISOR <= target:
        return None
    item = inputs.view.items[at]
    original = next((one for one in reversed(inputs.originals) if one.entry_id == item.entry_id), item)
    return condense(item, original, target // REQUEST_DIVISOR, inputs.counter)


def unstated_constraints(said: Constraints, shown: Item) -> frozenset[str]:
    """Return the texts of the constraints that a message stated, but that it does not state in the form
    `shown`. O(length of that form)."""
    stated = frozenset(one.text for one in typed_sentences(shown))
    return frozenset(one.text for one in said.in_force if one.entry_id == shown.entry_id) - stated


def condense(item: Item, original: Item, most_tokens: int, counter: Counter) -> Stub | None:
    """Return the stub that shows a user's message in at most `most_tokens`. Blocks that are no texts stay,
    and the texts get at least `MIN_CLIP` tokens; so the result can be larger. `item` is the message as the
    view shows it, `original` as it was appended. Return None if the stub would not make `item` smaller.

    If even what the user typed is too large, the first and the last of the typed sentences stay. O(length).
    """
    texts = {at: block for at, block in enumerate(original.message.content) if isinstance(block, Text)}
    others = sum(block_tokens(b, counter) for b in item.message.content if not isinstance(b, Text))
    room = max(MIN_CLIP, most_tokens - others)
    size = sum(counter.count(block.text) for block in texts.values())
    shown = _Shown(item.entry_id, tuple(_parts(original, texts, counter)), size, counter)
    found = _with_all_typed(shown, room) or _with_first_and_last(shown, room)
    changed = [(at, text) for at, text in found.items() if text != texts[at].text]
    stub = Stub(item.entry_id, restate_stub(item, changed), 0)
    tokens = message_tokens(with_stub(item, stub).message, counter)
    return Stub(stub.entry_id, stub.texts, tokens) if tokens < item.tokens else None


def _parts(original: Item, texts: Mapping[int, Text], counter: Counter) -> Iterator[_Part]:
    """Yield the parts of the message's texts, in order."""
    for at, block in texts.items():
        for kind, group in groupby(typed_stretches(original.message, block), key=_kind_of_part):
            stretches = list(group)
            text = block.text[stretches[0].start : stretches[-1].end]
            whole = quotation(text) if stretches[0].kind == "bare" else text
            yield _Part(at, text, kind == "typed", whole, kind != "named", counter.count(whole))


def _kind_of_part(stretch: TypedStretch) -> object:
    """Return a value that is the same for neighbours that become one part."""
    return (stretch.kind, stretch.start) if stretch.kind == "framed" else stretch.kind


def quotation(text: str) -> str:
    """Return `text` with a quotation mark before each line. Line ends at its beginning and end are left
    out."""
    return "\n".join(f"> {line}" for line in text.strip("\n").split("\n"))


class _Shown(Struct, frozen=True):
    """The parts of a message, and how a choice of them looks."""

    entry_id: EntryId
    parts: Sequence[_Part]
    size: int
    """The tokens of the whole texts."""
    counter: Counter

    def places(self, *, typed: bool) -> list[int]:
        """Return the indices of the parts that the user typed, or of those that the user did not type."""
        return [at for at, part in enumerate(self.parts) if part.is_typed == typed]

    def count(self, texts: Mapping[int, str]) -> int:
        """Return the tokens of these texts."""
        return sum(map(self.counter.count, texts.values()))

    def clip(self, part: _Part, most_tokens: int) -> str:
        """Return the beginning and the end of a part, in at most `most_tokens` if that is possible."""
        text = part.text.strip("\n")
        size = self.counter.count(text)
        show = quotation if part.is_quoted else None
        return clip_text(text, most_tokens, size, self.entry_id, self.counter, show)

    def texts(self, forms: Sequence[str | None], *, has_mark: bool = False) -> dict[int, str]:
        """Return the text of each block, made of the `forms` of the parts. None leaves a part out, with a gap
        in its place. Unless `has_mark` says that one of the forms contains a mark, the largest gap becomes a
        mark that counts everything that is left out."""
        blocks: dict[int, list[tuple[str, bool]]] = {}
        gaps: list[tuple[int, int, int]] = []  # (tokens, block, index of the piece)
        for part, form in zip(self.parts, forms, strict=True):
            pieces = blocks.setdefault(part.block, [])
            place = (part.block, len(pieces) - 1)
            if form is None and gaps and gaps[-1][1:] == place:
                gaps[-1] = (gaps[-1][0] + part.tokens, *place)
            elif form is None:
                gaps.append((part.tokens, part.block, len(pieces)))
                pieces.append((GAP, False))
            elif part.is_typed and pieces and pieces[-1][1]:
                pieces[-1] = (pieces[-1][0] + form, True)
            else:
                pieces.append((form, part.is_typed))
        if gaps and not has_mark:
            stays = sum(part.tokens for part, form in zip(self.parts, forms, strict=True) if form is not None)
            _, block, at = max(gaps, key=lambda gap: gap[0])
            mark = write_mark(max(0, self.size - stays), self.size, self.entry_id)
            blocks[block][at] = (quotation(mark), False)
        return {block: _join(pieces) for block, pieces in blocks.items()}


def _join(pieces: Sequence[tuple[str, bool]]) -> str:
    """Join pieces of a text so that each begins on a line of its own. What the user typed, for which the
    second value is true, is after a blank line if a quotation is before it."""
    text: list[str] = []
    for piece, is_typed in pieces:
        if text and not text[-1].endswith("\n"):
            text.append("\n\n" if is_typed else "\n")
        text.append(piece)
    return "".join(text)


def _with_all_typed(shown: _Shown, room: int) -> dict[int, str] | None:
    """Return the texts with everything that the user typed, and as much of the pasted parts as fits `room`:
    the largest are clipped first, to one size. If there are too many to show some of each, some are left
    out. Return None if what the user typed does not fit."""
    parts, pasted = shown.parts, shown.places(typed=False)
    sizes = [parts[at].tokens for at in pasted]
    left = room - sum(part.tokens for part in parts if part.is_typed)
    forms: list[str | None] = [part.whole for part in parts]
    for share in SHARES:
        level = level_of(sizes, int(left * share))
        if level is not None and level >= MIN_CLIP:
            clipped = [
                form if part.is_typed or part.tokens <= level else shown.clip(part, level)
                for part, form in zip(parts, forms, strict=True)
            ]
            texts = shown.texts(clipped, has_mark=True)
            if shown.count(texts) <= room:
                return texts
    for at in pasted:
        if parts[at].tokens > SMALL_GAP:
            forms[at] = None
    least = shown.texts(forms)
    spare = room - shown.count(least)
    if spare < 0 or None not in forms:
        return None
    for share in SHARES:
        tried, is_clipped = _fill_gaps(shown, forms, int(spare * share))
        texts = shown.texts(tried, has_mark=is_clipped)
        if (is_clipped or None in tried) and shown.count(texts) <= room:
            return texts
    return least


def _fill_gaps(shown: _Shown, forms: Sequence[str | None], room: int) -> tuple[list[str | None], bool]:
    """Return `forms` with as many of the parts that are left out as fit `room`, the first ones first, and
    whether the largest of the others is clipped to what is left."""
    filled, left = list(forms), room
    for at, part in enumerate(shown.parts):
        if filled[at] is None and part.tokens <= left:
            filled[at] = part.whole
            left -= part.tokens
    gaps = [at for at, form in enumerate(filled) if form is None]
    if left < MIN_CLIP or not gaps:
        return filled, False
    largest = max(gaps, key=lambda at: shown.parts[at].tokens)
    filled[largest] = shown.clip(shown.parts[largest], left)
    return filled, True


def _with_first_and_last(shown: _Shown, room: int) -> dict[int, str]:
    """Return the texts with the first and the last typed sentences, as many as fit `room`. If not even one
    fits, the first and the last words stay instead."""
    for pattern in (_SENTENCES, _PIECES):
        split = replace(shown, parts=tuple(_split_typed(shown, pattern)))
        kept = _ends_that_fit(split, room)
        if kept:
            break
    return split.texts([part.text if at in kept else None for at, part in enumerate(split.parts)])


def _split_typed(shown: _Shown, pattern: LazyPattern) -> Iterator[_Part]:
    """Yield the parts, with the typed ones split into what `pattern` matches."""
    for part in shown.parts:
        if part.is_typed:
            for found in pattern.finditer(part.text):
                if found[0]:
                    yield replace(part, text=found[0], whole=found[0], tokens=shown.counter.count(found[0]))
        else:
            yield part


def _ends_that_fit(shown: _Shown, room: int) -> frozenset[int]:
    """Return the indices of the first and the last typed parts that fit `room` with the gaps between them.
    One is taken from the beginning and one from the end in turn."""
    typed = shown.places(typed=True)
    order = [at for pair in zip(typed, reversed(typed), strict=True) for at in pair][: len(typed)]
    left, count = room, 0
    for at in order:
        left -= shown.parts[at].tokens
        if left < 0:
            break
        count += 1
    while count:
        kept = frozenset(order[:count])
        texts = shown.texts([part.text if at in kept else None for at, part in enumerate(shown.parts)])
        if shown.count(texts) <= room:
            return kept
        count = min(count - 1, count * room // shown.count(texts))
    return frozenset()

"""Tell what each sentence of a text is worth to a reader, by its words, its place and the titles above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from compactd.core.work.line_words import lowered, states, sums_up, tells_nothing, tone_of, worth_of_words
from compactd.core.work.text_outline import COLUMNS, HEAD, ITEM, LEAD, TITLED, Node

PLACE_WORTH: Final = 2.5
"""What the first line that tells something, and the last line, are worth for their place."""
VERDICT_WORTH: Final = 2.5
"""What a line near the end is worth if it sums up."""
QUESTION_WORTH: Final = 2.5
"""What a question in the last line is worth."""
ELDEST_WORTH: Final = 0.5
"""What the first line below a title or item is worth for its place."""
END: Final = 0.85
"""Where the end of a text begins."""
SUB_ITEM_COST: Final = 0.7
"""What an item loses that is part of another one."""
LEAD_COST: Final = 1.0
"""What a line loses that introduces others."""
VALUE_SHARE: Final = 4.0
"""What the names and words of the most valuable line add to its worth."""


def worths_of(nodes: Sequence[Node], value: Callable[[str], float]) -> list[float]:
    """Return what each node is worth, by its words and its place; 0 if it tells nothing alone. O(length)."""
    values = [value(node.text) for node in nodes]
    most = max(values) or 1.0
    tones: list[float] = []
    """What is added to the worth of a node because of the titles above it."""
    parents: set[int] = set()
    worths: list[float] = []
    last = nodes[-1].line
    is_first = True
    for n, node in enumerate(nodes):
        low = lowered(node.text)
        tone = tones[node.parent] if node.parent >= 0 else 0.0
        is_title = node.kind in (HEAD, TITLED, LEAD)
        if is_title:
            tone += tone_of(low)
        tones.append(tone)
        is_eldest = node.parent not in parents
        parents.add(node.parent)
        is_bare = is_title and node.series < 0 and (node.kind != LEAD or not states(low))
        if is_bare or node.kind == COLUMNS or tells_nothing(low, is_last=node.line == last):
            worths.append(0.0)
            continue
        is_last = node.line == last
        worth = worth_of_words(node.text, low) + QUESTION_WORTH * (is_last and low.endswith("?"))
        if sums_up(low):
            worth += VERDICT_WORTH if is_last or n >= END * len(nodes) else 1.0
        if worth > 0:
            worth += PLACE_WORTH * (is_last or (is_first and tone >= 0))
        worth += ELDEST_WORTH * is_eldest + VALUE_SHARE * values[n] / most + tone
        if node.kind == LEAD and node.series < 0:
            worth -= LEAD_COST
        if node.kind == ITEM and node.parent >= 0:
            above = nodes[node.parent]
            worth -= SUB_ITEM_COST * (above.kind == ITEM or above.series >= 0)
        worths.append(max(0.1, worth))
        is_first = False
    return worths

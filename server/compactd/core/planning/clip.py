"""Clip tool results that are too large: keep the beginning and the end of each, with a mark for what is
missing between them.

Only the newest batch of tool results (those of one assistant message) is clipped, and only if it alone
exceeds what a request may take (docs/dev/behaviour.md, "A compaction", 2). The journal keeps the whole
output; `session/expand` returns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compactd.core.history.entries import EntryId, Item
from compactd.core.planning.prune import SHOWS_ALL, Pruning, first_error, pruning_of
from compactd.core.text.quoting import quote_line
from compactd.core.text.tool_results import text_of_result
from compactd.core.tokens.counting import Counter, block_tokens
from compactd.protocol.messages import ToolResult

MIN_CLIP = 48
"""The smallest size, in tokens, to which a result is clipped. A shorter one would contain little except the
mark."""

HEAD_SHARE = 0.5
"""The share of the kept text that comes from the beginning of a result. The rest comes from the end, because
a command reports its outcome there."""

MIN_TELLING = 128
"""If a result is clipped to at least this many tokens, the mark also quotes the result's first error line."""

TRIES = 12
"""The most attempts to shorten the kept text until it fits."""


def clip(
    items: Sequence[Item], places: Sequence[tuple[int, int]], most_tokens: int, counter: Counter
) -> Pruning | None:
    """Shorten tool results, the largest first, until all of them together take at most `most_tokens`.

    `places` are pairs of (message index, block index). Return None if the results would have to be shorter
    than `MIN_CLIP` tokens each. The cost is proportional to the text of the results, with several token
    counts for each.
    """
    sizes: list[tuple[int, int, ToolResult, int]] = []
    for index, at in places:
        block = items[index].message.content[at]
        if isinstance(block, ToolResult):
            sizes.append((index, at, block, block_tokens(block, counter)))
    level = level_of([size for *_, size in sizes], most_tokens)
    if level is None:
        return Pruning()
    if level < MIN_CLIP:
        return None
    shown: list[tuple[int, int, str, int]] = []
    for index, at, block, size in sizes:
        if size > level:
            text = clip_text(text_of_result(block), level, size, items[index].entry_id, counter)
            shown.append((index, at, text, size - counter.count(text)))
    return pruning_of(items, shown)


def clip_text(
    text: str,
    most_tokens: int,
    size: int,
    entry_id: EntryId,
    counter: Counter,
    show: Callable[[str], str] | None = None,
) -> str:
    """Return the beginning and the end of `text` with a mark between them, together at most `most_tokens`.
    `size` is the number of tokens of the whole text. The text is cut between code points, at a line end if
    one is near. `show` turns the result into the form in which it is shown, such as a quotation; then
    `most_tokens` applies to that form."""
    show = show or str
    error = first_error(text) if most_tokens >= MIN_TELLING else ""
    keep = max(0, most_tokens - counter.count(show(write_mark(size, size, entry_id, error))))
    chars = len(text) * keep // max(1, size)
    shown = show(write_mark(size, size, entry_id))
    for _ in range(TRIES):
        head = head_of(text, round(chars * HEAD_SHARE))
        tail = tail_of(text[len(head) :], chars - round(chars * HEAD_SHARE))
        kept = counter.count(head) + counter.count(tail)
        told = "" if error and error in head + tail else error
        shown = show(f"{head}{write_mark(max(0, size - kept), size, entry_id, told)}{tail}")
        if counter.count(shown) <= most_tokens or chars == 0:
            break
        chars = min(chars - 1, chars * 9 // 10)
    return shown


def write_mark(gone: int, size: int, entry_id: EntryId, error: str = "") -> str:
    """Return the text that replaces the middle of a text: how many of its `size` tokens are gone, and how to
    see the whole. It quotes `error`, the first error line, unless that is empty."""
    told = f" {quote_line(error, 'tool')};" if error else ""
    return f"\n… [clipped {gone:,} of {size:,} tokens;{told} {SHOWS_ALL.format(entry_id)}] …\n"


def head_of(text: str, chars: int) -> str:
    """Return the first `chars` code points, cut at a line end if one is near."""
    head = text[: max(0, chars)]
    end = head.rfind("\n", len(head) * 4 // 5)
    return head[:end] if end > 0 else head


def tail_of(text: str, chars: int) -> str:
    """Return the last `chars` code points, cut at a line end if one is near."""
    tail = text[len(text) - chars :] if 0 < chars < len(text) else text if chars > 0 else ""
    start = tail.find("\n", 0, len(tail) // 5 + 1)
    return tail[start + 1 :] if start >= 0 else tail


def level_of(sizes: Sequence[int], most_tokens: int) -> int | None:
    """Return the size, in tokens, to which larger results are shortened so that all results together take at
    most `most_tokens`. Smaller results stay as they are. Return None if all results already fit. O(n log
    n)."""
    if sum(sizes) <= most_tokens:
        return None
    left = max(0, most_tokens)
    rising = sorted(sizes)
    for at, size in enumerate(rising):
        share = left // (len(rising) - at)
        if size > share:
            return share
        left -= size
    return 0

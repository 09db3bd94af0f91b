"""The summary without a model: what is likely to be needed again, quoted, within a budget of tokens.

The same originals, settings and counter give the same bytes. The chance that a thing is written again
(`reuse.py`) times what it is worth to show it (`conversation.py`) is covered greedily (`cover.py`), and what
was picked is put under its headings (`record.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from compactd._runtime.yield_gil import breathe
from compactd.core.constraints.constraints import NO_DEMANDS, Constraints
from compactd.core.extract.conversation import Conversation, in_order
from compactd.core.extract.facts import FactCache, Facts
from compactd.core.extract.file_operations import FileLedger, ledger_of, reported_use
from compactd.core.extract.greedy_cover import Cover
from compactd.core.extract.named import Names
from compactd.core.extract.reuse_model import Chances, Statistics
from compactd.core.extract.scoring import candidates, worth_in
from compactd.core.extract.sections import sections
from compactd.core.extract.working_dir import working_directory
from compactd.core.history.entries import EntryId, Item
from compactd.core.text.slices import clear
from compactd.core.text.summary_format import LEAD, SECTIONS, Files, Layout, record

__all__ = ["Extract", "FactCache", "Source", "extract"]

Count = Callable[[str], int]

OVERSHOOT: Final = 0.10
"""The greedy runs this share past the budget; an exact count then says where the picks end."""
REACH: Final = 1.5
"""Where all of that fits, prices were estimated too high: the greedy runs again, so much further."""
FILES_SHARE: Final = 0.04
FILES_TOKENS: Final = 64
"""File lists take at most the larger of the two while other material waits, and never more than a quarter."""


class Extract(Struct, frozen=True):
    """A summary message's text and what it is made of."""

    text: str
    tokens: int
    """By the counter that was given."""
    read_files: tuple[str, ...]
    """Whole, whatever found room in the text."""
    modified_files: tuple[str, ...]
    quoted: tuple[EntryId, ...]
    """Entries of which something is quoted, oldest first."""


def learnt(
    order: Sequence[tuple[Item, bool]], cache: FactCache | Names, working_dir: str | None
) -> tuple[list[Facts], str]:
    """What is known of these messages, and the folder that their paths are named without: the client's, or
    the one that the paths tell. The same whatever the cache knew before. O(text) the first time."""
    if working_dir:
        cache.strip(working_dir)
        return [cache.learn(item) for item, _ in order], working_dir
    directory = working_directory([cache.learn(item) for item, _ in order], cache.lexicon)
    cache.strip(directory)
    return [cache.learn(item) for item, _ in order], directory


class Source:
    """What a record is made from: everything that was said, weighed for a record of some size."""

    def __init__(
        self,
        removed: Sequence[Item],
        kept: Sequence[Item],
        *,
        request: Item | None,
        budget_tokens: int,
        working_dir: str | None = None,
        cache: FactCache | None = None,
        demands: Constraints = NO_DEMANDS,
    ) -> None:
        """As `extract`; `budget_tokens` of the record that is most likely to be asked for. O(size of the
        messages) the first time, then O(features) of them."""
        cache = cache if cache is not None else FactCache()
        order = in_order(removed, kept)
        facts, directory = learnt(order, cache, working_dir)
        self._ledger = ledger_of(
            known.files if gone else reported_use(item)
            for known, (item, gone) in zip(facts, order, strict=True)
        )
        named = {f for one in demands.in_force for f in cache.lexicon.line(one.text).features}
        self._conversation = Conversation(order, facts, request, cache.lexicon)
        self._conversation.demands = demands
        breathe()
        statistics = Statistics(self._conversation.scene)
        breathe()
        worth = worth_in(budget_tokens)
        weights = Chances(statistics).weights(worth.features)
        breathe()
        self._cover = Cover(*candidates(self._conversation, statistics, weights, worth, named))
        breathe()
        self._conversation.leave_out(directory, told=bool(working_dir))
        self._cache = cache
        self._rates: dict[Count, float] = {}

    def record(
        self, budget_tokens: int, count: Count, *, lead: str = LEAD, layout: Layout = SECTIONS
    ) -> Extract:
        """The summary message, of at most `budget_tokens` by `count`: the same whatever was asked for before.
        O(picks) at the first time, then less for one as large or smaller."""
        rate = self._rates.get(count)
        if rate is None:
            rate = self._rates[count] = _tokens_a_unit_token(self._conversation, count)
            breathe()
        done = _fill(self._conversation, self._cover, self._ledger, budget_tokens, count, rate, lead, layout)
        self._cache.trim()
        return done

    def release(self) -> None:
        """Lets go of everything, piece by piece: no record is asked for any more. O(features)."""
        self._conversation.release()
        clear(vars(self._cover))


def extract(
    removed: Sequence[Item],
    kept: Sequence[Item],
    *,
    request: Item | None,
    budget_tokens: int,
    count: Count,
    working_dir: str | None = None,
    cache: FactCache | None = None,
    lead: str = LEAD,
    layout: Layout = SECTIONS,
    demands: Constraints = NO_DEMANDS,
) -> Extract:
    """The summary message that stands for `removed`, of at most `budget_tokens` by `count`.

    `removed` are the originals, oldest first, that the new view does not show word for word, those of
    earlier compactions included; `kept` those that stay (what they show is not quoted); `request` the
    newest user request. `layout` says what stands under which heading; `demands` are named word for word,
    and those that are superseded are not quoted. Where even the smallest record is
    larger than the budget, that is returned: the caller compares `tokens`. O(size of the messages) the
    first time, then O(features) of them.
    """
    source = Source(
        removed,
        kept,
        request=request,
        budget_tokens=budget_tokens,
        working_dir=working_dir,
        cache=cache,
        demands=demands,
    )
    return source.record(budget_tokens, count, lead=lead, layout=layout)


def _fill(
    conversation: Conversation,
    cover: Cover,
    ledger: FileLedger,
    budget: int,
    count: Count,
    rate: float,
    lead: str,
    layout: Layout,
) -> Extract:
    """The record with as many of the picks as the exact count allows. `rate`: tokens by `count` for each
    estimated one."""

    def text_of(picked: Sequence[int], files: Files, *, full: bool = True) -> str:
        material = sections(conversation, picked, layout)
        return record(material, files, lead=lead, full=full, layout=layout)

    full = True
    files = _files_that_fit(ledger, _room_for_files(budget), count)
    frame = count(text_of((), files))
    if frame > budget:
        full = False
        frame = count(text_of((), files, full=False))
        if frame > budget:
            files = Files()
            frame = count(text_of((), files, full=False))
    room = max(0, budget - frame)
    wanted = room * (1 + OVERSHOOT) / rate + 20
    picks: Sequence[int] = ()
    while room:
        more = tuple(cover.until(wanted))
        low, high = 0, len(more)
        while low < high:
            middle = (low + high + 1) // 2
            if count(text_of(more[:middle], files, full=full)) <= budget:
                low = middle
            else:
                high = middle - 1
        exhausted = len(more) <= len(picks)
        picks = more[:low]
        if exhausted or low < len(more):
            break
        wanted *= REACH
    text = text_of(picks, files, full=full)
    quoted = sorted({conversation.place(i).item for i in picks})
    return Extract(
        text=text,
        tokens=count(text),
        read_files=ledger.read,
        modified_files=ledger.modified,
        quoted=tuple(conversation.order[i][0].entry_id for i in quoted),
    )


def _tokens_a_unit_token(conversation: Conversation, count: Count) -> float:
    """Tokens by `count` for each estimated one, on a sample of the units."""
    units = conversation.units
    sample = range(0, units, max(1, units // 200))
    estimated = sum([conversation.tokens(unit) + 1.0 for unit in sample])
    if not estimated:
        return 1.0
    text = "\n".join([conversation.alone(unit) for unit in sample])
    return min(6.0, max(0.2, count(text) / estimated))


def _room_for_files(budget: int) -> int:
    return min(max(FILES_TOKENS, int(budget * FILES_SHARE)), budget // 4)


def _files_that_fit(ledger: FileLedger, room: int, count: Count) -> Files:
    """Changed files first, the newest first, until the room is used."""
    modified, read = set(ledger.modified), set(ledger.read)
    newest = ledger.newest_first
    kept: set[str] = set()
    spent = 0
    for path in [p for p in newest if p in modified] + [p for p in newest if p in read]:
        spent += count(path + "\n")
        if spent > room:
            break
        kept.add(path)
    return Files(
        tuple(p for p in ledger.read if p in kept),
        tuple(p for p in ledger.modified if p in kept),
        sum(p not in kept for p in ledger.read),
        sum(p not in kept for p in ledger.modified),
    )

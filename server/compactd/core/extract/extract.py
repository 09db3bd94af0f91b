"""Write a summary without a model (`extract`): quote the parts of a conversation that are likely to be needed
again, within a token budget.

The same originals, settings and counter give the same bytes (law 8). The text is split into *units* (lines)
and each unit has *features* (names, words, sequences of words). For each feature, the chance that the agent
writes it again (`reuse_model.py`) is multiplied by what it is worth to show it (`scoring.py`). A greedy cover
picks the units with the most value per token (`greedy_cover.py`). The picked units are put under headings
(`sections.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from compactd.core.constraints.constraints import NO_CONSTRAINTS, Constraints
from compactd.core.extract.conversation import Conversation, conversation_order
from compactd.core.extract.earlier import read_earlier
from compactd.core.extract.facts import FactCache, Facts
from compactd.core.extract.greedy_cover import GreedyCover
from compactd.core.extract.recent_files import working_directory
from compactd.core.extract.reuse_model import ReuseModel, Statistics
from compactd.core.extract.scoring import LineValue, candidates, worth_in
from compactd.core.extract.sections import Quoted, sections
from compactd.core.extract.story import StoryTeller
from compactd.core.extract.story_room import NO_STORY, SAMPLE, StoryText
from compactd.core.history.entries import Item
from compactd.core.history.message_kinds import kind_of
from compactd.core.text.quoting import TOOL_MARK
from compactd.core.text.summary_format import LEAD, NATURE, SECTIONS, FileLists, Layout, fit_files, record
from compactd.core.work.file_operations import FileLedger, ledger_of, reported_use
from compactd.core.work.history import find_repeated
from compactd.core.work.state import WorkState

CountText = Callable[[str], int]

STORY_SHARES: Final = ((1_000, 0.6), (4_000, 0.6), (8_000, 0.45), (16_000, 0.3))
"""The share of the summary for the story (`story.py`), by the summary's tokens. The rest is for quoted lines.
Between two sizes, the share is interpolated."""

LESS: Final = 0.6
"""If the story does not fit, it is told again in this share of its size."""
OVERSHOOT: Final = 0.10
"""The greedy cover knows only estimated prices. Its budget is therefore larger than the real one by this
share, and an exact count decides how many of the picked units are used."""
REACH: Final = 1.5
"""If all picked units fit into the summary, their prices were estimated too high. The budget of the greedy
cover is then multiplied by this factor, and more units are picked."""
SMALL_TOKENS: Final = 6_000
"""In a summary of at most this many tokens, no line of a commit is quoted: the story tells what it did."""
NATURE_DIVISOR: Final = 12
"""The line that says what the record is takes at most the budget divided by this; otherwise it is left out,
unless a line of a tool is quoted."""
FILES_SHARE: Final = 0.04
FILES_TOKENS: Final = 64
"""The lists of files take at most `FILES_SHARE` (4 %) of the budget or `FILES_TOKENS`, whichever is more, but
never more than a quarter of the budget."""


def learn_facts(
    order: Sequence[tuple[Item, bool]], cache: FactCache, working_dir: str | None
) -> tuple[list[Facts], str]:
    """Return the facts of these messages, and the working folder that is cut from the front of their paths.

    `order` has each message and whether it is removed. `working_dir` is the working folder that the client
    named; without it, the folder is derived from the paths. The result does not depend on what the cache
    already contains. O(text) the first time.
    """
    if working_dir:
        cache.strip(working_dir)
        return [cache.learn(item) for item, _ in order], working_dir
    directory = working_directory([cache.learn(item) for item, _ in order], cache.lexicon)
    cache.strip(directory)
    return [cache.learn(item) for item, _ in order], directory


class ExtractSource:
    """A conversation that is analysed and scored once, and from which summaries of any size can then be
    written."""

    def __init__(
        self,
        removed: Sequence[Item],
        kept: Sequence[Item],
        *,
        request: Item | None,
        budget_tokens: int,
        working_dir: str | None = None,
        cache: FactCache | None = None,
        demands: Constraints = NO_CONSTRAINTS,
        work: WorkState | None = None,
        known: str = "",
        earlier: Sequence[Item] = (),
        pause: Callable[[], None] | None = None,
    ) -> None:
        """Analyse and score the conversation.

        `removed` are all originals, oldest first, that the new view does not show word for word, including
        those of earlier compactions. `kept` are the messages that stay in the view; features that they show
        are not quoted again. `request` is the newest user request. `budget_tokens` is the most likely size of
        the summary. `demands` are the user's constraints. Those that still apply are included word for word;
        those that a newer one contradicts are not quoted. `work` is the state of the work after all messages;
        the summary tells it, except what the text `known` says too. `earlier` are summaries of messages that
        are not in the conversation; the story contains what they say, and their lines are not quoted. `pause`
        is called every few milliseconds while units are picked. O(size of the messages) the first time, then
        O(their features).
        """
        cache = cache if cache is not None else FactCache()
        order = conversation_order(removed, kept)
        facts, directory = learn_facts(order, cache, working_dir)
        self._ledger = ledger_of(
            one.files if gone else reported_use(item) for one, (item, gone) in zip(facts, order, strict=True)
        )
        unquoted = frozenset[str]()
        if work is not None:
            unquoted = find_repeated(work.turns) | work.commands | {item.entry_id for item in earlier}
        self._conversation = Conversation(
            order,
            facts,
            request,
            cache.lexicon,
            unquoted,
            has_story=work is not None and budget_tokens <= SMALL_TOKENS,
        )
        self._conversation.demands = demands
        self._conversation.leave_out(directory, told=bool(working_dir))
        statistics = Statistics(self._conversation.scene)
        worth = worth_in(budget_tokens)
        weights = ReuseModel(statistics).weights(worth.features)
        self._teller: StoryTeller | None = None
        if work is not None:
            self._conversation.replaced = tuple(work.replaced)
            self._teller = StoryTeller(
                work,
                show=self._conversation.without_folder,
                name=self._conversation.file_name,
                value=LineValue(cache.lexicon, statistics, weights),
                places={item.entry_id: n for n, (item, _) in enumerate(order)},
                kept=frozenset(item.entry_id for item in kept if _is_kept(item)),
                stated=demands.sentences,
                earlier=[(item.entry_id, read_earlier(item)) for item in earlier],
            )
        self._known = known
        shown = [one.text for one in demands.in_force] + self._story(budget_tokens, _estimate).lines
        named = {f for text in shown for f in cache.lexicon.line(text).features}
        found, weights = candidates(self._conversation, statistics, weights, worth, named)
        self._cover = GreedyCover(found, weights, pause)
        self._cache = cache
        self._rates: dict[CountText, float] = {}

    def record(
        self, budget_tokens: int, count: CountText, *, lead: str = LEAD, layout: Layout = SECTIONS
    ) -> str:
        """Return a summary message of at most `budget_tokens`, counted by `count`. If even the smallest one
        is larger, it is returned anyway. `lead` is the first line of the message; `layout` assigns content to
        headings. The result does not depend on earlier calls. O(picked units) the first time; a later call
        for the same or a smaller size costs less."""
        rate = self._rates.get(count)
        if rate is None:
            rate = self._rates[count] = _tokens_per_unit_token(self._conversation, count)
        story = self._story(budget_tokens, count)
        while True:
            parts = self._conversation, self._cover, self._ledger, story
            done = _fill(*parts, budget_tokens, count, rate, lead, layout, is_brief=True)
            if TOOL_MARK in done and NATURE not in done:
                # What the mark means is said wherever it stands.
                done = _fill(*parts, budget_tokens, count, rate, lead, layout, is_brief=False)
            if count(done) <= budget_tokens or not story.lines:
                break
            story = self._shorter(story, count)
        self._cache.trim()
        return done

    def missing(self, text: str, room: int, count: CountText, kinds: Collection[str]) -> StoryText:
        """Return what `text`, a summary of the same conversation, does not say of the state of the work, in
        at most `room` tokens: items of these `kinds` (see `story.SHARES`). O(state of the work)."""
        return NO_STORY if self._teller is None else self._teller.tell(room, count, text, kinds)

    def _shorter(self, story: StoryText, count: CountText) -> StoryText:
        if self._teller is None:
            return NO_STORY
        return self._teller.tell(int(story.tokens * LESS), count, self._known)

    def _story(self, budget_tokens: int, count: CountText) -> StoryText:
        """Return the story of a summary of this many tokens."""
        if self._teller is None:
            return NO_STORY
        return self._teller.tell(int(budget_tokens * _story_share(budget_tokens, count)), count, self._known)


def _is_kept(item: Item) -> bool:
    """Return whether the story need not tell a message that stays in the view: it is unchanged, or it is a
    condensed request. Of a condensed request, the lines that are gone are quoted like those of removed
    messages."""
    return item.kind == "message" or (item.kind == "stub" and kind_of(item.message) == "user")


def _story_share(budget: int, count: CountText) -> float:
    """Return the share of a summary of this size that the story gets. `count` gives sizes in its unit."""
    budget_tokens = budget * _estimate(SAMPLE) / count(SAMPLE)
    before, share = 0, STORY_SHARES[0][1]
    for tokens, of in STORY_SHARES:
        if budget_tokens <= tokens:
            part = (budget_tokens - before) / (tokens - before)
            return share + (of - share) * part
        before, share = tokens, of
    return share


def _estimate(text: str) -> int:
    return len(text) // 4 + 1


def _fill(
    conversation: Conversation,
    cover: GreedyCover,
    ledger: FileLedger,
    story: StoryText,
    budget: int,
    count: CountText,
    rate: float,
    lead: str,
    layout: Layout,
    *,
    is_brief: bool,
) -> str:
    """Return the summary of at most `budget` tokens by `count`, with as many of the picked lines (units) as
    fit. `rate` is the number of tokens by `count` per estimated token. With `is_brief`, a small summary does
    not say what it is (`NATURE_DIVISOR`)."""

    quoted: Quoted = {}

    def text_of(picked: Sequence[int], files: FileLists, *, full: bool = True) -> str:
        material = sections(conversation, picked, layout, story, quoted)
        return record(material, files, lead=lead, full=full, layout=layout)

    full = not is_brief or count(NATURE) <= budget // NATURE_DIVISOR
    files = _files_that_fit(ledger, _room_for_files(budget), count)
    frame = count(text_of((), files, full=full))
    if frame > budget:
        full = False
        frame = count(text_of((), files, full=False))
        if frame > budget:
            files = FileLists()
            frame = count(text_of((), files, full=False))
    room = max(0, budget - frame)
    wanted = room * (1 + OVERSHOOT) / rate + 20
    picks: Sequence[int] = ()
    while room:
        more = tuple(cover.pick_until(wanted))
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
    return text_of(picks, files, full=full)


def _tokens_per_unit_token(conversation: Conversation, count: CountText) -> float:
    """Return the number of tokens by `count` per estimated token, measured on a sample of about 200 units."""
    units = conversation.units
    sample = range(0, units, max(1, units // 200))
    estimated = sum([conversation.tokens(unit) + 1.0 for unit in sample])
    if not estimated:
        return 1.0
    text = "\n".join([conversation.place(unit).text for unit in sample])
    return min(6.0, max(0.2, count(text) / estimated))


def _room_for_files(budget: int) -> int:
    return min(max(FILES_TOKENS, int(budget * FILES_SHARE)), budget // 4)


def _files_that_fit(ledger: FileLedger, room: int, count: CountText) -> FileLists:
    """Return as many of the ledger's files as `room` tokens can list: changed files before read ones, and the
    most recently used first. The others are only counted."""
    read, modified, newest = ledger.read, ledger.modified, ledger.newest_first
    spent = 0

    def fits(shown: Sequence[str]) -> bool:
        nonlocal spent
        spent += count(shown[-1] + "\n")
        return spent <= room

    order = [path for kind in (frozenset(modified), frozenset(read)) for path in newest if path in kind]
    return fit_files(read, modified, order, fits)

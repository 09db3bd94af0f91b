"""A compaction is prepared before it is due. What came since stays word for word, and it is used only if
nothing else changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeVar

import msgspec
import pytest
from msgspec import Raw

from compactd.agent import turns
from compactd.compaction.prepare import (
    Preparation,
    is_wanted,
    lead_of,
    mark_of,
    prepare,
)
from compactd.compaction.read_ahead import IdleAnalyzer
from compactd.compaction.run import compact
from compactd.compaction.summarizer import cost_so_far
from compactd.core.history.entries import Opened, UsageReported
from compactd.core.planning.request import CompactRequest
from compactd.models.providers.provider import (
    ApiShape,
    Finished,
    ModelRequest,
    Provider,
    Retrying,
    StreamEvent,
    TextChunk,
)
from compactd.protocol.errors import Cancelled, ProviderFailed, StorageFailed
from compactd.protocol.messages import CompactionResult, Message, Text, Tool, ToolCall, ToolResult, Usage
from compactd.protocol.methods import METHODS
from compactd.protocol.settings import GivenSettings
from compactd.session.session import Session
from compactd.storage.memory_journal import MemoryJournal
from tests.properties.life import Life, opened, reopened, shown, whole
from tests.support.quiet_world import Quiet, done

T = TypeVar("T")

WINDOW = 10_000
"""The threshold is 8,000 tokens, the mark 7,200, the lead 800."""

SECRET = "hunter2-correct-horse"


def words(number: int, tokens: int) -> str:
    return f"Item {number}: " + " ".join(f"word{number}_{at}" for at in range(tokens // 4))


def turn(number: int, tokens: int = 400) -> list[Message]:
    call = ToolCall(call_id=f"t{number}", name="read", arguments=Raw(b'{"path":"src/file_%d.py"}' % number))
    return [
        Message(role="user", content=(Text(text=f"Mend src/file_{number}.py."),)),
        Message(role="assistant", content=(Text(text=words(number, tokens // 2)), call)),
        Message(role="tool", content=(ToolResult(call_id=f"t{number}", content=words(number, tokens // 2)),)),
    ]


class Meanwhile(Quiet):
    """A world in which something happens while a worker computes."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], None]] = []
        """What happens at the next calls of `in_worker`, after the work."""

    async def in_worker(self, work: Callable[[], T]) -> T:
        made = work()
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return made


class Gated(Quiet):
    """A world whose workers wait at gates."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: list[asyncio.Event | None] = []
        """What the next calls of `in_worker` wait for."""
        self.stopped = 0
        """How many calls were stopped."""

    async def in_worker(self, work: Callable[[], T]) -> T:
        gate = self.gates.pop(0) if self.gates else None
        if gate is not None:
            await gate.wait()
        try:
            return work()
        except Cancelled:
            self.stopped += 1
            raise


async def pause() -> None:
    """Let the other tasks run until they wait for something."""
    for _ in range(10):
        await asyncio.sleep(0)


def gated() -> tuple[Life, Gated]:
    """Return a session at the threshold, in a world with gates."""
    world = Gated()
    life = Life(opened(world, "default", GivenSettings(context_window=WINDOW)))
    life.begin()
    grow(life, 8_000, 100)
    return life, world


def grow(life: Life, upto: int, tokens: int = 400) -> None:
    """Append turns until the context has at least `upto` tokens."""
    while life.session.decision.used < upto:
        life.append(turn(len(life.said), tokens))


@pytest.fixture
def life() -> Life:
    """A session above the mark and below the threshold."""
    life = Life(opened(Meanwhile(), "default", GivenSettings(context_window=WINDOW)))
    life.session.set_model("openai/gpt-4o", None, WINDOW)
    life.begin()
    grow(life, 7_300, 100)
    return life


def begun(session: Session) -> CompactionResult | None:
    return done(turns.begin(session)).compaction


ANSWER = """## Goal
Mend the files.

## Progress
### Done
- [x] src/file_0.py is mended
### In Progress
- [ ] the others

## Next Steps
1. Mend the next file.
"""

USAGE = Usage(input_tokens=7_000, output_tokens=100, context_window=1_234)
COST = 7_000 * 2.5e-6 + 100 * 10e-6
"""By the price list of openai/gpt-4o, in dollars."""


class Model:
    """A provider whose model writes `ANSWER` when its gate opens."""

    name = "openai"
    shape: ApiShape = "openai"

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = 0
        self.fails = False
        self.was_closed = False
        """Whether a request ended before its answer."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.asked += 1
        yield Retrying(attempt=1, delay_s=0.0, reason="busy")
        yield TextChunk(text=ANSWER)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.was_closed = True
            raise
        if self.fails:
            raise ProviderFailed("the model is broken")
        message = Message(role="assistant", content=(Text(text=ANSWER),))
        yield Finished(message=message, usage=USAGE, stop_reason="stop", raw_stop="stop")


class Asked(Gated):
    """A world with a model that may be asked for summaries."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    def provider(self, model: str, base_url: str | None) -> tuple[Provider, str]:
        return self.model, "gpt-4o"


@pytest.fixture
def asking() -> tuple[Life, Asked]:
    """A session above the mark whose summaries a model writes."""
    world = Asked()
    given = GivenSettings(context_window=WINDOW, model="openai/gpt-4o", retention_floor=0.0)
    life = Life(opened(world, "default", given))
    life.session.set_model("openai/gpt-4o", None, WINDOW)
    life.begin()
    grow(life, 7_300, 100)
    world.events.clear()
    return life, world


def bills(life: Life) -> list[tuple[Usage, float | None]]:
    """Return what was billed next to the conversation."""
    entries = life.session.entries
    return [(e.usage, e.summary_cost) for e in entries if isinstance(e, UsageReported) and not e.is_base]


BILLED = [(msgspec.structs.replace(USAGE, context_window=None), pytest.approx(COST))]


def kinds(life: Life) -> list[str]:
    assert isinstance(life.session.host, Quiet)
    return [type(event).__name__ for event in life.session.host.events]


def test_a_prepared_compaction_is_the_one_that_would_be_made_now(life: Life) -> None:
    life.append(turn(99, 1_000))
    same = reopened(life.session)

    done(prepare(life.session))
    result, other = begun(life.session), begun(same)

    assert result is not None
    assert other is not None
    assert (result.prepared, other.prepared) == (True, msgspec.UNSET)
    untimed = {"created_at": 0.0, "duration_ms": 0, "prepared": msgspec.UNSET}
    assert msgspec.structs.replace(result, **untimed) == msgspec.structs.replace(other, **untimed)
    assert shown(life.session)[1] == shown(same)[1]
    life.laws_hold()


def test_preparing_changes_nothing_and_says_nothing(life: Life) -> None:
    session = life.session
    assert isinstance(session.host, Quiet)
    session.host.events.clear()
    before, records, busy = shown(session), len(session.entries), []
    session.host.meanwhile.append(lambda: busy.append(session.operation))  # type: ignore[attr-defined]

    done(prepare(session))

    assert (shown(session), len(session.entries), kinds(life)) == (before, records, [])
    assert busy == [None]
    assert isinstance(session.preparation, Preparation)
    assert session.preparation.is_ready


def test_what_came_since_stays_word_for_word_and_the_sizes_are_those_of_now(life: Life) -> None:
    done(prepare(life.session))
    known = list(life.said)
    life.append(turn(50))
    life.append(turn(51, 500))
    before, count = whole(life.session), len(life.session.state.items)

    result = begun(life.session)

    assert result is not None
    assert result.prepared is True
    came = list(life.said)[len(known) :]
    assert [item.entry_id for item in life.session.state.items][-len(came) :] == came
    assert all(item.kind == "message" for item in life.session.state.items[-len(came) :])
    assert "word50" not in result.summary
    assert (result.tokens_before, result.tokens_after) == (before, whole(life.session))
    assert (result.messages_before, result.messages_after) == (count, len(life.session.state.items))
    assert result.kept_messages == len(life.session.state.items) - 1 - len(result.pinned_entry_ids)
    assert life.session.decision.kind == "fits"
    life.laws_hold()


def test_the_journal_and_the_events_are_those_of_any_compaction(life: Life) -> None:
    done(prepare(life.session))
    life.append(turn(50, 800))
    assert isinstance(life.session.host, Quiet)
    life.session.host.events.clear()

    result = begun(life.session)

    assert result is not None
    assert kinds(life) == ["CompactionStart", "CompactionEnd", "UsageUpdate"]
    names = [type(entry).__name__ for entry in life.session.entries[-2:]]
    assert names == ["CompactionBegun", "Compacted"]
    assert life.session.state.done == {result.compaction_id}
    assert begun(life.session) is None


def pinned(life: Life) -> None:
    life.pin(3, True)


def pruned(life: Life) -> None:
    life.configure(GivenSettings(prune_protect=0, prune_minimum=0))
    life.change("prune")


def undone(life: Life) -> None:
    life.change("undo")


def redone(life: Life) -> None:
    life.change("undo")
    life.change("redo")


def compacted(life: Life) -> None:
    assert done(compact(life.session, CompactRequest(keep_recent=6_900))).compacted


def asked_a_hook(life: Life) -> None:
    life.session.has_compaction_hook = True


TOOL = Tool(name="read")

AT_ONCE: Sequence[Callable[[Life], object]] = (
    pinned,
    undone,
    redone,
    asked_a_hook,
    lambda life: life.branch(2),
    lambda life: life.configure(GivenSettings(keep_recent_tokens=1_000)),
    lambda life: life.configure(GivenSettings(), system="Be brief."),
    lambda life: life.configure(GivenSettings(), tools=(TOOL,)),
    lambda life: life.session.configure("configure", unset=("context_window",)),
    lambda life: life.session.reload(),
)
"""What changes a session while a worker computes."""

CHANGES: Sequence[Callable[[Life], object]] = (
    *AT_ONCE,
    pruned,
    compacted,
    lambda life: life.redact(1),
    lambda life: life.switch("anthropic/claude-sonnet-4-5"),
)


def prepared_after(life: Life) -> object:
    """Return whether a compaction at the threshold, a little later, is one that was prepared."""
    life.append(turn(50, 40))
    life.session.has_compaction_hook = False
    return done(compact(life.session, CompactRequest(trigger="threshold"))).prepared


@pytest.mark.parametrize("change", CHANGES)
def test_after_any_other_change_the_compaction_is_made_anew(
    life: Life, change: Callable[[Life], object]
) -> None:
    if change in (undone, redone):
        assert done(compact(life.session, CompactRequest(keep_recent=7_000))).compacted
        grow(life, 7_300, 100)
    done(prepare(life.session))
    assert isinstance(life.session.preparation, Preparation)
    assert life.session.preparation.is_ready

    change(life)

    assert prepared_after(life) is not True


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("change", AT_ONCE)
def test_a_change_while_it_is_prepared_drops_it(
    life: Life, change: Callable[[Life], object], step: int
) -> None:
    if change in (undone, redone):
        assert done(compact(life.session, CompactRequest(keep_recent=7_000))).compacted
        grow(life, 7_300, 100)
    assert isinstance(life.session.host, Meanwhile)
    life.session.host.meanwhile = [*(lambda: None for _ in range(step)), lambda: change(life)]

    done(prepare(life.session))

    assert not isinstance(life.session.preparation, Preparation) or not life.session.preparation.is_ready
    assert prepared_after(life) is not True


def test_without_a_change_it_is_used(life: Life) -> None:
    done(prepare(life.session))
    assert prepared_after(life) is True


def test_if_too_much_came_since_the_compaction_is_made_anew(life: Life) -> None:
    done(prepare(life.session))
    life.append(turn(50, 2_000))
    assert is_wanted(life.session)

    result = begun(life.session)

    assert result is not None
    assert (result.compacted, result.prepared) == (True, msgspec.UNSET)
    assert life.session.preparation is None


def test_if_it_would_leave_too_little_room_the_compaction_is_made_anew(life: Life) -> None:
    life.configure(GivenSettings(keep_recent_tokens=7_000))
    grow(life, 7_800, 100)
    done(prepare(life.session))
    assert isinstance(life.session.preparation, Preparation)
    assert life.session.preparation.is_ready
    grow(life, 8_000, 100)

    result = begun(life.session)

    assert result is not None
    assert (result.compacted, result.prepared) == (True, msgspec.UNSET)


def test_only_a_compaction_at_the_threshold_uses_it(life: Life) -> None:
    done(prepare(life.session))

    result = done(compact(life.session, CompactRequest(strategy="extract")))

    assert (result.compacted, result.prepared) == (True, msgspec.UNSET)
    assert life.session.preparation is None


def test_a_redaction_drops_the_prepared_summary(life: Life) -> None:
    secret = Message(role="user", content=(Text(text=f"The password is {SECRET}. Never print {SECRET}."),))
    world = Meanwhile()
    life = Life(opened(world, "default", GivenSettings(context_window=WINDOW)))
    life.begin()
    life.append([secret])
    grow(life, 7_300, 100)
    done(prepare(life.session))
    found = life.session.preparation
    assert isinstance(found, Preparation)
    assert found._draft is not None
    assert SECRET in found._draft.summary

    seen: list[object] = []
    world.meanwhile = [lambda: seen.extend((life.session.preparation, found._draft))]

    life.redact(0)

    assert seen == [None, None]  # when the redaction had only begun
    life.append(turn(50, 800))
    result = begun(life.session)
    assert result is not None
    assert SECRET not in result.summary
    assert all(SECRET.encode() not in msgspec.json.encode(entry) for entry in life.session.entries)


@pytest.mark.parametrize("place", [0, 1])
def test_a_turn_that_comes_while_it_is_prepared_waits_for_it(place: int) -> None:
    life, world = gated()
    session = life.session

    async def both() -> CompactionResult | None:
        gate = asyncio.Event()
        world.gates = [*(None for _ in range(place)), gate]
        preparing = asyncio.ensure_future(prepare(session))
        await pause()
        beginning = asyncio.ensure_future(turns.begin(session))
        await pause()
        assert session.operation is not None
        life.append(turn(50))
        gate.set()
        await preparing
        return (await beginning).compaction

    result = done(both())

    assert result is not None
    assert result.prepared is True
    assert "word50" not in result.summary
    life.laws_hold()


def test_a_turn_does_not_wait_longer_if_what_it_waits_for_is_dropped() -> None:
    life, world = gated()
    session = life.session

    async def both() -> CompactionResult | None:
        gate = asyncio.Event()
        world.gates = [None, gate]
        preparing = asyncio.ensure_future(prepare(session))
        await pause()
        beginning = asyncio.ensure_future(turns.begin(session))
        await pause()
        life.pin(0, True)
        gate.set()
        await preparing
        return (await beginning).compaction

    result = done(both())

    assert result is not None
    assert (result.compacted, result.prepared, world.stopped) == (True, msgspec.UNSET, 1)
    life.laws_hold()


def test_a_turn_that_waits_can_be_cancelled() -> None:
    life, world = gated()
    session = life.session

    async def both() -> None:
        gate = asyncio.Event()
        world.gates = [gate]
        preparing = asyncio.ensure_future(prepare(session))
        await pause()
        beginning = asyncio.ensure_future(turns.begin(session))
        await pause()
        beginning.cancel()
        await asyncio.wait((beginning,))
        assert session.operation is None
        gate.set()
        await preparing

    done(both())

    assert begun(session) is not None
    life.laws_hold()


@pytest.mark.parametrize(("place", "stopped"), [(0, 0), (1, 1)])
def test_another_compaction_stops_one_that_is_being_prepared(place: int, stopped: int) -> None:
    life, world = gated()
    session = life.session

    async def both() -> CompactionResult:
        gate, planning = asyncio.Event(), asyncio.Event()
        world.gates = [*(None for _ in range(place)), gate, planning]
        preparing = asyncio.ensure_future(prepare(session))
        await pause()
        manual = asyncio.ensure_future(compact(session, CompactRequest()))
        await pause()
        assert session.preparation is None
        gate.set()
        await preparing
        planning.set()
        return await manual

    result = done(both())

    assert (result.compacted, result.prepared, world.stopped) == (True, msgspec.UNSET, stopped)
    assert session.preparation is None
    life.laws_hold()


def test_records_that_cannot_be_stored_leave_no_compaction(life: Life) -> None:
    done(prepare(life.session))
    life.append(turn(50, 800))
    before = shown(life.session)

    class Full(MemoryJournal):
        async def durable(self, number: int) -> None:
            raise StorageFailed("the disk is full")

    life.session.journal = Full()
    life.session.host.events.clear()  # type: ignore[attr-defined]

    with pytest.raises(StorageFailed):
        begun(life.session)

    assert kinds(life) == []
    del life.session.entries[-2:]
    life.session.reload()
    assert shown(life.session) == before


# --- when it is prepared ------------------------------------------------------------------------------


def test_it_is_prepared_above_the_mark_and_once(life: Life) -> None:
    fresh = Life(opened(Quiet(), "default", GivenSettings(context_window=WINDOW)))
    fresh.begin()
    grow(fresh, 6_500, 100)

    assert not is_wanted(fresh.session)
    assert is_wanted(life.session)
    done(prepare(life.session))
    assert not is_wanted(life.session)
    life.append(turn(60, 300))
    assert not is_wanted(life.session)


@pytest.mark.parametrize(
    "change",
    [
        lambda session: session.turn_sizes.clear(),
        lambda session: setattr(session, "has_compaction_hook", True),
        lambda session: setattr(session, "silent_overflow", True),
        lambda session: session.configure("configure", compaction=GivenSettings(prepare="off")),
        lambda session: session.configure("configure", compaction=GivenSettings(enabled=False)),
        lambda session: setattr(session, "journal", None),
        lambda session: setattr(session, "is_closed", True),
    ],
)
def test_it_is_not_prepared(life: Life, change: Callable[[Session], None]) -> None:
    assert is_wanted(life.session)

    change(life.session)

    assert not is_wanted(life.session)


def test_a_sub_agent_that_compacts_only_at_its_limit_prepares_nothing() -> None:
    first = Opened(v=1, id="s", at=0.0, parent_session_id="p")
    journal = MemoryJournal()
    journal.append([msgspec.json.encode(first)])
    session = Session(Quiet(), "s", journal, (first,), persistent=False)
    life = Life(session)
    life.begin()
    session.configure("start", compaction=GivenSettings(profile="klaude", context_window=WINDOW))
    grow(life, 7_300, 100)

    assert not is_wanted(session)
    session.configure("start", compaction=GivenSettings(profile="default"))
    assert is_wanted(session)


def test_a_conversation_that_was_just_compacted_is_not_prepared_again(life: Life) -> None:
    life.configure(GivenSettings(keep_recent_tokens=7_000))
    grow(life, 8_000, 100)
    result = begun(life.session)
    assert result is not None
    assert result.tokens_after > 7_200 - 300
    assert not is_wanted(life.session)


def test_the_lead_is_a_tenth_or_two_turns_and_at_most_half() -> None:
    assert lead_of(100_000, ()) == 10_000
    assert lead_of(100_000, (50_000,)) == 10_000
    assert lead_of(100_000, (1_000, 4_000, 6_000)) == 10_000
    assert lead_of(100_000, (1_000, 11_000, 31_000)) == 30_000
    assert lead_of(100_000, (1_000, 11_000, 5_000, 15_000)) == 20_000
    assert lead_of(100_000, (0, 90_000)) == 50_000


def test_the_mark_is_above_the_middle_between_the_last_compaction_and_the_threshold() -> None:
    assert mark_of(100_000, 10_000, 0) == 90_000
    assert mark_of(100_000, 50_000, 0) == 50_000
    assert mark_of(100_000, 50_000, 20_000) == 60_000
    assert mark_of(100_000, 10_000, 95_000) == 97_500
    assert mark_of(100_000, 10_000, 120_000) == 100_000


def test_the_idle_daemon_prepares_it(life: Life) -> None:
    session = life.session

    async def at_once(read: Callable[[], None]) -> None:
        read()

    async def idle() -> None:
        reader = IdleAnalyzer({"s": session}, at_once, quiet_s=0.0, least_tokens=0)
        reader.note_request(METHODS["session/append"], "s")
        await reader.wait_idle()

    done(idle())

    assert isinstance(session.preparation, Preparation)
    assert session.preparation.is_ready


def test_an_append_tells_the_daemon(life: Life) -> None:
    noted: list[str] = []

    class Noting(Quiet):
        def note_grown(self, session_id: str) -> None:
            noted.append(session_id)

    other = Life(opened(Noting(), "default"))
    other.append(turn(1))

    assert noted == ["s"]


# --- with a model -------------------------------------------------------------------------------------


def test_a_model_is_asked_ahead_once_and_its_cost_is_the_compactions(asking: tuple[Life, Asked]) -> None:
    life, world = asking
    assert is_wanted(life.session)

    done(prepare(life.session))

    assert kinds(life) == []
    assert not is_wanted(life.session)
    grow(life, 8_000, 100)
    result = begun(life.session)
    assert result is not None
    assert (result.prepared, result.strategy, result.model) == (True, "summarize", "openai/gpt-4o")
    assert "Mend the next file." in result.summary
    assert result.cost == pytest.approx(COST)
    assert (world.model.asked, bills(life)) == (1, [])
    assert cost_so_far(life.session) == pytest.approx(COST)
    life.laws_hold()


def test_an_answer_that_is_not_used_is_billed_and_nobody_is_asked_again(asking: tuple[Life, Asked]) -> None:
    life, world = asking
    done(prepare(life.session))
    size, total = life.session.size, life.session.token_usage().total_tokens

    life.pin(3, True)

    assert bills(life) == BILLED
    assert life.session.token_usage().total_tokens == total + 7_100
    assert (life.session.size, life.session.window.window) == (size, WINDOW)
    assert kinds(life) == ["UsageUpdate"]
    assert not is_wanted(life.session)
    assert cost_so_far(life.session) == pytest.approx(COST)
    assert cost_so_far(reopened(life.session)) == pytest.approx(COST)
    grow(life, 8_000, 100)
    result = begun(life.session)
    assert result is not None
    assert (result.compacted, result.prepared, world.model.asked) == (True, msgspec.UNSET, 2)
    assert cost_so_far(life.session) == pytest.approx(2 * COST)
    grow(life, 7_300, 100)
    assert is_wanted(life.session)
    life.laws_hold()


def test_an_answer_that_came_too_early_is_billed(asking: tuple[Life, Asked]) -> None:
    life, _ = asking
    done(prepare(life.session))
    life.append(turn(50, 2_000))

    result = begun(life.session)

    assert result is not None
    assert result.prepared is msgspec.UNSET
    assert bills(life) == BILLED


def test_the_request_ends_when_its_answer_is_no_longer_needed(asking: tuple[Life, Asked]) -> None:
    life, world = asking
    world.model.gate.clear()

    async def dropped() -> None:
        preparing = asyncio.ensure_future(prepare(life.session))
        await pause()
        assert world.model.asked == 1
        life.pin(0, True)
        await preparing

    done(dropped())

    assert world.model.was_closed
    assert life.session.preparation is None
    assert bills(life) == []
    assert not is_wanted(life.session)


def test_a_turn_waits_for_the_answer_instead_of_asking_again(asking: tuple[Life, Asked]) -> None:
    life, world = asking
    grow(life, 8_000, 100)
    world.model.gate.clear()

    async def both() -> CompactionResult | None:
        preparing = asyncio.ensure_future(prepare(life.session))
        await pause()
        beginning = asyncio.ensure_future(turns.begin(life.session))
        await pause()
        world.model.gate.set()
        await preparing
        return (await beginning).compaction

    result = done(both())

    assert result is not None
    assert (result.prepared, result.strategy, world.model.asked) == (True, "summarize", 1)
    life.laws_hold()


def test_if_the_model_fails_nothing_is_prepared_without_it(asking: tuple[Life, Asked]) -> None:
    life, world = asking
    world.model.fails = True

    done(prepare(life.session))

    assert isinstance(life.session.preparation, Preparation)
    assert not life.session.preparation.is_ready
    assert not is_wanted(life.session)


def test_beyond_the_spending_cap_no_model_is_asked_ahead(asking: tuple[Life, Asked]) -> None:
    life, world = asking
    life.configure(GivenSettings(max_cost=0.0))

    done(prepare(life.session))

    assert world.model.asked == 0
    assert isinstance(life.session.preparation, Preparation)
    assert life.session.preparation.is_ready

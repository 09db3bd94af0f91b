"""Compactions that are prepared ahead of time, in random histories: what came since stays word for word, and
a result that anything else made wrong is never used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.agent import turns
from compactd.compaction.prepare import is_wanted, prepare
from compactd.compaction.run import compact
from compactd.core.history.entries import Appended, Compacted, Entry, SettingsSet, UsageReported
from compactd.core.planning.request import CompactRequest
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Message, Text, ToolCall, ToolResult, Usage
from compactd.protocol.settings import GivenSettings
from tests.properties.life import Life, opened, reopened, whole
from tests.support.examples import examples
from tests.support.quiet_world import Quiet, done

T = TypeVar("T")
Step = tuple[str, int]

WINDOW = 6_000
"""The threshold is 4,800 tokens, and a compaction may be prepared from 4,320 on."""

CHANGES = ("undo", "redo", "branch", "pin", "prune", "settings", "system", "model", "redact", "compact")
AT_ONCE = ("undo", "redo", "branch", "pin", "settings", "system", "model")
"""Changes that can be made while a worker computes."""

GROWTH = st.one_of(
    st.tuples(st.just("say"), st.integers(5, 120)),
    st.tuples(st.just("say"), st.integers(5, 120)),
    st.tuples(st.just("call"), st.integers(5, 120)),
    st.tuples(st.just("result"), st.integers(5, 120)),
    st.tuples(st.just("report"), st.integers(90, 110)),
)
CHANGE = st.tuples(st.sampled_from(CHANGES), st.integers(0, 30))
LATER = st.one_of(
    GROWTH,
    GROWTH,
    GROWTH,
    CHANGE,
    st.tuples(st.sampled_from(("begin", "prepare", "kill")), st.integers(0, 2)),
)
ROUND = st.tuples(
    st.lists(GROWTH, max_size=3),
    st.tuples(st.sampled_from(("nothing", "nothing", "say", "call", *AT_ONCE)), st.integers(0, 30)),
    st.lists(LATER, max_size=5),
)
"""What comes before a compaction is prepared, while it is computed, and after it."""


class Worked(Quiet):
    """A world in which something happens once, while a worker computes."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = None

    async def in_worker(self, work: Callable[[], T]) -> T:
        made = work()
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return made


class PreparedLife(Life):
    """A session whose next compaction is prepared now and then, and all that a prepared one must keep."""

    def __init__(self) -> None:
        super().__init__(opened(Worked(), "default", GivenSettings(context_window=WINDOW)))
        self.numbers = 0
        self.read_entries = 0
        self.read_settings: object = None
        """The settings when the compaction was prepared."""
        """How many entries the session had when a compaction was prepared."""
        self.known: set[str] = set()
        """The messages that the session had then."""
        self.secrets: dict[str, str] = {}
        """A word of each message that is nowhere else, by the entry's id."""
        self.gone: list[str] = []
        """The words that were redacted."""
        self.is_lost = False
        """Whether the process was killed since, or a message was redacted."""
        self.used = 0

    def say(self, size: int, kind: str = "say") -> None:
        """Append a message. Each has a word of its own, also in a form that a summary repeats."""
        self.numbers += 1
        number, word = self.numbers, f"Qx{self.numbers}zz"
        filler = " ".join(f"w{number}v{at}" for at in range(size))
        role = "user" if number % 2 else "assistant"
        content: tuple[Text | ToolCall | ToolResult, ...] = (
            Text(text=f"Never change {word} in src/{word}.py. {filler}"),
        )
        if kind == "call":
            role = "assistant"
            call = ToolCall(
                call_id=f"c{number}", name="read", arguments=Raw(b'{"path":"src/%s.py"}' % word.encode())
            )
            content = (*content, call)
        elif kind == "result":
            role = "tool"
            open_ids = self.session.pending.call_ids
            call_id = open_ids[0] if open_ids else f"orphan{number}"
            content = (ToolResult(call_id=call_id, content=f"{word}: {filler}"),)
        self.append([Message(role=role, content=content)])  # type: ignore[arg-type]
        self.secrets[list(self.said)[-1]] = word

    def fill(self, upto: int) -> None:
        """Say things until the context has this many tokens."""
        while self.session.decision.used < upto:
            self.say(40)

    def prepare_now(self, meanwhile: Step) -> None:
        """Prepare a compaction, while `meanwhile` happens."""
        assert isinstance(self.session.host, Worked)
        self.read_entries, self.known = len(self.session.entries), set(self.session.state.path)
        self.read_settings = self.session.resolved.settings
        self.is_lost = False
        if meanwhile[0] != "nothing":
            self.session.host.meanwhile = lambda: self.step(meanwhile)
        done(prepare(self.session))
        self.session.host.meanwhile = None

    def step(self, step: Step) -> None:
        """Do one thing that a client can do."""
        match step:
            case ("say" | "call" | "result" as kind, size):
                self.say(size, kind)
            case ("report", percent):
                used = self.session.state.estimated_size * percent // 100
                self.append([], Usage(input_tokens=max(1, used), output_tokens=0))
            case ("begin", _):
                self.begin_and_check()
            case ("prepare", _):
                self.prepare_now(("nothing", 0))
            case ("kill", records):
                self.kill(records % 3)
            case ("branch", at):
                self.branch(at)
            case ("pin", at):
                self.pin_another(at)
            case ("settings", at):
                self.numbers += 1  # another value each time
                self.configure(GivenSettings(keep_recent_tokens=500 + 100 * at + self.numbers))
            case ("system", at):
                self.configure(GivenSettings(), system=f"Be brief, {at}.")
            case ("model", at):
                self.session.set_model(f"openai/gpt-{4 + at % 2}o", None, WINDOW)
            case ("redact", at):
                self.redact_one(at)
            case ("compact", at):
                self.compact(CompactRequest(keep_recent=200 + 100 * at), twice=False)
            case (how, _):
                self.change(how)

    def kill(self, records: int) -> None:
        """Open the session again as after a kill, before the last records were on disk."""
        session = self.session = reopened(self.session, max(2, len(self.session.entries) - records))
        self.said = {entry: raw for entry, raw in self.said.items() if entry in session.state.originals}
        self.is_lost = True

    def pin_another(self, at: int) -> None:
        """Pin a message, or let it go if it is pinned."""
        entry_id = list(self.said)[at % len(self.said)]
        self.session.pin([entry_id], entry_id not in self.session.state.pinned_by_id())

    def redact_one(self, at: int) -> None:
        """Redact a message, and note its word."""
        entry_id = list(self.said)[at % len(self.said)]
        self.redact(at)
        self.is_lost = True
        self.gone.append(self.secrets[entry_id])

    def begin_and_check(self) -> None:
        """Begin a turn, and check the compaction that it may have made. If none is due, compact as if one
        were, so that a change which makes the context smaller is noticed too."""
        session, entries = self.session, len(self.session.entries)
        size, count = whole(session), len(session.state.items)
        came = [item for item in session.state.items if item.entry_id not in self.known]
        try:
            if session.decision.kind == "fits":
                result = done(compact(session, CompactRequest(trigger="threshold")))
            else:
                result = done(turns.begin(session)).compaction
        except CannotFit:
            return
        if result is None or result.prepared is not True:
            return
        self.used += 1
        since = session.entries[self.read_entries : entries]
        assert not self.is_lost
        assert all(self.changes_nothing(entry) for entry in since), since
        self.check_prepared(result, size, count, [item.entry_id for item in came])

    def changes_nothing(self, entry: Entry) -> bool:
        """Return whether an entry leaves a prepared compaction as it is. A system prompt or settings that are
        given again change nothing."""
        if isinstance(entry, SettingsSet):
            return entry.epoch is None and self.session.resolved.settings == self.read_settings
        return isinstance(entry, Appended | UsageReported)

    def check_prepared(self, result: CompactionResult, size: int, count: int, came: list[str]) -> None:
        """Check a prepared compaction that was just made. Before it, the request had `size` tokens in `count`
        messages; the messages `came` were appended after it was prepared."""
        session = self.session
        shown = session.state.items
        assert (result.tokens_before, result.tokens_after) == (size, whole(session))
        assert result.tokens_after < result.tokens_before
        assert (result.messages_before, result.messages_after) == (count, len(shown))
        assert session.decision.kind == "fits"
        tail = shown[len(shown) - len(came) :]
        assert [item.entry_id for item in tail] == came
        assert [bytes(item.source or b"") for item in tail] == [self.said.get(i, b"") for i in came]
        assert not any(self.secrets[entry_id] in result.summary for entry_id in came)
        last: Entry = session.entries[-1]
        assert isinstance(last, Compacted)
        assert last.result.prepared is True

    def words_stay_out(self) -> None:
        """Nothing of the journal contains a redacted word."""
        raw = b"".join(msgspec.json.encode(entry) for entry in self.session.entries)
        assert [word for word in self.gone if word.encode() in raw] == []


@given(rounds=st.lists(ROUND, min_size=3, max_size=5), cut=st.integers(0, 400))
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.reuse, Phase.generate),
)
def test_a_prepared_compaction_loses_nothing_and_is_never_out_of_date(
    rounds: list[tuple[list[Step], Step, list[Step]]], cut: int
) -> None:
    life = PreparedLife()
    life.begin()
    for before, meanwhile, after in rounds:
        life.fill(4_000)
        for step in before:
            life.step(step)
        life.prepare_now(meanwhile)
        for step in after:
            life.step(step)
            life.laws_hold()
        if not any(name in (*CHANGES, "begin", "kill") for name, _ in after):
            life.fill(4_800)
        life.begin_and_check()
        life.laws_hold()
        life.words_stay_out()
    event(f"{life.used} prepared compactions were used")

    part = Life(reopened(life.session, 1 + cut % len(life.session.entries)))
    here = part.session.state.originals
    part.said = {entry: raw for entry, raw in life.said.items() if entry in here}
    part.laws_hold()


def test_histories_without_changes_use_what_was_prepared() -> None:
    life = PreparedLife()
    life.begin()

    for _ in range(12):
        life.fill(4_350)
        assert is_wanted(life.session)
        life.prepare_now(("say", 20))
        life.fill(4_800)
        life.begin_and_check()
        life.laws_hold()

    assert life.used == 12

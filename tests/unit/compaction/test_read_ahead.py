"""Appended messages are analysed in advance while the daemon is idle. No byte of a compaction changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

from compactd.compaction.read_ahead import MAX_QUEUED_ENTRIES, SLICE_S, IdleAnalyzer
from compactd.compaction.run import compact
from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import Appended, Opened
from compactd.core.planning.request import CompactRequest
from compactd.formats.messages.neutral import read_messages
from compactd.protocol.messages import CompactionResult
from compactd.protocol.methods import METHODS
from compactd.protocol.settings import GivenSettings
from compactd.session.session import Session
from compactd.storage.memory_journal import MemoryJournal
from tests.support.quiet_world import Quiet, done

Json = dict[str, object]

FOLDER = "/home/me/proj"
REQUEST = CompactRequest(strategy="extract", keep_recent=200)


def session(working_dir: str | None = None) -> Session:
    world, first = Quiet(), Opened(v=1, id="s", at=0.0, working_dir=working_dir)
    journal = MemoryJournal()
    journal.append([msgspec.json.encode(first)])
    return Session(world, "s", journal, (first,), persistent=False)


def append(to: Session, messages: Sequence[Json]) -> None:
    read = tuple(read_messages([Raw(msgspec.json.encode(message)) for message in messages]))
    to.append(AppendRequest(read=read, tokens=tuple(to.count_message(message) for message, _ in read)))


def work(turns: int, first: int = 0) -> list[Json]:
    """Turns of an agent that names files by their absolute paths."""
    found: list[Json] = []
    for n in range(first, first + turns):
        path = f"{FOLDER}/src/file_{n % 5}.py"
        call = {
            "type": "tool_call",
            "call_id": f"t{n}",
            "name": "Read",
            "arguments": {"file_path": path, "limit": n},
        }
        lines = "\n".join(f"def name_{n}_{k}(value): return load_entry(value, {k})" for k in range(20))
        found += [
            {"role": "user", "content": f"Mend src/file_{n % 5}.py, name_{n}_3 must stay as it is."},
            {"role": "assistant", "content": [{"type": "text", "text": f"I read {path} first."}, call]},
            {
                "role": "tool",
                "content": [{"type": "tool_result", "call_id": f"t{n}", "content": f"{path}:\n{lines}"}],
            },
        ]
    return found


async def at_once(read: Callable[[], None]) -> None:
    read()


def learnt(of: Session) -> int:
    return 0 if of.facts is None else len(list(of.facts.all_facts()))


async def read_ahead(of: Session, *, named: str = "s", least_tokens: int = 0) -> None:
    learner = IdleAnalyzer({"s": of}, at_once, quiet_s=0.0, least_tokens=least_tokens)
    learner.note_request(METHODS["session/append"], named)
    await learner.wait_idle()


async def compacted(of: Session) -> CompactionResult:
    result = await compact(of, REQUEST)
    return msgspec.structs.replace(result, created_at=0.0, duration_ms=0)


def test_what_was_appended_is_known_before_anybody_compacts() -> None:
    one = session()
    append(one, work(6))
    done(read_ahead(one))

    assert learnt(one) == 18
    append(one, work(2, first=6))
    done(read_ahead(one))
    assert learnt(one) == 24


def test_a_small_session_is_read_ahead_if_it_is_near_its_threshold() -> None:
    far, near = session(), session()
    for one in (far, near):
        append(one, work(3))
    window = near.budget_status().used * 2
    near.configure("configure", compaction=GivenSettings(context_window=window, reserve_tokens=0))
    for one in (far, near):
        done(read_ahead(one, least_tokens=100_000))

    assert learnt(far) == 0
    assert learnt(near) == 9


def test_reading_ahead_changes_no_byte_of_a_compaction() -> None:
    for folder in (None, FOLDER):
        ahead, cold = session(folder), session(folder)
        for one in (ahead, cold):
            append(one, work(30))
        done(read_ahead(ahead))

        assert done(compacted(ahead)) == done(compacted(cold))


def test_a_session_is_left_alone_while_a_compaction_runs_or_once_it_is_closed() -> None:
    busy, closed = session(), session()
    for one in (busy, closed):
        append(one, work(3))

    async def while_running() -> None:
        from compactd.session.slot import ExclusiveOperation

        busy.operation = ExclusiveOperation(busy.emit, "c1", None)
        await read_ahead(busy)

    done(while_running())
    closed.is_closed = True
    done(read_ahead(closed))

    assert (learnt(busy), learnt(closed)) == (0, 0)


def test_a_session_that_another_process_writes_is_left_to_it() -> None:
    written = session()
    append(written, work(3))
    followed = Session(Quiet(), "s", None, written.entries)
    done(read_ahead(followed))
    done(read_ahead(written))

    assert (learnt(followed), learnt(written)) == (0, 9)


def test_what_another_method_asks_for_begins_no_reading() -> None:
    one = session()
    append(one, work(3))

    async def asked() -> None:
        learner = IdleAnalyzer({"s": one}, at_once, quiet_s=0.0, least_tokens=0)
        learner.note_request(METHODS["session/context"], "s")
        await learner.wait_idle()

    done(asked())

    assert learnt(one) == 0


def test_facts_that_were_thrown_away_are_learnt_again() -> None:
    one = session()
    append(one, work(3))

    async def twice() -> None:
        learner = IdleAnalyzer({"s": one}, at_once, quiet_s=0.0, least_tokens=0)
        learner.note_request(METHODS["session/append"], "s")
        await learner.wait_idle()
        one.drop_facts()
        learner.note_request(METHODS["turn/begin"], "s")
        await learner.wait_idle()

    done(twice())

    assert learnt(one) == 9


def test_a_long_session_is_read_in_slices_that_end_soon() -> None:
    one = session()
    append(one, work(120))
    slices: list[int] = []

    async def counted(read: Callable[[], None]) -> None:
        read()
        slices.append(learnt(one))

    async def run() -> None:
        learner = IdleAnalyzer({"s": one}, counted, quiet_s=0.0, least_tokens=0)
        learner.note_request(METHODS["session/append"], "s")
        await learner.wait_idle()

    done(run())

    assert SLICE_S <= 0.01
    assert slices[-1] == 360
    assert slices[0] < 360


def test_a_session_of_more_messages_than_are_taken_up_at_once_is_read_to_its_end() -> None:
    one = session()
    count = 2 * MAX_QUEUED_ENTRIES + 7
    append(one, [{"role": "user", "content": f"Look at item_{n} in list_{n % 7}."} for n in range(count)])
    done(read_ahead(one))

    assert learnt(one) == count
    assert one.facts is not None
    assert len(one.facts.limits) == count


def test_messages_whose_ids_others_got_are_learnt_anew() -> None:
    one = session()
    append(one, work(3))
    done(read_ahead(one))
    lost = one.entries.pop()
    one.reload()
    append(one, [{"role": "user", "content": "Never mind."}])
    done(read_ahead(one))

    assert isinstance(lost, Appended)
    assert one.facts is not None
    assert one.facts.limits[lost.id] == ()
    assert learnt(one) == 9


def test_a_learner_that_is_stopped_reads_no_more() -> None:
    one = session()
    append(one, work(3))

    async def run() -> None:
        learner = IdleAnalyzer({"s": one}, at_once, least_tokens=0)
        learner.note_request(METHODS["session/append"], "s")
        await learner.stop()

    done(run())

    assert learnt(one) == 0

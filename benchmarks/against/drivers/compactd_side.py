"""compactd itself, in process like the other libraries: its counters, plan, compaction and journal."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.against.drivers.serving import AFTER, HELD, Prepare, Run, Told, messages_in, pieces, serve
from benchmarks.opened_inside import Record
from compactd import __version__
from compactd._runtime.interpreter import GC_THRESHOLDS
from compactd.compaction.driver import drive, planner, summary_input
from compactd.compaction.read_ahead import IdleAnalyzer
from compactd.core.extract.facts import FactCache
from compactd.core.history.append import AppendRequest
from compactd.core.planning.cut_points import move, walk_back
from compactd.core.planning.plan import NotCompacted
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.answers import NoModel
from compactd.core.tokens.counting import Chars4, Counter, message_tokens, script_aware
from compactd.daemon.app import Daemon
from compactd.formats.messages.base import read_messages
from compactd.models.tokenizers.counters import Bpe, load
from compactd.protocol.messages import Message
from compactd.protocol.methods import METHODS
from compactd.protocol.settings import StrategyChoice
from compactd.session.follower import decode_entries
from compactd.session.memory import settle
from compactd.session.session import Session
from compactd.storage.folder import FolderStore
from compactd.storage.memory_journal import MemoryJournal

SESSION = "peer"
GO_ON = msgspec.Raw(b'{"role":"user","content":"go on"}')

_loop = asyncio.new_event_loop()


def count(file: str, keep: int) -> Run:
    """The exact counter, over every text, as an import counts them: together, in a thread on each core."""
    texts, counter = pieces(messages_in(file)), Bpe("o200k_base")
    load("o200k_base")

    def run() -> Told:
        return {"tokens": sum(counter.count_each(texts))}

    return run


def count_one(file: str, keep: int) -> Run:
    """Time the same work as `count`, but on one core only."""
    texts, counter = pieces(messages_in(file)), Bpe("o200k_base")
    load("o200k_base")

    def run() -> Told:
        return {"tokens": sum(counter.count_each(texts, threads=1))}

    return run


def _estimate(counter: Counter) -> Prepare:
    def prepare(file: str, keep: int) -> Run:
        messages = _messages(file)

        def run() -> Told:
            return {"tokens": sum(message_tokens(message, counter) for message in messages)}

        return run

    return prepare


def cut(folder: str, keep: int) -> Run:
    """Time the search for the cut point, as each plan does it: read the outline that was computed when the
    messages were appended, walk back from the end, move to an allowed place. Append a message between
    runs."""
    session, more = _planned(folder, keep)
    moves = session.resolved.settings.rules.moves

    def run() -> Told:
        state = session.state
        outline = state.kept.snapshot(state.items, state.path_items, len(state.path)).outline_of(state.items)
        stop = walk_back(outline, keep, 0, inclusive=False)
        return {"cut": None if stop is None else move(outline, stop, 0, moves), AFTER: more}

    return run


def plan(folder: str, keep: int) -> Run:
    """Time a whole plan, as `session/compact` with `plan_only` makes it. Append a message between runs."""
    session, more = _planned(folder, keep)
    request = CompactRequest(keep_recent=keep, strategy="extract")

    def run() -> Told:
        made = planner(session, request)()
        if isinstance(made, NotCompacted):
            raise ValueError(made.reason)
        return {"messages": len(made.removed), AFTER: more}

    return run


def _planned(folder: str, keep: int) -> tuple[Session, Callable[[], None]]:
    """(a session that was planned for once, as each is that is near its threshold; what appends to it)."""
    session = _opened(folder)
    session.journal = MemoryJournal()
    session.ensure_facts()
    read = read_messages((GO_ON,), None)
    new = AppendRequest(read=read, tokens=[session.count_message(message) for message, _ in read])
    planner(session, CompactRequest(keep_recent=keep, strategy="extract"))()

    def more() -> None:
        session.append(new)

    return session, more


def _compacting(strategy: StrategyChoice) -> Prepare:
    """Time a compaction without a model and without the journal. Each run computes all facts again."""

    def prepare(folder: str, keep: int) -> Run:
        session = _opened(folder)
        request = CompactRequest(keep_recent=keep, strategy=strategy)

        def run() -> Told:
            session.drop_facts()
            return _compacted(session, request, FactCache(session.working_dir))

        return run

    return prepare


def _read_ahead(strategy: StrategyChoice) -> Prepare:
    """Time a compaction without a model after the daemon has analysed the messages in idle time, as it does
    with each session. Between two runs, memory is given back as after a compaction."""

    def prepare(folder: str, keep: int) -> Run:
        session = _opened(folder)
        facts = session.ensure_facts()
        request = CompactRequest(keep_recent=keep, strategy=strategy)
        _loop.run_until_complete(_learnt(session))

        def run() -> Told:
            return {**_compacted(session, request, facts), AFTER: lambda: settle(facts)}

        return run

    return prepare


async def _learnt(session: Session) -> None:
    async def at_once(read: Callable[[], None]) -> None:
        read()

    learner = IdleAnalyzer({SESSION: session}, at_once, quiet_s=0.0)
    learner.note_request(METHODS["session/append"], SESSION)
    await learner.wait_idle()


def _compacted(session: Session, request: CompactRequest, facts: FactCache) -> Told:
    made = planner(session, request)()
    if isinstance(made, NotCompacted):
        raise ValueError(made.reason)
    outcome = drive(summary_input(session, made, facts, NoModel(), _unchecked))
    if isinstance(outcome, NotCompacted):
        raise ValueError(outcome.reason)
    return {"tokens": outcome.result.tokens_after}


def load_session(folder: str, keep: int) -> Run:
    """The journal, read, checked, folded into a session that answers."""

    daemon = _daemon(folder)
    daemon.lookup("openai/gpt-4o", None)  # the registry is the process's, not the session's

    def run() -> Told:
        session, close = _open(daemon)
        return {"messages": len(session.state.items), HELD: session, AFTER: close}

    return run


def decode(folder: str, keep: int) -> Run:
    """The floor: msgspec alone, all lines of the journal in one call."""
    data = next((Path(folder) / "sessions").glob("*.jsonl")).read_bytes()
    lines = msgspec.json.Decoder(Record).decode_lines

    def run() -> Told:
        records = lines(data)
        return {"messages": len(records), HELD: records}

    return run


def _unchecked(phase: str, fraction: float) -> None:
    """Nobody cancels."""


def _messages(file: str) -> list[Message]:
    raws = tuple(msgspec.Raw(line) for line in Path(file).read_bytes().splitlines())
    return [message for message, _ in read_messages(raws, None)]


def _daemon(folder: str) -> Daemon:
    return Daemon({**os.environ, "COMPACTD_HOME": folder})


def _open(daemon: Daemon) -> tuple[Session, Callable[[], None]]:
    journal, records = FolderStore(daemon.home).open(SESSION, durability="os")
    session = Session(daemon, SESSION, journal, decode_entries(records))
    return session, lambda: _loop.run_until_complete(journal.close())


def _opened(folder: str) -> Session:
    session, close = _open(_daemon(folder))
    close()
    return session


ROWS: dict[str, Prepare] = {
    "count": count,
    "count_one": count_one,
    "estimate": _estimate(Chars4()),
    "estimate_scripts": _estimate(script_aware("claude")),
    "cut": cut,
    "plan": plan,
    "trim": _compacting("truncate"),
    "trim_ahead": _read_ahead("truncate"),
    "compact": _compacting("extract"),
    "compact_ahead": _read_ahead("extract"),
    "load": load_session,
    "decode": decode,
}
"""All but the counts are given the folder that the daemon stored the session in."""

if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    asyncio.set_event_loop(_loop)
    serve(ROWS, __version__)

"""A session of ten million tokens: does any call cost more than its size explains?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec import Struct

from benchmarks.conversation import kilobytes
from benchmarks.figures import Row, Target
from benchmarks.load.bench import WARM, Bench, latency_rows, stall_rows, stalls_of
from benchmarks.load.line import Line
from benchmarks.load.watching import Asker, beside, percentiles, taken
from benchmarks.sessions import ROOMY

SESSION = "long"
BATCH = 100
CHARS_A_TOKEN = 3.4
"""Characters per token of these texts in gpt-4o's encoding, as measured."""
STATES = 50
KEEP = 20_000
TENTH = 10
"""The session is also looked at when it has a tenth of its size."""


class _Decision(Struct, frozen=True):
    used: int


class _Appended(Struct, frozen=True):
    decision: _Decision


class _Compacted(Struct, frozen=True):
    compacted: bool
    tokens_before: int = 0
    tokens_after: int = 0


class At(Struct, frozen=True):
    """The session at one of its two sizes."""

    tokens: int
    append_s: float
    state_ms: float
    compact_s: float
    compact_core_s: float
    open_s: float
    rss_mb: float
    journal_mb: float


async def long(bench: Bench) -> list[Row]:
    """Measure at a tenth of the size and at the whole size. Each figure divided by the tokens should be the
    same."""
    size = bench.size
    texts = _texts(size.long_tokens, size.long_messages)
    next(texts)  # it reads files first, and the client is not to be what is measured
    rows: list[Row] = []
    found: list[At] = []
    for part, messages in ((TENTH, size.long_messages // TENTH), (1, size.long_messages)):
        name = f"{SESSION}-{part}"
        async with bench.daemon() as line, bench.bare() as bare:
            await bench.warm(line)
            small = Asker(line, "agent/state", {"session_id": WARM})
            ping, alone = Asker(line, "daemon/ping"), Asker(bare, "daemon/ping")
            async with beside(small, ping, alone):
                at = await _life(bench, line, name, texts, messages)
            rows += latency_rows(
                f"while a session grows to {at.tokens / 1e6:.2f}M tokens",
                {"agent/state": small, "ping": ping},
                alone,
            )
        rows += stall_rows("long", stalls_of(bench))
        found.append(at)
    tenth, whole = found
    factor = whole.tokens / tenth.tokens
    for what, before, after, unit in (
        ("append all of it", tenth.append_s, whole.append_s, "s"),
        ("compact it by extract", tenth.compact_s, whole.compact_s, "s"),
        ("the same, its core", tenth.compact_core_s, whole.compact_core_s, "s"),
        ("open it", tenth.open_s, whole.open_s, "s"),
        ("memory", tenth.rss_mb, whole.rss_mb, "MB"),
    ):
        rows.append(
            Row(
                what=f"{whole.tokens / 1e6:.1f}M tokens in {size.long_messages:,} messages: {what}",
                value=after,
                unit=unit,
                beside={f"a tenth, times {factor:.1f}": before * factor},
                to=f"a tenth, times {factor:.1f}",
                target=Target(most_ratio=1.3),
            )
        )
    rows.append(
        Row(
            what="  its agent/state, p50",
            value=whole.state_ms,
            unit="ms",
            beside={"at a tenth": tenth.state_ms},
            target=Target(most=2.0),
        )
    )
    rows.append(Row(what="  its journal", value=whole.journal_mb, unit="MB"))
    return rows


async def _life(bench: Bench, line: Line, name: str, texts: Iterator[str], messages: int) -> At:
    await _start(line, name, bench.size.model)
    used, began = 0, perf_counter()
    for start in range(0, messages, BATCH):
        batch = [
            {"role": "assistant" if number % 2 else "user", "content": next(texts)}
            for number in range(start, min(start + BATCH, messages))
        ]
        answer = await line.call("session/append", {"session_id": name, "messages": batch})
        used = msgspec.json.decode(answer, type=_Appended).decision.used
    append_s = perf_counter() - began
    rss_mb = taken(line.pid).rss_mb
    states = [(await line.answered("agent/state", {"session_id": name})).took_s for _ in range(STATES)]
    journal_mb = _journal_mb(bench, name)
    await line.call("session/close", {"session_id": name})
    began = perf_counter()
    await _start(line, name, bench.size.model)
    open_s = perf_counter() - began
    began, core_s = perf_counter(), taken(line.pid).core_s
    done = msgspec.json.decode(
        await line.call("session/compact", {"session_id": name, "strategy": "extract", "keep_recent": KEEP}),
        type=_Compacted,
    )
    compact_s, compact_core_s = perf_counter() - began, taken(line.pid).core_s - core_s
    if not done.compacted and used > 2 * KEEP:
        raise AssertionError(f"{used} tokens were not compacted")
    await line.call("session/delete", {"session_id": name})
    return At(
        tokens=used,
        append_s=append_s,
        state_ms=percentiles(states).p50,
        compact_s=compact_s,
        compact_core_s=compact_core_s,
        open_s=open_s,
        rss_mb=rss_mb,
        journal_mb=journal_mb,
    )


async def _start(line: Line, name: str, model: str) -> None:
    params = {"session_id": name, "model": model, "compaction": {"context_window": ROOMY}}
    await line.call("session/start", params)


def _texts(tokens: int, messages: int) -> Iterator[str]:
    """Texts without end, each another, of the length that makes so many tokens in so many messages."""
    chars = max(8, int(tokens / messages * CHARS_A_TOKEN))
    rest = ""
    pieces = kilobytes()
    for number in count():
        while len(rest) < chars:
            rest += next(pieces)
        yield f"{number} {rest[:chars]}"
        rest = rest[chars:]


def _journal_mb(bench: Bench, name: str) -> float:
    folder = Path(bench.env["COMPACTD_HOME"]) / "sessions"
    return sum(file.stat().st_size for file in folder.glob(f"{name}*.jsonl")) / 1e6

"""Many compactions at once, with summaries from one provider that stalls for some of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import msgspec
from msgspec import Raw, Struct

from benchmarks.conversation import ROOT, messages_of
from benchmarks.figures import Row, Target
from benchmarks.load.bench import WARM, Bench, Size, latency_rows, stall_rows, stalls_of
from benchmarks.load.line import Line
from benchmarks.load.watching import Asker, beside, taken
from benchmarks.sessions import ROOMY

BATCH = 40
STALLED_EVERY = 10
MODEL = "openai/gpt-4o"
SUMMARY = """## Goal
- Make the daemon bear a hundred compactions at once.
## Constraints & Preferences
- Never change the public names.
## Progress
### Done
- [x] The sessions were filled.
### In Progress
- [ ] They are compacted.
### Blocked
(none)
## Key Decisions
- **One provider**: it stalls for one request in ten.
## Next Steps
1. Look at the latencies.
## Critical Context
- The small requests are asked meanwhile.
"""


class _Decision(Struct, frozen=True):
    used: int


class _Appended(Struct, frozen=True):
    decision: _Decision


class _Compacted(Struct, frozen=True):
    compacted: bool
    strategy: str = ""
    reason: str = ""


@contextmanager
def provider(bench: Bench) -> Iterator[str]:
    """The tests' provider on loopback, in a process of its own: its address. One request in ten is begun
    to be answered, and then nothing comes."""
    answer = {"type": "Answer", "text": SUMMARY, "chunk_chars": 40}
    stall = {"type": "Stall", "text": SUMMARY[:60]}
    steps = [stall if number % STALLED_EVERY == 0 else answer for number in range(4 * bench.size.compactions)]
    script = bench.folder / "script.json"
    script.write_bytes(msgspec.json.encode(steps))
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.loopback", "--script", str(script)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield str(msgspec.json.decode(process.stdout.readline())["base_url"])
        process.stdin.close()


async def hundred(bench: Bench) -> list[Row]:
    """All are asked at the same moment; every one of them ends, and the small requests do not wait."""
    size = bench.size
    rows: list[Row] = []
    with provider(bench) as base_url:
        env = {"OPENAI_BASE_URL": f"{base_url}/v1", "OPENAI_API_KEY": "the-load", "NO_PROXY": "127.0.0.1"}
        async with bench.daemon(env) as line, bench.bare() as bare:
            names = [f"many-{number}" for number in range(size.compactions)]
            await bench.warm(line)
            tokens = 0
            batches = _batches(size.compaction_tokens)
            for name in names:
                await _start(line, name, size)
                tokens = await _fill(line, name, batches, size.compaction_tokens)
            full = taken(line.pid)
            other = Asker(line, "agent/state", {"session_id": WARM})
            own = Asker(line, "agent/state", {"session_id": names[-1]})
            ping, alone = Asker(line, "daemon/ping"), Asker(bare, "daemon/ping")
            began = perf_counter()
            async with beside(other, own, ping, alone):
                done = await asyncio.gather(
                    *(line.answered("session/compact", {"session_id": name}) for name in names)
                )
            took_s = perf_counter() - began
            after = taken(line.pid)
        told = [msgspec.json.decode(one.result, type=_Compacted) for one in done]
        strategies = Counter(one.strategy if one.compacted else "nothing" for one in told)
        what = f"during {size.compactions} compactions of {tokens / 1000:.0f}k tokens"
        rows += latency_rows(
            what, {"agent/state": other, "agent/state of one of them": own, "ping": ping}, alone
        )
        rows.append(
            Row(
                what=f"{size.compactions} compactions of {tokens / 1000:.0f}k tokens at once",
                value=took_s,
                unit="s",
                beside={
                    **{f"by {name}": count for name, count in sorted(strategies.items())},
                    "its core, s": after.core_s - full.core_s,
                },
            )
        )
        rows.append(Row(what="  not compacted", value=strategies["nothing"], unit="", target=Target(most=0)))
        rows.append(
            Row(what="  memory at most", value=after.peak_mb, unit="MB", beside={"before": full.rss_mb})
        )
    rows += stall_rows("hundred", stalls_of(bench))
    return rows


def _batches(tokens: int) -> list[Raw]:
    """Return the messages of a session of at least `tokens` tokens, encoded once, so that the client's own
    cost is not measured."""
    messages = messages_of(6 * tokens)
    return [
        Raw(msgspec.json.encode(messages[start : start + BATCH])) for start in range(0, len(messages), BATCH)
    ]


async def _fill(line: Line, name: str, batches: list[Raw], tokens: int) -> int:
    used = 0
    for batch in batches:
        answer = await line.call("session/append", {"session_id": name, "messages": batch})
        used = msgspec.json.decode(answer, type=_Appended).decision.used
        if used >= tokens:
            break
    return used


async def _start(line: Line, name: str, size: Size) -> None:
    settings = {
        "context_window": ROOMY,
        "keep_recent_tokens": size.compaction_tokens // 10,
        "model": MODEL,
        "summary_deadline_s": size.summary_deadline_s,
    }
    await line.call("session/start", {"session_id": name, "model": size.model, "compaction": settings})

"""Replays recordings under policies, in several processes. Results that cannot change are cached on disk."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.cost.bill import PriceList
from benchmarks.cost.facts import Fact, Facts, common_facts
from benchmarks.cost.policies import AnyPolicy, Cost
from benchmarks.cost.replay import Outcome, replay
from benchmarks.retention import sessions
from benchmarks.retention.records import SUMMARY, Session
from benchmarks.retention.scoring import fingerprint, remembered
from benchmarks.retention.sessions import REPOSITORY, Source
from compactd.models.catalog import Catalogue

CACHE = Path("build/cost")
LEFT_OUT = ("aider",)
"""Files that are no one session: aider's history is many chats, and aider sends chosen files."""
MIN_REQUESTS = 3

HERE = Path(__file__).parent
CORE = REPOSITORY / "server" / "compactd" / "core"
METRIC = ("records", "atoms", "probes", "agents", "sessions", "ours")
LISTS = (
    ("Claude Sonnet 4.5", "anthropic/claude-sonnet-4-5", 300.0),
    ("Claude Opus 4.5", "anthropic/claude-opus-4-5", 300.0),
    ("GPT-5", "openai/gpt-5", 600.0),
)
"""Name, model in the registry, lifetime of the cache in seconds. OpenAI removes an unused prefix after 5 to
10 minutes ("Prompt caching", platform.openai.com, read 2026-11)."""


def price_lists() -> tuple[PriceList, ...]:
    """Return the price lists, from the registry."""
    found, catalogue = [], Catalogue()
    for name, model, lifetime_s in LISTS:
        pricing = catalogue.lookup(model).pricing
        if pricing is None:
            raise LookupError(f"the registry has no prices of {model}")
        found.append(PriceList(name, pricing, lifetime_s))
    return tuple(found)


class Job(Struct, frozen=True):
    """A recording to replay under policies."""

    source: Source
    policies: tuple[AnyPolicy, ...]
    common: frozenset[Fact]
    cache: Path
    engine: str


class Replayed(Struct, frozen=True):
    """The replays of one recording."""

    name: str
    outcomes: tuple[Outcome, ...]
    """One for each policy of the job."""
    has_own: bool
    """Whether the recording contains compactions of the agent itself."""


def engine() -> str:
    """Return a hash of the code that the replays depend on, without the cost policy. O(bytes)."""
    parts = [file for file in CORE.rglob("*.py") if file.parent.name not in ("cost", "overflow", "models")]
    parts += [HERE / f"{name}.py" for name in ("facts", "replay")]
    parts += [HERE.parent / "retention" / f"{name}.py" for name in METRIC]
    return fingerprint(parts)


@functools.cache
def _policy_code() -> str:
    parts = [HERE / "policies.py", *(CORE / "cost" / f"{name}.py" for name in ("policy", "rhythm", "price"))]
    return fingerprint(parts)


def wanted(data: Path | None) -> list[Source]:
    """Return the recordings that are one session each, by name."""
    return [source for source in sessions.sources(data) if not source.name.startswith(LEFT_OUT)]


def common_of(found: Sequence[Source], cache: Path, code: str) -> frozenset[Fact]:
    """Return the facts that unrelated sources of recordings share."""
    key = f"common {code} {[(s.name, s.file.stat().st_size) for s in found]}"
    return remembered(
        cache, key, lambda: common_facts((source.name, sessions.read(source).records) for source in found)
    )


def replayed(job: Job) -> Replayed | None:
    """Replay a recording under each policy of the job; None if it has too few requests."""
    session = sessions.read(job.source)
    if sum(record.role == "assistant" for record in session.records) < MIN_REQUESTS:
        return None
    facts = Facts(session.records, job.common)
    return Replayed(
        session.name,
        tuple(_one(job, session, facts, policy) for policy in job.policies),
        any(record.kind == SUMMARY for record in session.records),
    )


def _one(job: Job, session: Session, facts: Facts, policy: AnyPolicy) -> Outcome:
    key = f"{job.engine} {session.name} {job.source.file.stat().st_size} {msgspec.json.encode(policy)!r}"
    if isinstance(policy, Cost):
        key += _policy_code()
    return remembered(job.cache, key, lambda: replay(session.name, session.records, facts, policy))


def run(jobs: Sequence[Job], processes: int) -> Iterator[Replayed]:
    """Yield the replays of all recordings, in their order."""
    if processes == 1:
        yield from (found for job in jobs if (found := replayed(job)) is not None)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from (found for found in pool.map(replayed, jobs) if found is not None)

"""compactd's version of the metric and the judge that defines it agree on every shared recording."""

from __future__ import annotations

import functools
import importlib.util
import json
from functools import cache
from types import ModuleType

import msgspec
import pytest

from benchmarks.retention import sessions
from benchmarks.retention.agents import FORMATS
from benchmarks.retention.agreement import FILE, POINT, ROUNDING, Shared
from benchmarks.retention.atoms import Atom, Atoms
from benchmarks.retention.baselines import PLAIN
from benchmarks.retention.judging import kept
from benchmarks.retention.points import points_of
from benchmarks.retention.probes import probes_of
from benchmarks.retention.records import Record, Session, context_of, working_dir
from benchmarks.retention.scoring import CACHE, NOT_CUT, Job, common_of, cuts, judged
from benchmarks.retention.sessions import OWN_NAME, REPOSITORY, Source

DATA = sessions.shared_data()
TOOLS = None if DATA is None else DATA.resolve().parent / "tools"
pytestmark = pytest.mark.skipif(
    TOOLS is None or not (TOOLS / "probe.py").exists(), reason="the shared recordings are not here"
)

SOURCES = [source for source in sessions.sources(DATA) if source.name != OWN_NAME]
KEPT = REPOSITORY / CACHE / "kept"
KNOWN_TO_THE_TOKEN = tuple(name for name in PLAIN if name != "iddump")


@cache
def judge() -> ModuleType:
    assert TOOLS is not None
    spec = importlib.util.spec_from_file_location("probe", TOOLS / "probe.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Lines are asked for again at each cut: the same answers, remembered.
    module.atoms = functools.lru_cache(maxsize=200_000)(module.atoms)
    module.COMMON.update(common())
    return module


@cache
def common() -> frozenset[Atom]:
    return common_of(sessions.sources(DATA), KEPT)


def row_of(record: Record) -> dict[str, object]:
    """A record as the judge takes it."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in record.calls]
    row = {"i": record.at, "role": record.role, "text": record.text, "tool_calls": calls}
    return {**row, "kind": record.kind} if record.kind else row


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_every_message_reads_the_same(source: Source) -> None:
    for record in sessions.read(source).records:
        row = row_of(record)
        assert (record.rendered, record.given) == (judge().render(row), judge().calls_plain(row))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_every_probe_of_a_cut_is_the_judges(source: Source) -> None:
    """The first cut of each recording and the last: the judge takes seconds for one."""
    if source.name.startswith(NOT_CUT):
        return
    session = sessions.read(source)
    folder = working_dir(session.records)
    points = list(points_of(session.records))
    for point in {point.cut: point for point in (*points[:1], *points[-1:])}.values():
        past = session.records[point.start : point.cut]
        future = session.records[point.cut : point.end]

        ours = probes_of(past, future, Atoms(folder), folder, common())
        atoms, said, anchors, lines = judge().build(
            [row_of(record) for record in past], [row_of(record) for record in future], folder
        )

        assert ours.atoms == atoms
        assert ours.sentences == said
        assert ours.anchors == {atom: frozenset(words) for atom, words in anchors.items()}
        assert ours.lines.keys() == lines


def smallest(count: int) -> list[Session]:
    """Sessions that are cut and are quickly judged."""
    found = [sessions.read(source) for source in SOURCES if not source.name.startswith(NOT_CUT)]
    cut = [session for session in found if list(points_of(session.records))]
    return sorted(cut, key=lambda session: sum(len(r.text) for r in session.records))[:count]


def test_what_a_context_holds_is_what_the_judge_finds_in_it() -> None:
    for session in smallest(2):
        folder = working_dir(session.records)
        for point in points_of(session.records):
            past = session.records[point.start : point.cut]
            future = session.records[point.cut : point.end]
            theirs = judge().build(list(map(row_of, past)), list(map(row_of, future)), folder)
            ours = probes_of(past, future, Atoms(folder), folder, common())
            for context in (context_of(past), context_of(past[-10:]), context_of(past[::3])):
                found = {probe for kind, probe in judge().judge(theirs, context, folder) if kind == "lnk"}
                assert kept(ours, context, Atoms(folder), folder) == found


def test_the_six_known_baselines_are_within_a_point_at_each_cut_of_the_smallest_session() -> None:
    assert DATA is not None
    if not (DATA / FILE).exists():
        pytest.skip("the shared figures are not here")
    shared = msgspec.json.decode((DATA / FILE).read_bytes(), type=list[Shared])
    theirs = {(one.session, one.cut, one.method, one.budget): one for one in shared}
    names = {session.name for session in smallest(1)}
    compared = 0
    for source in SOURCES:
        if source.name not in names:
            continue
        job = Job(source, common(), (), (), KEPT)
        for cut in cuts(job):
            for method in KNOWN_TO_THE_TOKEN:
                for budget in (2_000, 8_000):
                    one = theirs.get((cut.session, cut.point.cut, method, budget))
                    if one is None or cut.summary:
                        continue
                    row = judged(cut, method, budget, PLAIN[method](cut, budget))
                    compared += 1
                    assert row.tokens == one.tokens, (method, budget)
                    assert abs((row.linked or 0) - (one.linked or 0)) <= POINT + ROUNDING, (method, budget)
                    assert abs(row.cg - one.cg) <= POINT + ROUNDING, (method, budget)
    assert compared >= len(KNOWN_TO_THE_TOKEN)


def test_the_manifest_names_only_formats_that_are_read_here() -> None:
    assert DATA is not None
    rows = json.loads((DATA / "sessions" / "MANIFEST.json").read_bytes())
    assert {row["format"] for row in rows} <= FORMATS.keys()

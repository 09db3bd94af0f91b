"""A comparison with only the contenders that need no installation, on a session small enough for a test."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from benchmarks.against import document, wire
from benchmarks.against.child import CannotDo, Child
from benchmarks.against.contenders import CONTENDERS, ROOT
from benchmarks.against.places import PLACES
from benchmarks.against.plots import log_log
from benchmarks.against.racing import Pace
from benchmarks.against.results import LIBRARY_ROWS, Figure, Result
from benchmarks.against.running import Run, joined, run
from benchmarks.against.table import left_out
from benchmarks.against.workload import make

TINY = Pace(
    # The user speaks every ten thousand tokens: with less there may be nothing to compact.
    main=48_000,
    sizes=(24_000, 48_000),
    rounds=1,
    budget_s=1.0,
    patience_s=60.0,
    starts=0,
    start_budget_s=0.0,
)
ROWS = ("load", "count", "cut", "plan")
"""Rows that need neither numpy nor a third process."""
NO_SERVERS = wire.Sizes(starts=0, rounds=0, pings=0, pipelined=0, floods=0, large=0)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("against")
    ours = [one for one in CONTENDERS if one.place is None and set(ROWS) & set(one.rows)]
    return run(folder, TINY, NO_SERVERS, lambda line: None, parts=ROWS, contenders=ours)


def test_compactd_does_every_row_that_is_asked_for_at_every_size(done: Run) -> None:
    seen = {(one.row.key, one.tokens) for one in done.results if one.ours is not None}

    assert seen == {(row, size) for row in ROWS for size in TINY.sizes} | {("memory", TINY.main)}
    assert [dict(one.cannot) for one in done.results if one.cannot] == []


def test_what_a_run_writes_is_read_back_the_same(done: Run) -> None:
    assert msgspec.json.decode(msgspec.json.encode(done), type=Run) == done


def test_a_later_run_takes_the_place_of_the_rows_in_which_nobody_is_missing(
    done: Run, tmp_path: Path
) -> None:
    loads = tuple(one for one in done.results if one.row.key == "load")
    slower = tuple(
        msgspec.structs.replace(
            one, figures=tuple(msgspec.structs.replace(each, value=2 * each.value) for each in one.figures)
        )
        for one in loads
    )
    counts = tuple(
        msgspec.structs.replace(one, figures=one.figures[:1])
        for one in done.results
        if one.row.key == "count"
    )
    later = msgspec.structs.replace(done, results=slower + counts)

    both = joined(done, later)

    expected = {(one.row.key, one.tokens): one for one in (*done.results, *slower)}
    assert {(one.row.key, one.tokens): one for one in both.results} == expected
    assert len(both.results) == len(done.results)
    document.write(both, tmp_path)
    assert ": load a session.\n" in (tmp_path / "peers.md").read_text("utf-8")


def test_the_page_has_a_section_and_a_plot_for_each_row_and_names_the_workload(
    done: Run, tmp_path: Path
) -> None:
    written = document.write(done, tmp_path)

    page = (tmp_path / "peers.md").read_text("utf-8")
    for row in LIBRARY_ROWS:
        assert (f"## {row.what.capitalize()}\n" in page) is (row.key in ROWS)
    assert done.results[0].workload in page
    for picture in written[1:]:
        assert ET.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert picture.name in page


def test_the_same_size_gives_the_same_session(tmp_path: Path) -> None:
    one, two = make(tmp_path, 5_000), make(tmp_path, 5_000)

    assert one == two
    assert one.chars >= 4 * 4_000


def test_nobody_is_first_where_a_peer_is_quicker_and_a_floor_is_no_peer() -> None:
    row = LIBRARY_ROWS[0]
    ours = Figure(who="compactd", kind="ours", value=2.0, runs=1)
    floor = Figure(who="C", kind="floor", value=1.0, runs=1)
    peer = Figure(who="peer", kind="peer", value=4.0, runs=1)

    def result(*figures: Figure) -> Result:
        return Result(row=row, tokens=1, workload="", figures=figures, cannot={})

    assert result(ours, floor).is_first is None
    assert result(ours, floor, peer).is_first is True
    assert result(ours, floor, peer).times(peer) == 2.0
    assert result(ours, msgspec.structs.replace(peer, value=1.0)).is_first is False


def test_a_peer_that_cannot_says_why_once_for_all_sizes() -> None:
    row = LIBRARY_ROWS[0]
    results = [
        Result(row=row, tokens=size, workload="", figures=(), cannot={"pi": "asks a model"})
        for size in (1, 2)
    ]

    assert left_out(results) == {"pi": [f"{row.what}: asks a model"]}


def test_a_peer_that_ends_or_hangs_is_told_and_not_waited_for() -> None:
    ends = [sys.executable, "-c", "raise SystemExit('no such thing')"]
    hangs = [sys.executable, "-c", "input()"]

    with pytest.raises(CannotDo, match="it ended: no such thing"):
        Child(ends, {}, 30.0)
    with pytest.raises(CannotDo, match="took longer than 0 s"):
        Child(hangs, {}, 0.1)


def test_every_version_is_pinned_and_every_place_is_somebodys() -> None:
    for place in PLACES:
        assert all("==" in package for package in place.python), place.name
        assert all("@" in package[1:] for package in place.node), place.name

    assert {place.name for place in PLACES} == {one.place for one in CONTENDERS if one.place is not None}


def test_every_side_is_there() -> None:
    drivers = ROOT / "benchmarks" / "against" / "drivers"
    missing = [
        one.name
        for one in CONTENDERS
        if not any((drivers / f"{one.side}{end}").exists() for end in (".py", ".mjs"))
    ]

    assert missing == []


def test_a_plot_draws_one_line_a_name_in_the_order_of_their_sizes() -> None:
    drawn = ET.fromstring(
        log_log("time", {"compactd": [(100_000, 2.0), (10_000, 0.2)], "a < b": [(10_000, 9.0)]})
    )

    lines = [one.get("points", "").split() for one in drawn.iter("{http://www.w3.org/2000/svg}polyline")]
    assert [len(points) for points in lines] == [2, 1]
    assert lines[0] == sorted(lines[0], key=lambda point: float(point.split(",")[0]))

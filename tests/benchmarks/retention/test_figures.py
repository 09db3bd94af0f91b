"""The figures: means, paired differences, the page, the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.retention import document, figures, pictures, tables
from benchmarks.retention.ablations import variants, varied
from benchmarks.retention.aside import group_of, is_aside, source_of
from benchmarks.retention.figures import difference, interval, score
from benchmarks.retention.scoring import METHODS, Row

ROOT = Path(__file__).resolve().parents[3]


def row(session: str, cut: int, method: str, linked: float, cg: float = 0.5, **more: object) -> Row:
    found = {"path": (round(linked * 10), 10)}
    return Row(session, 0, cut, 100, method, 4_000, 4_000, linked, cg, found, **more)


ROWS = [
    row("a-0", 10, "extract", 0.9),
    row("a-0", 20, "extract", 0.7),
    row("b-0", 10, "extract", 0.6),
    row("a-0", 10, "keep_last", 0.4),
    row("a-0", 20, "keep_last", 0.4),
    row("b-0", 10, "keep_last", 0.5),
    row("b-0", 20, "keep_last", 0.0),
]


def of(method: str) -> list[Row]:
    return [one for one in ROWS if one.method == method]


def test_sessions_weigh_alike_however_many_cuts_they_have() -> None:
    assert score(of("extract")).linked == 70.0


def test_a_refusal_is_counted_and_has_no_score() -> None:
    refused = row("b-0", 10, "extract", 0.0, is_refused=True)

    seen = score([*of("extract")[:2], refused])

    assert (seen.linked, seen.cuts, seen.refused) == (80.0, 2, 1)


def test_a_difference_is_of_the_cuts_that_both_have() -> None:
    seen = difference(of("extract"), of("keep_last"), figures.linked)

    assert seen is not None
    assert seen.mean == 25.0
    assert (seen.least, seen.most) == (10.0, 40.0)
    assert seen.low <= seen.mean <= seen.high


def test_nothing_to_compare_gives_no_difference() -> None:
    assert difference(of("extract"), [], figures.linked) is None


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_an_interval_is_the_same_each_time_and_within_the_values(values: list[float]) -> None:
    low, high = interval(values)

    assert (low, high) == interval(values)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_parts_of_one_recording_are_on_one_side() -> None:
    assert group_of("entire-897eb280-12") == group_of("entire-897eb280-18") == "entire-897eb280"
    assert group_of("pi-large-session") == "pi-large-session"
    assert is_aside("entire-897eb280-12") == is_aside("entire-897eb280-18")
    assert (source_of("entire-gemini-6a71b254"), source_of("pi-large-session")) == ("entire", "pi")


def test_about_a_third_is_put_aside() -> None:
    assert 0.3 < sum(is_aside(f"recording-of-{n:04x}") for n in range(0x1000, 0x1800)) / 0x800 < 0.37


def test_every_method_has_a_title_and_a_colour() -> None:
    assert set(METHODS) | {"recorded_summary"} == tables.TITLES.keys() == pictures.COLOURS.keys()


def test_each_ablation_names_what_the_engine_has_and_is_taken_back() -> None:
    for variant in variants():
        before = [getattr(one.module, one.name) for one in variant.sets]
        with varied(variant):
            during = [getattr(one.module, one.name) for one in variant.sets]
        after = [getattr(one.module, one.name) for one in variant.sets]

        assert all(now is old for now, old in zip(after, before, strict=True)), variant.title
        assert all(now != old for now, old in zip(during, before, strict=True)), variant.title


def test_a_block_of_the_page_is_replaced_and_the_rest_is_not() -> None:
    page = "before\n<!-- figures: data -->\nold\n<!-- end -->\nafter\n"

    assert document.filled(page, {"data": "new"}) == (
        "before\n<!-- figures: data -->\n\nnew\n\n<!-- end -->\nafter\n"
    )


def test_the_page_shows_what_its_json_says() -> None:
    shown = msgspec.json.decode(document.JSON.read_bytes(), type=document.Published)
    drawn = {
        pictures.FILES["budget"]: pictures.by_budget(shown.figures),
        pictures.FILES["category"]: pictures.by_category(shown.figures),
        pictures.FILES["session"]: pictures.by_session(shown.figures),
    }

    assert document.stale(document.PAGE.read_text("utf-8"), shown) == []
    assert all((document.DOCS / name).read_text("utf-8") == text for name, text in drawn.items())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.retention", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


OWN = ("--own", "--budgets", "4000", "--methods", "keep_last,extract", "--processes", "1")


def test_without_recordings_the_own_session_is_measured_the_same_each_time(tmp_path: Path) -> None:
    first = run(*OWN, "--cache", str(tmp_path / "a"))
    again = run(*OWN, "--cache", str(tmp_path / "a"))

    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("measured on: the project's own session (examples/session.jsonl)")
    assert re.search(r"\| keep the last messages +\|", first.stdout)
    assert json.loads((tmp_path / "a" / "cuts.json").read_text("utf-8"))
    assert again.stdout.split("extract, in process")[0] == first.stdout.split("extract, in process")[0]


def test_what_was_lost_is_told_with_where_it_stood_and_where_it_was_needed(tmp_path: Path) -> None:
    done = run(
        "--own", "--session", "compactd-session", "--lost", "--budgets", "4000", "--cache", str(tmp_path)
    )

    assert done.returncode == 0, done.stderr
    assert re.search(r"extract at 4,000: \d+ of \d+ probes lost", done.stdout)
    assert re.search(r"stood in \d+ .*; needed at message \d+", done.stdout)


@pytest.mark.parametrize("arguments", [("--lost",), ("--session", "no-such")])
def test_a_question_that_names_no_session_is_told_so(arguments: tuple[str, ...]) -> None:
    done = run("--own", *arguments)

    assert done.returncode == 2
    assert "session" in done.stderr

"""The sessions of docs/handover.md, and the texts that compactd makes of them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks.reading.before_after import PAGES, ROOT, SESSIONS, SIZES, make_texts
from benchmarks.reading.summaries import items_of
from compactd.core.history.entries import Item
from compactd.core.work.state import WorkReader
from compactd.protocol.messages import Text
from examples.handover import write_travel
from examples.stage import Stage

WRITE = "python -m benchmarks.reading.before_after --document"
WRITTEN = ("migration", "travel")
"""The sessions that were made for the page."""
REPLACED = {
    "migration": ("The maximum deposit stays 50 €", "the maximum deposit is 80 €, not 50 €"),
    "travel": ("The dates are 12 June to 24 June 2027", "the new dates are 19 June to 1 July 2027"),
}
"""For each of them, what the user said first, and what replaces it."""


@cache
def items(name: str) -> tuple[Item, ...]:
    return items_of(SESSIONS[name])


def user_texts(name: str) -> list[str]:
    return [
        "\n".join(block.text for block in item.message.content if isinstance(block, Text))
        for item in items(name)
        if item.message.role == "user"
    ]


@pytest.mark.parametrize("name", SESSIONS)
def test_the_page_states_the_size_of_each_session(name: str) -> None:
    page = (ROOT / "docs" / "handover.md").read_text("utf-8")
    row = re.search(rf"^\| `{SESSIONS[name].relative_to(ROOT)}` \| ([\d,]+) \|", page, re.MULTILINE)

    assert row is not None
    assert int(row[1].replace(",", "")) == round(sum(item.tokens for item in items(name)), -3)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_session_has_15_000_to_25_000_tokens(name: str) -> None:
    assert 15_000 <= sum(item.tokens for item in items(name)) <= 25_000


@pytest.mark.parametrize("name", WRITTEN)
def test_a_session_ends_with_open_tasks(name: str) -> None:
    reader = WorkReader()

    for item in items(name):
        reader.add(item)

    assert "open" in {task.status for task in reader.state().work.plan}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_user_replaces_a_fact(name: str) -> None:
    texts = user_texts(name)

    first, second = (
        [at for at, text in enumerate(texts) if statement in text] for statement in REPLACED[name]
    )

    assert len(first) == len(second) == 1
    assert first < second


@pytest.mark.parametrize("name", WRITTEN)
def test_a_session_names_no_folder_of_the_machine_that_recorded_it(name: str) -> None:
    text = SESSIONS[name].read_text("utf-8")

    assert re.findall(r"/(?:home|root|tmp|work|usr|Users|private)/[^\s\"']{0,60}", text) == []


def test_the_travel_session_is_what_its_script_writes(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    write_travel.play(stage)
    stage.save(tmp_path / "travel.jsonl")

    assert (tmp_path / "travel.jsonl").read_bytes() == SESSIONS["travel"].read_bytes()


@pytest.mark.parametrize("name", SESSIONS)
def test_the_texts_after_are_what_compactd_makes_of_the_session(name: str) -> None:
    texts = make_texts(name, ROOT, "after")

    stored = {file: (PAGES / file).read_text("utf-8") for file in texts}
    assert [file for file in texts if stored[file] != texts[file]] == [], f"run `{WRITE}`"


@pytest.mark.parametrize("name", SESSIONS)
def test_the_page_links_all_texts_of_a_session(name: str) -> None:
    page = (ROOT / "docs" / "handover.md").read_text("utf-8")
    linked = {f"{name}-{size // 1_000}k-{when}.txt" for size in SIZES for when in ("before", "after")}

    assert {
        file for file in linked if f"(handover/{file})" not in page or not (PAGES / file).exists()
    } == set()

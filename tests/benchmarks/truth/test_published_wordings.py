"""Every text of the published lists, every veto, and 200 passages that only quote an overflow, each through
`overflow/classify` of one real daemon. All requests are sent before the first answer is read.

The rows (`published.jsonl`, `vetoes.jsonl`, `quotes.jsonl`) carry their sources; `unasserted` names the
fields about which the sources are silent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Daemon

Row = dict[str, Any]

HERE = Path(__file__).parent
ASKED = ("status", "code", "provider", "usage", "window", "stop_reason", "profile")
SAID = ("overflow", "kind", "limit", "requested", "fix")


def rows_of(name: str) -> list[Row]:
    """The rows of a file of this folder."""
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


PUBLISHED = rows_of("published.jsonl")
VETOES = rows_of("vetoes.jsonl")
QUOTES = rows_of("quotes.jsonl")


def params_of(row: Row) -> Row:
    """Return what a client would send about this failure: the text as its body, and its other fields."""
    params = {name: row[name] for name in ASKED if row.get(name) is not None}
    return {**params, "body": row["text"]} if row["text"] is not None else params


def by_id(row: Row) -> str:
    """A row's name among the test ids."""
    return str(row["id"])


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Row]]:
    """The daemon's answer for each row's id."""
    rows = (*PUBLISHED, *VETOES, *QUOTES)
    with Daemon(tmp_path_factory.mktemp("truth") / "home") as daemon:
        asked = {row["id"]: daemon.ask("overflow/classify", **params_of(row)) for row in rows}
        yield {name: daemon.result(request) for name, request in asked.items()}


def told(row: Row, verdict: Mapping[str, Any]) -> tuple[Row, Row]:
    """The fields of a row that its sources decide: as they should be, and as the daemon said them."""
    fields = [name for name in SAID if name not in row.get("unasserted", ())]
    return {name: row[name] for name in fields}, {name: verdict[name] for name in fields}


@pytest.mark.parametrize("row", PUBLISHED, ids=by_id)
def test_a_published_text_is_classified_as_its_source_says(row: Row, verdicts: Mapping[str, Row]) -> None:
    due, said = told(row, verdicts[row["id"]])
    assert said == due, (row["system"], row["fragment"], row["text"], verdicts[row["id"]]["evidence"])


@pytest.mark.parametrize("row", VETOES, ids=by_id)
def test_a_veto_keeps_a_text_from_being_an_overflow(row: Row, verdicts: Mapping[str, Row]) -> None:
    due, said = told(row, verdicts[row["id"]])
    assert said == due, (row["veto"], row["text"], verdicts[row["id"]]["evidence"])


def test_of_the_passages_that_quote_an_overflow_a_tenth_at_most_is_taken_for_one(
    verdicts: Mapping[str, Row],
) -> None:
    taken = [row["what"] for row in QUOTES if verdicts[row["id"]]["overflow"]]

    assert len(taken) <= len(QUOTES) / 10, taken


@pytest.mark.parametrize("row", [row for row in PUBLISHED if row["fragment"]], ids=by_id)
def test_a_row_holds_the_fragment_that_it_stands_for(row: Row) -> None:
    sent = f"{row['text']} {row['code'] or ''}"
    assert re.search(row["fragment"], sent, re.IGNORECASE | re.DOTALL), row


def test_the_rows_are_as_many_and_as_different_as_they_claim() -> None:
    assert len(QUOTES) == 200
    assert len({row["text"] for row in QUOTES}) == 200
    assert all(200 <= len(row["text"]) <= 3000 for row in QUOTES)
    assert {row["system"] for row in PUBLISHED} == {
        "opal",
        "go-agent",
        "klaude",
        "opencode-v1",
        "opencode-v2",
        "pi",
    }
    names = [row["id"] for row in (*PUBLISHED, *VETOES, *QUOTES)]
    assert len(names) == len(set(names))

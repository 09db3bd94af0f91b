"""Codex 0.169.0 with `compactd hook codex`: the next request contains, once, what its summary lost. With
`compactd mcp`, its model finds the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.codex.driven import SUMMARY, Codex, Model, said
from tests.support.loopback import Answer, Call

pytestmark = [pytest.mark.editor, pytest.mark.agent]

FOUND = (
    "The failing test is tests/ledger/test_rounding.py: ERR_HALF_EVEN in src/ledger/money.py, line 212."
    " I decided to keep Decimal and to set ROUND_HALF_EVEN in src/ledger/money.py."
)
AGAIN = (
    "I set ROUND_HALF_EVEN in src/ledger/money.py; ERR_HALF_EVEN of tests/ledger/test_rounding.py is gone."
)
FACT = "src/ledger/money.py"


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    with made.server:
        yield made


def words(topic: str, count: int) -> str:
    return f"{topic}: " + " ".join(f"{topic}{number:04}" for number in range(count))


def facts(model: Model) -> list[str]:
    """Return the texts with the lost fact that compactd added to the newest request."""
    items = [item for item in model.turns[-1].body["input"] if item.get("role") == "developer"]
    texts = ["".join(part["text"] for part in item["content"]) for item in items]
    return [text for text in texts if FACT in text]


def given_back(model: Model, call_id: str) -> str:
    """Return a tool's result as the newest request contains it."""
    items = model.turns[-1].body["input"]
    (result,) = (item for item in items if item.get("call_id") == call_id and "output" in item)
    return "".join(part["text"] for part in result["output"])


def work(codex: Codex) -> None:
    """Two turns whose facts only the model said, beyond the limit."""
    long = f"{AGAIN} {words('beta', 1_600)}"
    codex.model.answers = [
        Answer(text=FOUND, count_input=True),
        Answer(text=long, count_input=True, output_tokens=len(long) // 4, chunk_chars=400),
    ]
    codex.ask(f"Why does the build fail? {words('alpha', 300)}")
    codex.ask("Mend it.")


def test_what_the_summary_lost_is_in_the_very_next_request_once(tmp_path: Path, model: Model) -> None:
    codex = Codex(tmp_path, model)
    codex.install()
    work(codex)

    codex.ask("Go on.")

    assert model.compactions == 1
    request = said(model.turns[-1])
    assert SUMMARY in request
    assert "Go on." in request
    (given,) = facts(model)
    for fact in ("ERR_HALF_EVEN", "ROUND_HALF_EVEN", "tests/ledger/test_rounding.py"):
        assert fact in given
    assert "alpha0150" in request
    assert "alpha0150" not in given, "Codex keeps what the user typed"
    codex.ask("And then?")
    assert model.compactions == 1
    assert facts(model) == [given]


def test_hooks_that_nobody_trusts_do_nothing_and_those_that_are_trusted_work(
    tmp_path: Path, model: Model
) -> None:
    codex = Codex(tmp_path, model, trusts=False)
    codex.install()
    work(codex)
    codex.ask("Go on.")
    assert model.compactions == 1
    assert not facts(model)

    codex.trust()
    work(codex)
    codex.ask("Go on.")

    assert len(facts(model)) == 1


def test_over_the_limit_the_facts_are_cut_by_what_they_are_worth(tmp_path: Path, model: Model) -> None:
    codex = Codex(tmp_path, model)
    codex.install("--limit 1200")
    work(codex)

    codex.ask("Go on.")

    (given,) = facts(model)
    assert len(given.encode()) <= 1_200
    assert "I decided to keep Decimal" in given


def test_the_model_finds_a_line_over_mcp_that_the_compaction_lost(tmp_path: Path, model: Model) -> None:
    codex = Codex(tmp_path, model)
    codex.install("--limit 0")
    codex.add_recall()
    work(codex)
    search = Call("search_history", '{"query": "ERR_HALF_EVEN line"}', "call_q", "mcp__compactd")
    model.answers = [Answer(calls=(search,), count_input=True)]

    codex.ask("In which line was it?")

    assert model.compactions == 1
    asked, answered = model.turns[-2:]
    assert "search_history" in [
        tool["name"] for group in asked.body["tools"] if group.get("name") == search.namespace
        for tool in group["tools"]
    ]  # fmt: skip
    assert "line 212" not in said(asked)
    assert FOUND in given_back(model, "call_q")
    assert "line 212" in said(answered)

"""Retention: facts of the removed text are looked up in the new context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Item
from compactd.core.summary.retention import FactSearch, facts
from compactd.protocol.messages import Block, Message, Retention, Role, Text, ToolCall, ToolResult


def chars4(text: str) -> int:
    return (len(text) + 3) // 4


def items(*messages: tuple[Role, str | tuple[Block, ...]]) -> tuple[Item, ...]:
    return tuple(
        Item(
            entry_id=f"e{number}",
            body=Message(role=role, content=(Text(text=c),) if isinstance(c, str) else c),
            tokens=9,
        )
        for number, (role, c) in enumerate(messages, 1)
    )


def shell(call_id: str, command: str) -> tuple[Block, ...]:
    arguments = Raw(msgspec.json.encode({"command": command}))
    return (ToolCall(call_id=call_id, name="Bash", arguments=arguments),)


def result(call_id: str, text: str) -> tuple[Block, ...]:
    return (ToolResult(call_id=call_id, content=text),)


PAST = items(
    ("user", "Mend the parser in src/parse.py. Never rename parse_all."),
    ("assistant", shell("t1", "go test ./... -run TestAll")),
    ("tool", result("t1", "once_only.go: TestAll failed in token_loop")),
    ("assistant", "token_loop is at fault."),
    ("assistant", shell("t2", "go test ./... -run TestAll && npm run once")),
)


def retention(removed: Sequence[Item], new_context: Iterable[str]) -> Retention:
    return FactSearch(removed, new_context).with_summary("")


def named(removed: Sequence[Item]) -> list[tuple[str, str]]:
    return [(fact.kind, fact.text) for fact in facts(removed)]


def test_facts_are_the_users_own_and_what_was_used_again() -> None:
    found = named(PAST)

    assert found[0] == ("limit", "Mend the parser in src/parse.py. Never rename parse_all.")
    assert set(found[1:]) == {
        ("path", "src/parse.py"),
        ("id", "parse_all"),
        ("id", "TestAll"),
        ("id", "token_loop"),
        ("command", "go test ./... -run TestAll"),
    }


def test_what_the_new_context_holds_is_kept_and_the_rest_is_named_most_used_first() -> None:
    seen = retention(PAST, ("Goal: mend src/parse.py, never rename parse_all in the parser", "token_loop"))

    assert seen == Retention(score=4 / 6, kept=4, lost=("TestAll", "go test ./... -run TestAll"))


def test_a_command_must_stand_word_for_word_but_for_white_space() -> None:
    kept = retention(PAST, ("ran  go test ./...\n-run TestAll",))

    assert "go test ./... -run TestAll" not in kept.lost
    assert "go test ./... -run TestAll" in retention(PAST, ("ran the go tests, TestAll",)).lost


def test_a_limit_said_in_other_words_counts_while_most_of_its_words_stand_together() -> None:
    past = items(("user", "Please never force push to the main branch"))

    assert retention(past, ("- The user wants us to never force push main.",)).score == 1
    assert retention(past, ("push", "never", "main", "force")).lost == (
        "Please never force push to the main branch",
    )


def test_nothing_to_remember_is_kept_in_full() -> None:
    assert retention(items(("assistant", "Fine.")), ()) == Retention(score=1.0, kept=0, lost=())


def test_at_most_fifty_lost_facts_are_named() -> None:
    past = items(("user", " ".join(f"name_{n}" for n in range(80))))
    seen = retention(past, ("name_3",))

    assert (len(seen.lost), seen.kept) == (50, 1)


def test_the_cache_is_used_and_changes_nothing() -> None:
    cache = FactCache()
    first = facts(PAST, cache=cache)

    assert facts(PAST, cache=cache) == first == facts(PAST)


def test_a_supplement_names_each_lost_fact_by_the_last_line_it_stood_in_within_its_budget() -> None:
    search = FactSearch(PAST, ("the parser in src/parse.py, never rename parse_all",))
    lines = (
        "(tool) once_only.go: TestAll failed in token_loop [e3]\n"
        "- Commands that ran more than once: go test ./... -run TestAll"
    )

    assert search.supplement("token_loop", 100, chars4) == lines
    assert search.supplement("token_loop", chars4(lines) - 7, chars4) == lines.split("\n")[0]
    assert search.supplement("token_loop", 2, chars4) == ""
    assert search.supplement(lines, 100, chars4) == ""


@pytest.mark.parametrize(
    ("line", "is_quoted"),
    [
        ("token_loop is what hangs", True),
        ("- token_loop is what hangs", True),
        ("# token_loop is what hangs", False),
        ("<b>token_loop is what hangs</b>", False),
        ("[x] token_loop is what hangs", False),
        ("token_loop hangs", False),
        ("token_loop is\twhat hangs", False),
        (f"token_loop is what hangs {'x ' * 100}", False),
    ],
)
def test_a_lost_fact_is_shown_in_a_line_that_says_something_about_it(line: str, is_quoted: bool) -> None:
    search = FactSearch(items(("assistant", line), ("assistant", line)), ())

    shown = f"- {line.strip().removeprefix('- ')} [e2]" if is_quoted else ""
    assert search.supplement("", 100, chars4) == shown


@given(st.lists(st.sampled_from(["a_b", "src/x.py", "must keep c_d", "--flag-y", "v1.2.3"]), max_size=8))
def test_the_past_itself_loses_nothing(lines: list[str]) -> None:
    past = items(*(("user", line) for line in lines))

    assert retention(past, lines).lost == ()


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.text(st.characters(codec="utf-8"), max_size=60))
def test_the_score_is_a_share(said: str, context: str) -> None:
    past = items(("user", said), ("assistant", said))
    seen = retention(past, (context,))

    assert 0 <= seen.score <= 1
    assert len(seen.lost) == min(50, len(facts(past)) - seen.kept)

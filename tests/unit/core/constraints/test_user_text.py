"""What a user typed: a list belongs to the sentence before it, and a line of the user is not a log."""

from __future__ import annotations

import pytest

from compactd.core.constraints.constraints import (
    bullet,
    constraints_of,
    lines_under,
    missing_constraints,
    stated_constraints,
    without_them,
)
from compactd.core.extract.extract import ExtractSource
from compactd.core.history.entries import Item
from compactd.protocol.messages import Message, Text

LISTS = [
    (
        "Never do the following:\n- push to main\n- delete files in data/\n\nFix the parser",
        ["Never do the following: push to main; delete files in data/"],
    ),
    (
        "Never:\n- push to main\n- run deploy_prod.py without asking",
        ["Never: push to main; run deploy_prod.py without asking"],
    ),
    ("Fix it. Don't touch:\n\n* a.py\n\n* b.py\nThen go on.", ["Don't touch: a.py; b.py"]),
    ("Off limits:\n1. a.py\n2. b.py", ["Off limits: a.py; b.py"]),
    ("You may only edit these files:\n  - a.py\n  - b.py", ["You may only edit these files: a.py; b.py"]),
    (
        "Under no circumstances may you do any of this:\n- rename a file\n- leave\n",
        ["Under no circumstances may you do any of this: rename a file; leave"],
    ),
    ("Never touch:\nsrc/a.py\nsrc/b.py\n\nFix the parser", ["Never touch: src/a.py; src/b.py"]),
    ("Always do this:\n- Never push.\n- Always test.", ["Always do this:", "Never push.", "Always test."]),
    ("Never push to main\nunless I say so.", ["Never push to main unless I say so."]),
]


def extracted(said: str) -> str:
    """The summary of a message of the user's."""
    items = (Item(entry_id="e1", body=Message(role="user", content=(Text(text=said),)), tokens=len(said)),)
    demands = constraints_of(items)
    source = ExtractSource(items, (), request=None, budget_tokens=3_000, demands=demands)
    return source.record(3_000, len)


def found(text: str) -> list[str]:
    item = Item(entry_id="e1", body=Message(role="user", content=(Text(text=text),)), tokens=1)
    return [one.text for one in constraints_of((item,)).in_force]


@pytest.mark.parametrize(("text", "demands"), LISTS)
def test_a_demand_over_several_lines_is_one_sentence(text: str, demands: list[str]) -> None:
    assert found(text) == demands


def test_a_list_too_long_for_one_sentence_makes_several_and_loses_nothing() -> None:
    items = [f"delete the file number {n} of the folder data/" for n in range(60)]
    demands = found("Never do the following:\n" + "\n".join(f"- {item}" for item in items))

    assert len(demands) > 1
    assert all(demand.startswith("Never do the following: ") for demand in demands)
    assert all(any(item in demand for demand in demands) for item in items)


@pytest.mark.parametrize(
    ("text", "goals", "others"),
    [
        (LISTS[0][0], ["Fix the parser"], ["push to main", "delete files"]),
        (LISTS[1][0], [], ["run deploy_prod.py"]),
        (LISTS[2][0], ["Fix it.", "Then go on."], ["a.py", "b.py"]),
        (LISTS[8][0] + "\nFix the parser", ["Fix the parser"], ["unless I say so"]),
    ],
)
def test_the_lines_of_a_demand_are_quoted_nowhere_else(
    text: str, goals: list[str], others: list[str]
) -> None:
    shown = tuple(f"- {demand}" for demand in found(text))
    summary = extracted(text)
    rest = "\n".join(line for line in summary.split("\n") if not line.startswith(shown))

    assert [goal for goal in goals if goal not in rest] == []
    assert [other for other in others if other in rest] == []


TYPED = """\
CRITICAL: never touch src/legacy_core.py.
WARNING: do not push to main.
note: never rename the loader.
OK go on but do not change the schema.
ERROR messages must always be in English.
FAILED builds must never be merged.
npm: never use it here.
make: always use the target all.
$HOME must never be deleted.
src/auth.py:42: never change this line.
Never rename the key "version": others read it.
Always return JSON like {"id": 1} and never XML.
Never call foo(); bar(); or baz(); in a test.
NOTE: use at most 3 retries.""".splitlines()


@pytest.mark.parametrize("line", TYPED)
def test_a_line_by_itself_that_looks_like_a_programs_is_the_users(line: str) -> None:
    assert found(line) == [line]
    assert found(f"Fix the parser.\n{line}") == [line]


RULES = ["CRITICAL: Never push to origin.", "WARNING: always ask before you delete a table."]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "Fix the parser.\n{}",
        "Fix the parser.\n\n{}",
        "Rules:\n{}",
        "As I said:\n{}",
        "You must obey this when the log shows errors:\n{}",
        "{}\nThen fix the parser.",
    ],
)
@pytest.mark.parametrize("times", [1, 3])
def test_rules_with_a_label_next_to_each_other_are_the_users(text: str, times: int) -> None:
    rules = [rule.replace(".", f" {n}.") for n in range(times) for rule in RULES]

    assert [one for one in found(text.format("\n".join(rules))) if one in rules] == rules


@pytest.mark.parametrize(
    "text",
    [
        "The log says:\n{}",
        "This is what the job printed:\n\n{}",
        "I got:\n{}",
        "The log says:\n\n{0}\n\n{0}",
        "{}\nCRITICAL: cannot connect to 10.0.0.1",
        "ERROR: no connection\n{}",
        "{}\nINFO: you must never run this twice",
        "2026-11-20 10:00:00 started\n{}",
        "{}\nnpm: never use it here.",
    ],
)
def test_labelled_lines_among_a_programs_or_announced_as_its_words_are_not_the_users(text: str) -> None:
    assert [one for one in found(text.format("\n".join(RULES))) if one in RULES] == []


@pytest.mark.parametrize("indent", ["    ", "\t", "\t\t"])
def test_a_message_that_is_indented_as_a_whole_is_the_users(indent: str) -> None:
    assert found(f"{indent}Never push.\n\n{indent}Always test.") == ["Never push.", "Always test."]


def test_a_rule_right_before_or_behind_an_error_is_the_users() -> None:
    error = 'Traceback (most recent call last):\n  File "a.py", line 1\n    must never\nValueError: never'

    assert found(f"{error}\nNever push.") == ["Never push."]
    assert found(f"Never push.\n{error}") == ["Never push."]
    assert found("INFO a\nINFO b\nYou must never.\nINFO c\nNever push.") == ["Never push."]


def test_of_a_long_message_the_end_counts_where_it_has_no_line_end() -> None:
    assert found("word " * 2_000 + ". Never push to main.") == ["Never push to main."]
    assert found("word " * 2_000 + "\n" + "word " * 1_000 + ". Never push to main.") == [
        "Never push to main."
    ]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_a_sentence_ends_with_every_line_end_that_a_reader_may_see(end: str) -> None:
    assert found(f"Never push{end}Fix the parser{end}Always test") == ["Never push", "Always test"]


def test_characters_that_nobody_sees_are_shown_and_the_demand_is_found_again() -> None:
    item = Item(
        entry_id="e1",
        body=Message(role="user", content=(Text(text="Fix it. Never pu\u200bsh\x1b[2K to main."),)),
        tokens=1,
    )
    demands = constraints_of((item,))
    line = bullet(demands.in_force[0])

    assert line == "- Never pu\ufffdsh\ufffd[2K to main. [e1]"
    assert missing_constraints(demands.in_force, [line]) == ()
    assert (
        missing_constraints(demands.in_force, lines_under("Never pu\u200bsh\x1b[2K to main.", lambda _: True))
        == ()
    )
    assert missing_constraints(demands.in_force, ["Never push"]) == demands.in_force
    assert without_them("Fix it. Never pu\u200bsh\x1b[2K to main.", demands) == "Fix it."
    assert stated_constraints(line, demands) == ["Never pu\ufffdsh\ufffd[2K to main."]


LEADS = """\
Do not:
Do NOT:
Don't:
DO NOT
Never
## Never
**Never**:
**Never**
__Never__
Not allowed
Not OK:
You must not:
What not to do:
Never ever do any of the following
You are not allowed to
I don't want you to
Off limits
### Don'ts
Non-goals
Out of scope:
Please do not —
Nicht:
Ne pas :
Nunca:
Нельзя:
不要：""".splitlines()


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_list_under_a_prohibition_is_no_goal(lead: str, between: str) -> None:
    text = f"Do:\n- write tests\n\n{lead}{between}- push to main\n- delete branches\n\nFix the parser"
    demands = found(text)
    summary = extracted(text)
    rest = "\n".join(line for line in summary.split("\n") if not line.startswith(f"- {demands[0]}"))

    assert [("push to main; delete branches" in demand) for demand in demands] == [True]
    assert demands[0] in summary
    assert "push to main" not in rest
    assert "delete branches" not in rest
    assert "write tests" in rest
    assert "Fix the parser" in rest


@pytest.mark.parametrize("lead", LEADS)
def test_so_are_lines_without_the_sign_of_a_list(lead: str) -> None:
    demands = found(f"{lead}\npush to main\ndelete branches\n\nFix the parser")

    assert [("push to main; delete branches" in demand) for demand in demands] == [True]


@pytest.mark.parametrize(
    "lead", ["Do:", "Fix:", "It fails, please fix:", "Never mind, do this instead", "Never push to main."]
)
def test_a_list_under_other_lines_is_not_forbidden(lead: str) -> None:
    assert all("write tests" not in demand for demand in found(f"{lead}\n- write tests\n- fix a.py"))


@pytest.mark.parametrize("sign", "\u2028\u2029\x0b\x0c\x85")
def test_a_line_separator_in_a_sentence_makes_no_second_limit(sign: str) -> None:
    text = f"Never touch auth.py{sign}or db.py."

    assert found(text) == ["Never touch auth.py or db.py."]
    assert extracted(text).count("db.py") == 1


@pytest.mark.parametrize("tag", ["important", "critical", "rule", "constraint", "requirement", "b", "strong"])
def test_tags_that_people_write_hold_typed_words(tag: str) -> None:
    assert any("Never touch auth.py" in one for one in found(f"<{tag}>Never touch auth.py</{tag}>"))

"""What the strong level leaves out of long files, searches and JSON, and what it must keep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from compactd.core.history.entries import EntryId
from compactd.core.reduce.asked_words import AskedWords
from compactd.core.reduce.bodies import BODY_LINES, Body, find_bodies
from compactd.core.reduce.body_model import INPUTS, body_inputs, chances
from compactd.core.reduce.body_weights import WEIGHTS
from compactd.core.reduce.marks import find_marks
from compactd.core.reduce.output import LEVELS, Level, Reduction, ToolOutput
from compactd.core.reduce.reduce import reduce_output
from compactd.core.reduce.shown import ShownLines
from tests.unit.core.reduce.outputs import output, reduce

READ = ("Read", {"file_path": "src/orders.go"})
FUNCTIONS = 60
STEPS = 24


def function(number: int) -> list[str]:
    return [
        f"func handleOrder{number}(ctx context.Context) error {{",
        *(f"\tvalue{number}_{step} := computeStep{number}_{step}(ctx)" for step in range(STEPS)),
        "\treturn nil",
        "}",
        "",
    ]


SOURCE = ["package orders", "", *(line for number in range(FUNCTIONS) for line in function(number))]
WORDS = [first * 9 + second * 30 for first in "abcdefg" for second in "pqrstuvw"]
"""Lines that have nothing in common."""
AT = EntryId("e141")


def view(*calls: tuple[str, dict[str, object]], before: int = 20) -> ShownLines:
    """Return what a view shows after `before` calls about something else, and then these."""
    shown = ShownLines()
    many = [("Bash", {"command": "make lint"})] * before
    for number, (name, arguments) in enumerate((*many, *calls)):
        shown.add(EntryId(f"e{100 + number}"), ToolOutput(name, arguments, "done"))
    return shown


def read(
    shown: ShownLines,
    lines: Sequence[str] = SOURCE,
    level: Level = "strong",
    part: Mapping[str, object] | None = None,
) -> Reduction:
    arguments = {**READ[1], **(part or {})}
    return reduce_output(ToolOutput(READ[0], arguments, "\n".join(lines)), shown, AT, level)


def test_of_a_long_source_bodies_are_left_out_and_definitions_stay() -> None:
    reduction = read(view())

    lines = reduction.text.split("\n")
    assert reduction.rules == ("outline",)
    assert len(reduction.text) < len("\n".join(SOURCE)) / 2
    assert [line for line in SOURCE if line.startswith("func")] == [
        line for line in lines if line.startswith("func")
    ]
    assert {mark.entry_id for mark in find_marks(reduction.text)} == {AT}


def test_a_body_with_names_that_the_agent_just_wrote_stays() -> None:
    body = "\n".join(function(30)[: STEPS + 2])
    assert body not in read(view()).text

    used = " + ".join(f"value30_{step} * computeStep30_{step}" for step in range(STEPS))
    reduction = read(view(("Edit", {"file_path": "src/b.go", "old_string": "0", "new_string": used})))

    assert body in reduction.text


@pytest.mark.parametrize("part", [{"offset": 1}, {"limit": 900}, {"view_range": [1, 900]}])
def test_the_part_of_a_file_that_was_asked_for_stays(part: dict[str, object]) -> None:
    assert read(view(), part=part).rules == ()


def test_before_the_view_shows_calls_nothing_is_known_of_the_task() -> None:
    assert read(view(before=2)).rules == ()


def test_a_short_source_stays_whole() -> None:
    assert read(view(), SOURCE[:150]).rules == ()


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "strong"])
def test_the_other_levels_show_a_source_whole(level: Level) -> None:
    assert read(view(), level=level).rules == ()


def test_a_body_ends_where_a_definition_begins_or_where_it_is_long() -> None:
    long = ["\tstep()"] * 100
    lines = ["func a() {", *long, "}", "func b() {", "\treturn", "}"]

    bodies = find_bodies(lines, [True] * len(lines))

    assert bodies[0] == Body(1 + BODY_LINES, 1 + BODY_LINES + 60)
    assert bodies[1] == Body(1 + BODY_LINES + 60, 102)
    assert len(bodies) == 2


def test_a_body_has_no_line_that_may_not_be_left_out() -> None:
    lines = ["func a() {", *["\tstep()"] * 40, "}"]
    free = [at != 20 for at in range(len(lines))]

    assert all(not body.start <= 20 < body.stop for body in find_bodies(lines, free))


def test_the_model_has_a_weight_for_each_input_and_wants_what_was_asked_for_of_late() -> None:
    asked = AskedWords()
    asked.add(EntryId("e9"), ToolOutput("Grep", {"pattern": "compute_total"}, ""))
    lines = ["    total = compute_total(values)"] * 8
    body, free = Body(0, 8), [True] * 8

    def chance(asked: AskedWords, number: int) -> float:
        inputs = body_inputs([body], lines, free, output("", READ), "a.py", asked, number)
        assert len(inputs[0]) == len(INPUTS) == len(WEIGHTS)
        return chances(inputs)[0]

    assert chance(asked, 10) > chance(asked, 90)


def test_the_words_of_a_call_that_the_view_no_longer_shows_are_forgotten() -> None:
    asked = AskedWords()
    asked.add(EntryId("e4"), ToolOutput("Grep", {"pattern": "compute_total"}, ""))
    asked.add(EntryId("e8"), ToolOutput("Edit", {"file_path": "a.py", "new_string": "compute_total()"}, ""))
    newest = asked.newest("compute_total")
    assert newest is not None
    assert (newest.number, newest.is_change) == (8, True)

    asked.forget(EntryId("e8"))

    older = asked.newest("compute_total")
    assert older is not None
    assert (older.number, older.is_change, len(asked)) == (4, False, 1)


def test_a_search_shows_each_file_with_the_first_line_that_was_found() -> None:
    lines: list[str] = []
    for file in range(8):
        lines += [f"src/module_{file}.py-{n}-    before_{n} = {n}" for n in range(10, 20)]
        lines += [f"src/module_{file}.py:{n}:    call_{n}(value)" for n in range(20, 30)]

    reduction = reduce(output("\n".join(lines), ("Grep", {"pattern": "call", "-B": 10})), "strong")

    shown = reduction.text.split("\n")
    assert shown[0] == "src/module_0.py:"  # the marks below say enough
    for file in range(8):
        assert "20:    call_20(value)" in shown[shown.index(f"src/module_{file}.py:") :][:12]
    assert len(reduction.text) < len("\n".join(lines)) / 2


def test_a_program_that_lists_files_has_its_list_whole() -> None:
    files = [f"src/{name}/part_{name}.py" for name in "abcdefghijklmnopqrst"]
    noise = list(WORDS)
    text = "\n".join((*noise, *files, *noise))

    reduction = reduce(output(text, ("Bash", {"command": "git diff --stat main"})), "strong")

    assert reduction.rules
    assert [line for line in reduction.text.split("\n") if line in files] == files


def test_an_issue_has_more_room_than_other_output() -> None:
    text = "\n".join(f"{word} is what the review is about." for word in WORDS)

    issue = reduce(output(text, ("Bash", {"command": "gh pr view 12 --comments"})), "strong")
    other = reduce(output(text, ("Bash", {"command": "gh run list"})), "strong")

    assert issue.text == text
    assert len(other.text) < len(text)


def test_fields_of_json_that_only_link_are_left_out_at_strong_and_the_rest_stays() -> None:
    user = {
        "login": "someone",
        **{f"{kind}_url": f"https://api.example.org/users/someone/{kind}" for kind in ("gists", "repos")},
        "html_url": "https://example.org/someone",
        "_links": {"self": {"href": "https://api.example.org/" + "x" * 80}, "html": {"href": "y" * 80}},
        "reactions": dict.fromkeys(("total_count", "laugh", "hooray", "confused", "heart", "eyes"), 0),
        "title": "A title",
    }
    text = json.dumps([{"id": n, "user": user} for n in range(5)], indent=1)
    call = ("Bash", {"command": "gh api repos/a/b/pulls/1/comments"})

    read_back = json.loads(reduce(output(text, call), "strong").text)

    assert [one["id"] for one in read_back] == [0, 1, 2, 3, 4]
    left = read_back[0]["user"]
    assert {"login", "html_url", "title"} <= set(left)
    assert "repos_url" not in left
    assert sum(bool(find_marks(str(value))) for value in left.values()) == 2
    assert reduce(output(text, call), "default").text == text


NOTICE = f"""<system-reminder>
{"Think about whether this file is what you were asked for. " * 4}
</system-reminder>"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_notice_that_an_earlier_output_shows_is_left_out(level: Level) -> None:
    first = output("\n".join((*function(1), "", NOTICE, "")), ("Read", {"file_path": "src/a.go"}))
    second = output("\n".join((*function(2), "", NOTICE, "")), READ)
    shown = ShownLines()
    whole = reduce_output(first, shown, EntryId("e5"), level)
    shown.add(EntryId("e5"), first)

    reduction = reduce_output(second, shown, EntryId("e7"), level)

    assert whole.text == first.text
    assert reduction.rules == ("notice",)
    assert reduction.entry_ids == ("e5",)
    assert reduction.text == "\n".join(
        (*function(2), "", "[… 3 lines of a notice as in e5, Read a.go …]", "")
    )


def test_a_notice_with_other_words_stays() -> None:
    shown = ShownLines()
    shown.add(EntryId("e5"), output(f"x\n{NOTICE}", READ))
    other = NOTICE.replace("asked for. \n", "told to change.\n")

    text = "\n".join((*function(2), other))

    assert reduce_output(output(text, READ), shown, EntryId("e7"), "strong").text == text

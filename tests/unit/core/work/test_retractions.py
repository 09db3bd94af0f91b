"""Edits that take back what an earlier edit added are attempts that did not work."""

from __future__ import annotations

import pytest

from compactd.core.work.retractions import MAX_LINES, MAX_RETRACTIONS, Retractions
from compactd.core.work.state import Attempt, WorkReader
from tests.support.agent_work import AgentWork

GUARD = "if entry.age > limit:\n    drop(entry.name)\n"
BEFORE = "entry = find(name)\nuse(entry)\n"
AFTER = f"entry = find(name)\n{GUARD}use(entry)\n"


def attempts(agent: AgentWork) -> list[Attempt]:
    reader = WorkReader()
    for item in agent.items:
        reader.add(item)
    return list(reader.state().attempts)


def edit(agent: AgentWork, old: str, new: str, path: str = "src/cache.py") -> str:
    return agent.does("Edit", file_path=path, old_string=old, new_string=new)


def test_an_edit_that_undoes_an_earlier_one_says_that_it_was_reverted() -> None:
    agent = AgentWork()
    first = edit(agent, BEFORE, AFTER)
    second = edit(agent, AFTER, BEFORE)

    assert attempts(agent) == [
        Attempt(
            f"An edit of src/cache.py reverted an earlier one ({first}): `if entry.age > limit:` and"
            " `drop(entry.name)`",
            second,
        )
    ]


def test_an_edit_that_brings_back_the_old_lines_reverted_the_earlier_one() -> None:
    agent = AgentWork()
    loop = "for each in sorted_by_age(entries):\n    fetch(each)"
    first = edit(agent, "load_all(names)", loop)
    edit(agent, loop, "load_all(names)")

    (attempt,) = attempts(agent)

    assert attempt.text == (
        f"An edit of src/cache.py reverted an earlier one ({first}): `for each in sorted_by_age(entries):`"
        " and `fetch(each)`"
    )
    assert attempt.said == ""


def test_a_branch_that_another_one_replaces_was_taken_back() -> None:
    agent = AgentWork()
    first = edit(agent, BEFORE, AFTER)
    second = edit(agent, GUARD, "with lock_of(name) as held:\n    refresh(held)\n")

    assert attempts(agent) == [
        Attempt(
            f"An edit of src/cache.py took back what an earlier one ({first}) had added:"
            " `if entry.age > limit:` and `drop(entry.name)`",
            second,
            said="It added `with lock_of(name) as held:` instead",
        )
    ]


def test_what_was_taken_back_is_in_the_state_for_clients() -> None:
    agent = AgentWork()
    edit(agent, BEFORE, AFTER)
    second = edit(agent, GUARD, "refresh_all(now)\n")

    (failed,) = agent.work.failed_attempts

    assert failed.entry_id == second
    assert failed.text.endswith("It added `refresh_all(now)` instead")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("if entry.age > limit:", "if entry.age > limit and entry.name:", id="extended"),
        pytest.param("if entry.age > limit:", "if record.age > limit:", id="a variable was renamed"),
        pytest.param("    drop(entry.name)\n", "    drop(entry.name)  # it is old\n", id="commented"),
        pytest.param(GUARD, f"while busy():\n    {GUARD}", id="indented"),
        pytest.param("    drop(entry.name)\n", "    drop(\n        entry.name,\n    )\n", id="wrapped"),
        pytest.param("entry = find(name)", "record = find(name)", id="a line that was there before"),
    ],
)  # fmt: skip
def test_further_development_takes_nothing_back(old: str, new: str) -> None:
    agent = AgentWork()
    edit(agent, BEFORE, AFTER)
    edit(agent, old, new)

    assert attempts(agent) == []


@pytest.mark.parametrize(
    "line",
    [
        "# the age of the entry is checked here",
        "import clock_source",
        'print("entry", entry.age)',
        'console.log("entry", entry.age)',
        "t.Fatalf(\"no entry %q\", entry.name)",
        "if err != nil {",
        "return nil, err",
        "age_limit: number;",
        "case message do",
    ],
)  # fmt: skip
def test_a_line_that_tells_little_may_go(line: str) -> None:
    agent = AgentWork()
    edit(agent, "use(entry)\n", f"{line}\nuse(entry)\n")
    edit(agent, f"{line}\nuse(entry)\n", "use(entry)\n")

    assert attempts(agent) == []


@pytest.mark.parametrize("path", ["docs/plan.md", "notes.txt", "package.json"])
def test_texts_and_data_are_rewritten_without_being_taken_back(path: str) -> None:
    agent = AgentWork()
    edit(agent, BEFORE, AFTER, path)
    edit(agent, AFTER, BEFORE, path)

    assert attempts(agent) == []


def test_a_function_that_moves_to_another_file_was_not_taken_back() -> None:
    text = "def drop_old(entries):\n    return keep_newest(entries, limit)\n"
    agent = AgentWork()
    edit(agent, "", text)
    edit(agent, text, "")  # first removed,
    edit(agent, "", text, "src/age.py")  # then added
    edit(agent, "", text, "src/old.py")  # first added,
    edit(agent, text, "", "src/age.py")  # then removed

    assert attempts(agent) == []


def test_what_is_left_of_a_function_that_was_moved_may_go() -> None:
    body = "first_part(entry)\nsecond_part(entry)\nthird_part(entry)\n"
    agent = AgentWork()
    edit(agent, "", f"{body}only_here(value)\n")
    edit(agent, "", body, "src/age.py")
    edit(agent, f"{body}only_here(value)\n", "")

    assert attempts(agent) == []


def test_an_edit_of_which_a_line_stays_was_not_reverted() -> None:
    agent = AgentWork()
    first = edit(agent, "", "first_part(entry)\nsecond_part(entry)\nthird_part(entry)\n")
    edit(agent, "first_part(entry)\nsecond_part(entry)\n", "")

    assert [one.text for one in attempts(agent)] == [
        f"An edit of src/cache.py took back what an earlier one ({first}) had added: `first_part(entry)` and"
        " `second_part(entry)`"
    ]


def test_the_last_line_of_an_edit_is_not_the_edit() -> None:
    agent = AgentWork()
    edit(agent, "", "first_part(entry)\nsecond_part(entry)\nthird_part(entry)\n")
    edit(agent, "first_part(entry)\nsecond_part(entry)\n", "")
    edit(agent, "third_part(entry)\n", "")

    assert " took back what " in attempts(agent)[-1].text


def test_a_line_of_which_a_copy_stays_was_not_taken_back() -> None:
    agent = AgentWork()
    edit(agent, "", GUARD)
    edit(agent, "use(entry)", f"use(entry)\n{GUARD}")
    edit(agent, f"use(entry)\n{GUARD}", "use(entry)")

    assert attempts(agent) == []


def test_a_new_signature_is_no_retraction() -> None:
    agent = AgentWork()
    edit(agent, "", "def drop_old(entries):\n")
    edit(agent, "def drop_old(entries):\n", "def drop_old(records: Sequence[Record], clock: Clock) -> int:\n")

    assert attempts(agent) == []


def test_another_file_and_a_failed_edit_take_nothing_back() -> None:
    agent = AgentWork()
    edit(agent, BEFORE, AFTER)
    edit(agent, AFTER, BEFORE, "src/other.py")
    agent.does("Edit", "no", failed=True, file_path="src/cache.py", old_string=AFTER, new_string=BEFORE)

    assert not attempts(agent)


def test_a_file_that_is_written_anew_takes_back_what_it_leaves_out() -> None:
    agent = AgentWork()
    first = edit(agent, BEFORE, AFTER)
    agent.does("Write", file_path="src/cache.py", content=f"{BEFORE}close(entry)\n")

    (attempt,) = attempts(agent)

    assert attempt.text.startswith(
        f"An edit of src/cache.py took back what an earlier one ({first}) had added"
    )


def test_attempts_are_in_the_order_of_their_messages() -> None:
    agent = AgentWork()
    edit(agent, BEFORE, AFTER)
    before = agent.says("The second approach didn't work because the entry is closed too early.")
    taken = edit(agent, AFTER, BEFORE)
    after = agent.says("Closing the entry later didn't work either because nobody opens it again.")

    assert [one.entry_id for one in attempts(agent)] == [before, taken, after]


def test_only_the_newest_are_kept() -> None:
    agent = AgentWork()
    taken: list[str] = []
    for n in range(MAX_RETRACTIONS + 2):
        edit(agent, "", f"start_one{n}(now{n})")
        taken.append(edit(agent, f"start_one{n}(now{n})", ""))

    assert [one.entry_id for one in attempts(agent)] == taken[2:]


def test_a_bounded_number_of_lines_is_remembered() -> None:
    agent = AgentWork()
    text = "\n".join(f"start_one{n}(now{n})" for n in range(1000))
    last = MAX_LINES // 1000 + 1
    for n in range(last + 1):
        edit(agent, "", text.replace("start", f"start{n}"))
    edit(agent, "start0_one1(now1)", "")  # It was forgotten.
    edit(agent, f"start{last}_one1(now1)", "")

    assert len(attempts(agent)) == 1


def test_nothing_is_taken_back_before_the_first_edit() -> None:
    assert Retractions().result() == []

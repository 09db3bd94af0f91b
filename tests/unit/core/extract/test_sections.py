"""Which lines are quoted after the story, and where."""

from __future__ import annotations

from compactd.core.constraints.constraints import constraints_of
from compactd.core.extract.extract import ExtractSource
from compactd.core.extract.sections import SHELL_CALLS
from compactd.core.text.summary_format import DONE, EXCERPTS, GOAL, NATURE
from compactd.core.work.state import WorkReader
from tests.support.agent_work import AgentWork

FIRST = "Sort the letters of the mill by their date."


def record(agent: AgentWork, budget: int = 4_000, *, has_story: bool = True) -> str:
    """Return the summary of a conversation in at most `budget` tokens of four characters."""
    reader = WorkReader()
    for item in agent.items:
        reader.add(item)
    source = ExtractSource(
        agent.items,
        (),
        request=None,
        budget_tokens=budget,
        work=reader.state() if has_story else None,
        demands=constraints_of(agent.items),
    )
    return source.record(budget, lambda text: (len(text) + 3) // 4)


def quoted(agent: AgentWork) -> str:
    """Return the quoted lines of the summary without a story."""
    return record(agent, has_story=False).partition(EXCERPTS)[2]


def lines(text: str, heading: str) -> list[str]:
    """Return the lines under a heading."""
    return text.partition(f"{heading}\n")[2].partition("\n#")[0].strip().split("\n")


def test_a_line_that_only_announces_is_not_quoted_and_one_with_a_reason_is() -> None:
    agent = AgentWork()
    agent.asks(FIRST)
    agent.says("Let me open stamps/index.tsv and the folder letters/1904 now.")
    agent.says("Let me skip letters/1904, because the stamp QX-77 is not in stamps/index.tsv.")
    agent.does("Read", "1\tQX-78", file_path="stamps/index.tsv")

    text = quoted(agent)

    assert "Let me open" not in text
    assert "- [e3] Let me skip letters/1904, because" in text


def test_a_line_of_the_agent_with_one_word_is_not_quoted() -> None:
    agent = AgentWork()
    agent.asks(FIRST)
    agent.says("letter_clock.")
    agent.says("stamp_clock of letters/1904.")
    agent.runs("rm clocks.tsv")

    text = quoted(agent)

    assert "[e2]" not in text
    assert "- [e3] stamp_clock of letters/1904." in text


def test_a_report_of_a_written_file_is_not_quoted() -> None:
    agent = AgentWork()
    agent.asks(FIRST)
    report = "The file letters/sorter.py has been updated."
    agent.does("Write", report, file_path="letters/sorter.py", content="def sort_letters(): ...")
    agent.does("Read", "1\tdef sort_letters(): ...", file_path="letters/sorter.py")

    assert "has been updated" not in quoted(agent)
    assert "- [e2] Write letters/sorter.py:\ndef sort_letters(): ..." in quoted(agent)


def test_a_trailer_of_a_commits_message_is_not_quoted() -> None:
    agent = AgentWork()
    agent.asks(FIRST)
    message = "Sort the letters with letter_clock\n\nSigned-off-by: Miller Quill <quill@mill.example>"
    agent.runs(f"git commit -m '{message}'", "ok")
    agent.runs("git log --grep letter_clock --author quill@mill.example", "letter_clock quill@mill.example")

    text = quoted(agent)

    assert "git commit -m 'Sort the letters with letter_clock" in text
    assert "Signed-off-by" not in text


def test_a_commit_that_the_story_tells_is_not_quoted_and_an_empty_command_is_no_fault() -> None:
    agent = AgentWork()
    agent.asks(FIRST)
    agent.runs(
        "cd letters && git commit -m 'Sort the letters with letter_clock'", "[main 1a2b3c4] Sort the letters"
    )
    agent.runs("", "letter_clock is not set")

    text = record(agent)

    assert "- Committed 1a2b3c4: Sort the letters with letter_clock [e3]" in text
    assert "git commit" not in text


def test_a_command_without_a_quoted_line_is_listed_and_another_call_is_not() -> None:
    agent = AgentWork()
    agent.asks(FIRST)
    for n in (1, 2):
        agent.does("Read", "", file_path=f"letters/box_{n}.tsv")
        agent.runs(f"sort letters/box_{n}.tsv")

    text = quoted(agent)

    assert f"- {SHELL_CALLS}: `sort letters/box_1.tsv` [e4]" in text
    assert "Read letters" not in text


def test_the_first_line_of_a_long_command_stands_for_it() -> None:
    agent = AgentWork()
    agent.asks(FIRST)
    agent.runs(
        "cd letters && python - <<'END'\nimport letter_clock\nprint(letter_clock.now())\nEND", "1904-12-02"
    )
    agent.runs("cd letters && python -c 'import letter_clock'", "1904-12-02")

    assert "- [e2] `cd letters && python - <<'END'`:\nimport letter_clock" in quoted(agent)


def test_what_is_said_again_and_again_is_not_quoted() -> None:
    agent = AgentWork()
    agent.asks(FIRST)
    for _ in range(3):
        agent.says("The letter_clock of letters/1904 is set.")
        agent.runs("cat letters/1904/letter_clock", "letter_clock")
    agent.says("The letter_clock of letters/1905 is set.")

    text = record(agent).partition(EXCERPTS)[2]

    assert "letters/1904 is set" not in text
    assert "`cat letters/1904/letter_clock`" in text


ROOMS = ("attic", "cellar", "kitchen", "parlour", "pantry", "stable", "barn", "orchard", "brewery", "chapel")


def moved() -> AgentWork:
    """Return a conversation with a long request in its middle."""
    agent = AgentWork()
    agent.asks(FIRST)
    agent.edits("letters/sorter.py")
    agent.asks("\n".join(f"Carry every box of {room}_stock up to the {room} and sweep it." for room in ROOMS))
    for room in ROOMS:
        agent.runs(f"grep -c {room}_stock boxes.tsv", f"{room}_stock counted")
    agent.asks("Now print the list of rooms.")
    return agent


def test_more_of_a_request_follows_where_the_story_tells_it() -> None:
    text = record(moved(), 500)

    done = lines(text, DONE)
    at = next(
        n for n, line in enumerate(done) if line.startswith("- [e4] The user: Carry every box of attic")
    )
    assert done[at + 1 : at + len(ROOMS)] == [
        f"  Carry every box of {room}_stock up to the {room} and sweep it." for room in ROOMS[1:]
    ]
    assert not any("Carry" in line for line in lines(text, GOAL))


def test_a_request_that_the_story_does_not_tell_stands_under_goal() -> None:
    text = record(moved(), 900, has_story=False)

    goal = lines(text, GOAL)
    assert "- [e4] Carry every box of attic_stock up to the attic and sweep it." in goal
    assert "  Carry every box of chapel_stock up to the chapel and sweep it." in goal


def test_the_line_that_says_what_a_record_is_takes_at_most_a_twelfth_if_nothing_is_marked() -> None:
    tokens = (len(NATURE) + 3) // 4
    talk = AgentWork()
    for n in range(40):
        talk.asks(f"The letters of the year {1_900 + n} are in the box {n} of the mill.")

    assert NATURE in record(talk, 12 * tokens)
    assert NATURE not in record(talk, 12 * tokens - 1)
    small = record(moved(), 12 * tokens - 1)
    assert "(tool) " in small.replace(NATURE, "")
    assert NATURE in small

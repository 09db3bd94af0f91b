"""What the user and the agent say again and again."""

from __future__ import annotations

from compactd.core.history.entries import EntryId
from compactd.core.work.history import find_repeated
from compactd.core.work.state import WorkReader
from tests.support.agent_work import AgentWork


def repeated(agent: AgentWork) -> frozenset[EntryId]:
    reader = WorkReader()
    for item in agent.items:
        reader.add(item)
    return find_repeated(reader.state().turns)


def test_what_is_said_three_times_in_the_same_words_is_repeated() -> None:
    agent = AgentWork()
    agent.asks("Sort the letters of the mill.")
    asked = [agent.asks("Go on with the letters.") for _ in range(3)]
    said = [agent.says("The next box is sorted.") for _ in range(3)]
    agent.says("All boxes are sorted.")

    assert repeated(agent) == {*asked, *said}


def test_what_is_said_twice_or_in_other_words_is_not() -> None:
    agent = AgentWork()
    for _ in range(2):
        agent.asks("Go on with the letters.")
        agent.says("The next box is sorted.")
    agent.asks("Go on with the letters, and then with the stamps.")
    agent.says("The next box is sorted, and its stamps are counted.")

    assert repeated(agent) == frozenset()


def test_the_same_words_of_the_user_and_the_agent_do_not_add_up() -> None:
    agent = AgentWork()
    for _ in range(2):
        agent.asks("The next box is sorted.")
        agent.says("The next box is sorted.")

    assert repeated(agent) == frozenset()

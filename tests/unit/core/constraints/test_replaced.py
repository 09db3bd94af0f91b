"""Which statement replaces which, and what replaces nothing."""

from __future__ import annotations

import pytest

from compactd.core.constraints.constraints import Constraints, constraints_of, is_constraint
from compactd.core.constraints.replaced import find_replaced, gives_value
from tests.support.agent_work import AgentWork


def said(*statements: str) -> Constraints:
    """Return the constraints of a conversation in which the user said these, each in a message."""
    agent = AgentWork()
    for one in statements:
        agent.asks(one)
    return constraints_of(agent.items)


def replaced(*statements: str) -> dict[int, int]:
    limits = {at for at, one in enumerate(statements) if is_constraint(one)}
    return find_replaced(statements, [f"e{at}" for at in range(len(statements))], limits=limits)


def test_a_message_replaces_nothing_that_it_says_itself() -> None:
    assert find_replaced(["The timeout is 30 s.", "The timeout is 45 s now."], ["e1", "e1"]) == {}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The timeout is 30 s.", "The timeout is 45 s."),
        ("The staging server is at https://a.example/v1.", "The staging server is at https://b.example/v1."),
        ("The release date is 2027-03-01.", "Update: the release moved to April 12."),
        ("The service owner is Mara Quint.", "Tove Lindal now owns the service."),
        ("We work on branch fix/parser-12.", "We switched to branch fix/lexer-3."),
        ("The build number is kx-118.", "The build was renamed: it is kx-204 now."),
        ("Logs are in `/var/log/a`.", "Logs are in `/srv/log/b` now."),
        ("The budget is 4,200 € for everything, food included.", "The budget is 3,600 € for the two of us."),
        ("The release is on 4 December.", "The release moves from 4 December to 11 December."),
        ("The budget is 4,200 € for everything.", "He pays his part, so the budget becomes 5,300 €."),
        ("The maximum deposit stays 50 €.", "The board has met: the maximum deposit is 80 €, not 50 €."),
        ("Send the letters at 9 to the mill.", "Send the letters at 11 to the mill instead."),
        ("Pack 12 boxes into the cart.", "Pack 15 boxes into the cart after all."),
        ("The launch is on 4 December.", "The launch has slipped to 11 December."),
        ("The launch is on 4 December.", "The launch was postponed to 11 December."),
        ("She wants short letters.", "She would rather have long letters."),
        ("I would like a room to the garden.", "I would rather have a room to the street."),
    ],
)
def test_a_statement_with_another_value_replaces_the_older(older: str, newer: str) -> None:
    between = ("The parser is slow.", "Look at the tests of the lexer.")

    assert replaced(older, *between, newer) == {0: 3}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Port 8080 is taken.", "Port 9090 is taken."),
        ("The primary region is eu-north-1.", "The backup region is us-west-2."),
        ("Fix the test in parser.py.", "Now fix the test in lexer.py."),
        ("The timeout is 30 s.", "Is the timeout 45 s now?"),
        ("The timeout is 30 s.", "The timeout is 30 s."),
        ("The cache holds 100 entries.", "The database moved to eu-north-3."),
        ("Never share the key ab-12.", "The key was handed over to ab-77 now."),
        ("The travel budget is $300.", "The project budget is $500."),
        ("Pack 12 boxes into the cart.", "Pack 15 boxes into the cart."),
        ("Pack 12 boxes into the cart.", "Pack 12 boxes into the cart instead."),
        ("Pack 12 boxes into the cart.", "Pack 15 boxes into the boat instead."),
        ("Open 3 windows.", "Open 5 windows instead."),
        ("She wants short letters.", "She also wants long letters now."),
        ("She wants short letters.", "She would rather have fewer stamps."),
        ("Short letters are in the attic.", "She would rather have long letters."),
        (
            "If a place costs more than 170 € a night, ask me first.",
            "And from now on: if anything costs more than 50 € extra, ask me first, whatever it is.",
        ),
    ],
    ids=[
        "the value is the subject",
        "two things of one sort",
        "requests",
        "a question",
        "the same again",
        "no word in common",
        "a limit, and a statement that sets none",
        "two budgets",
        "a request with another value that says nothing of a change",
        "a request with the same value",
        "requests about two things",
        "requests with too few words",
        "two wishes of which none says that it changes",
        "wishes about two things",
        "a wish, and a statement that is none",
        "two conditions",
    ],
)
def test_both_stand(first: str, second: str) -> None:
    assert replaced(first, second) == {}


def test_a_request_gives_no_value_and_a_statement_does() -> None:
    assert not gives_value("Pack 12 boxes into the cart.")
    assert gives_value("The cart has 12 boxes.")


def test_of_several_requests_of_one_shape_the_last_one_is_replaced() -> None:
    between = "Look at the tests of the lexer."
    packed = ("Pack 12 boxes into the cart.", "Pack 15 boxes into the cart instead.")

    assert replaced(*packed, between, "Pack 18 boxes into the cart after all.") == {0: 1, 1: 3}


def test_a_long_sentence_takes_no_part() -> None:
    tail = "and " * 100

    assert replaced(f"The timeout is 30 s {tail}.", f"The timeout is 45 s {tail}.") == {}


def test_a_word_that_most_statements_have_is_no_subject() -> None:
    others = [f"The project uses part {n} of the old plan." for n in range(30)]

    assert replaced("The project codename is ab-12.", *others, "The project moved to floor zz-99.") == {}


def test_the_statement_with_most_in_common_is_replaced() -> None:
    found = replaced(
        "The launch date is 2027-05-01.",
        "The launch review date is 2027-04-01.",
        "The launch review moved to 2027-04-08.",
    )

    assert found == {1: 2}


def test_a_limit_is_replaced_by_a_newer_limit_only_if_it_says_so() -> None:
    asked = ("Report all times in UTC, always.", "From now on, report all times in Pacific time.")
    found = said(*asked)

    assert [one.text for one in found.in_force] == [asked[1]]
    assert [one.text for one in found.superseded] == [asked[0]]


def test_limits_about_other_things_stay_in_force() -> None:
    asked = (
        "Never push to the branch release/1.",
        "Never disclose the vault code ab-12.",
        "From now on, never touch the folder docs/old.",
    )
    found = said(*asked)

    assert [one.text for one in found.in_force] == list(asked)

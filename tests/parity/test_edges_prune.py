"""Every pruning rule at its exact edge: what is protected, the minimum, which turns; under each profile.

docs/specs-evmts-opencode.md, "opencode.md", "Phase 2: Pruning" (PRUNE_MINIMUM, PRUNE_PROTECT, both strict);
any profile that is told to prune does it so.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import assistant, call, result, text, user
from tests.support.wire import PROFILES, append, begin, report, started, view

EACH = pytest.mark.parametrize("profile", PROFILES)
MARK = "[pruned: "


def outputs(*tokens: int, tool: str = "read") -> list[dict[str, Any]]:
    """A turn of so many tool results, oldest first, of which only the first is what the sizes say: the others
    stand for newer output."""
    messages: list[dict[str, Any]] = [user(5)]
    for number, size in enumerate(tokens):
        messages += [call(f"c{number}", tool, path=f"{number}.py"), result(f"c{number}", size, seed=number)]
    return messages


def two_turns() -> list[dict[str, Any]]:
    """The last two user turns, of which nothing is pruned."""
    return [assistant(3), user(5), assistant(3), user(5)]


def pruned(daemon: Daemon, session: str) -> int:
    """Return how many tool results a prune would replace."""
    return int(daemon.call("session/prune", session_id=session, dry_run=True)["pruned"])


@EACH
@pytest.mark.parametrize(("newest", "count"), [(39_999, 1), (40_000, 1), (40_001, 2)])
def test_the_newest_40000_tokens_of_output_are_protected_and_not_one_more(
    daemon: Daemon, profile: str, newest: int, count: int
) -> None:
    session = started(daemon, profile, 200_000, settings={"prune": True}, persist=False)
    append(daemon, session, *outputs(20_001, newest), *two_turns())

    assert pruned(daemon, session) == count


@EACH
@pytest.mark.parametrize(("old", "count"), [(19_999, 0), (20_000, 0), (20_001, 1)])
def test_a_prune_of_20000_tokens_is_not_worth_it_and_one_more_is(
    daemon: Daemon, profile: str, old: int, count: int
) -> None:
    session = started(daemon, profile, 200_000, settings={"prune": True}, persist=False)
    append(daemon, session, *outputs(old, 40_000), *two_turns())

    assert pruned(daemon, session) == count


SMALL = {"prune": True, "prune_protect": 400, "prune_minimum": 200}


@pytest.mark.parametrize("window", [4_096, 8_192, 32_768, 128_000, 200_000, 1_000_000, 2_000_000])
@pytest.mark.parametrize(
    ("old", "newest", "count"),
    [(200, 400, 0), (201, 399, 1), (201, 400, 1), (201, 401, 2), (199, 401, 2)],
)
def test_the_two_numbers_are_settings_and_no_window_moves_them(
    daemon: Daemon, window: int, old: int, newest: int, count: int
) -> None:
    session = started(daemon, "opencode", window, settings=SMALL, persist=False)
    append(daemon, session, *outputs(old, newest), *two_turns())

    assert pruned(daemon, session) == count


@EACH
@pytest.mark.parametrize(("newer_turns", "count"), [(0, 0), (1, 0), (2, 1)])
def test_output_is_old_where_two_newer_user_turns_follow(
    daemon: Daemon, profile: str, newer_turns: int, count: int
) -> None:
    session = started(daemon, profile, 100_000, settings=SMALL, persist=False)
    append(daemon, session, *outputs(700), *(assistant(2), user(3)) * newer_turns)

    assert pruned(daemon, session) == count


@EACH
def test_skill_failed_and_pruned_output_stays_and_a_second_prune_finds_nothing(
    daemon: Daemon, profile: str
) -> None:
    session = started(daemon, profile, 100_000, settings=SMALL, persist=False)
    failed = [user(3), call("f", "run"), result("f", 900, is_error=True)]
    append(daemon, session, *outputs(700, 500), *outputs(800, tool="skill"), *failed, *two_turns())

    first = daemon.call("session/prune", session_id=session)
    second = daemon.call("session/prune", session_id=session)

    assert (first["pruned"], second["pruned"]) == (2, 0)
    assert first["entry_ids"] == ["e3", "e5"]
    shown = [m["content"][0]["content"] for m in view(daemon, session) if m["role"] == "tool"]
    assert [one.startswith(MARK) for one in shown] == [True, True, False, False]


@EACH
def test_a_turn_begins_with_a_prune_only_where_the_setting_is_on(daemon: Daemon, profile: str) -> None:
    sizes = {name: SMALL[name] for name in ("prune_protect", "prune_minimum")}
    pruned_of = {}
    for wanted in (None, True, False):
        settings = sizes if wanted is None else {**sizes, "prune": wanted}
        session = started(daemon, profile, 100_000, settings=settings, persist=False)
        append(daemon, session, *outputs(700, 500), *two_turns())
        pruned_of[wanted] = daemon.call("turn/begin", session_id=session)["pruned"]

    assert pruned_of == {None: 2 if profile == "opencode" else 0, True: 2, False: 0}


@EACH
def test_what_a_prune_leaves_below_the_trigger_is_not_summarised(daemon: Daemon, profile: str) -> None:
    settings = {**SMALL, "model_auto_compact_token_limit": 1500}
    session = started(daemon, profile, 100_000, settings=settings, persist=False)
    append(daemon, session, *outputs(700, 800), *two_turns(), usage=report(1600))

    begun = daemon.call("turn/begin", session_id=session)

    assert (begun["pruned"], begun["compaction"]) == (2, None)
    assert begun["token_usage"]["current_context_tokens"] < 1500


def test_the_estimate_under_opencode_rounds_the_half_of_utf16_units_up(daemon: Daemon) -> None:
    sizes = []
    for words in ("ab", "abc", "abcdefg", "\N{FACE WITH TEARS OF JOY}a"):
        session = started(daemon, "opencode", 100_000, persist=False)
        usage = append(daemon, session, {"role": "user", "content": words})["token_usage"]
        sizes.append(usage["current_context_tokens"])

    assert sizes == [1, 1, 2, 1], "0.5, 0.75, 1.75, and 0.75 of three units"


def test_no_prune_stands_in_for_a_summary_that_is_there(daemon: Daemon) -> None:
    session = started(daemon, "opencode", 100_000, settings=SMALL, persist=False)
    append(daemon, session, *outputs(700), user(5, content=text(5)))
    daemon.call("session/compact", session_id=session, keep_messages=1)
    append(daemon, session, *two_turns())

    assert pruned(daemon, session) == 0
    assert begin(daemon, session) is None

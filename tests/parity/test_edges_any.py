"""Property tests: any conversation is cut and pruned as the specs say (`formulas.py` computes it again)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parity.formulas import SPECS, Step, spec_cut, spec_prune
from tests.support.client import Daemon
from tests.support.examples import examples
from tests.support.talk import assistant, result, user
from tests.support.wire import PROFILES, append, compact, started

SOME = settings(
    max_examples=examples(40),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

SIZES = st.integers(150, 600)
"""The sizes of a message in tokens: so large that a summary of any one of them is smaller."""


@st.composite
def reports(draw: st.DrawFn) -> dict[str, int]:
    """Draw a usage report of a request near a window of 100,000, or far below it."""
    output = draw(st.integers(0, 9_000))
    return {
        "input_tokens": draw(st.one_of(st.integers(0, 1_000), st.integers(60_000, 100_000))),
        "output_tokens": output,
        "cache_read_tokens": draw(st.integers(0, 9_000)),
        "cache_write_tokens": draw(st.integers(0, 9_000)),
        "reasoning_tokens": draw(st.integers(0, output)),
    }


@pytest.mark.parametrize("profile", PROFILES)
@given(
    usage=st.none() | reports(),
    sizes=st.tuples(st.integers(1, 90_000), st.integers(1, 9_000), st.integers(0, 20_000)),
    limit=st.none() | st.integers(60_000, 100_000),
    enabled=st.booleans(),
)
@SOME
def test_what_is_decided_follows_from_the_sizes_that_are_shown(
    daemon: Daemon,
    profile: str,
    usage: dict[str, int] | None,
    sizes: tuple[int, int, int],
    limit: int | None,
    enabled: bool,
) -> None:
    given = {"enabled": enabled} | ({} if limit is None else {"model_auto_compact_token_limit": limit})
    session = started(daemon, profile, 100_000, settings=given, persist=False)
    report = {} if usage is None else {"usage": usage}
    append(daemon, session, user(sizes[0]), assistant(sizes[1]), **report)

    told = append(daemon, session, user(sizes[2]))

    decision, shown = told["decision"], told["token_usage"]
    used, threshold = decision["used"], decision["threshold"]
    is_reached = threshold is not None and (
        used >= threshold if SPECS[profile].inclusive else used > threshold
    )
    match decision["kind"]:
        case "over":
            assert used > 100_000 - 1024
            assert shown["current_context_tokens"] == used
        case kind:
            assert (kind == "due") is is_reached
            assert shown["compared_tokens"] == used
    assert shown["threshold_tokens"] == threshold
    assert (threshold is None) is not enabled
    assert shown["decision"] == decision["kind"]


@st.composite
def talks(draw: st.DrawFn) -> list[Step]:
    """Draw turns: a message of the user or the user's shell, tool calls with results, and answers."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 4))):
        opener = "user" if number == 0 else draw(st.sampled_from(["user", "user", "bash"]))
        steps.append(Step(opener, draw(SIZES)))
        for results in draw(st.lists(st.integers(0, 2), max_size=4)):
            call = len(steps)
            steps.append(Step("assistant", draw(SIZES)))
            steps += [Step("result", draw(SIZES), call) for _ in range(results)]
    return steps


def messages_of(steps: list[Step]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for index, step in enumerate(steps):
        calls = [f"c{at}" for at, later in enumerate(steps) if later.call == index]
        match step.kind:
            case "user":
                messages.append(user(step.tokens, seed=index))
            case "bash":
                messages.append(user(step.tokens, seed=index, meta={"kind": "bash_execution"}))
            case "assistant":
                messages.append(assistant(step.tokens, *calls, seed=index))
            case _:
                messages.append(result(f"c{index}", step.tokens, seed=index))
    return messages


@pytest.mark.parametrize("profile", ["default", "opal", "go-agent", "klaude"])
@given(steps=talks(), share=st.integers(1, 110), off=st.sampled_from([-1, 0, 1]))
@SOME
def test_any_conversation_is_cut_where_the_spec_says(
    daemon: Daemon, profile: str, steps: list[Step], share: int, off: int
) -> None:
    # A keep at, or one beside, the size of some tail; or any share of the whole.
    tails = [sum(step.tokens for step in steps[at:]) for at in range(len(steps))]
    keep = tails[share % len(tails)] + off if share % 2 else max(1, tails[0] * share // 100)
    session = started(daemon, profile, 1_000_000, persist=False)
    append(daemon, session, *messages_of(steps))

    done = compact(daemon, session, keep_recent=keep)

    cut = spec_cut(profile, steps, keep)
    requests = [index for index, step in enumerate(steps) if step.kind in ("user", "bash")]
    stays = set(requests[-1:])
    if steps[requests[-1]].kind == "bash":
        stays |= set([index for index in requests if steps[index].kind == "user"][-1:])
    if cut is None or not set(range(cut)) - stays:
        assert done["compacted"] is False, (cut, done["first_kept_entry_id"])
    else:
        assert done["compacted"] is True, (cut, done["reason"])
        assert done["first_kept_entry_id"] == f"e{cut + 1}"
        assert done["pinned_entry_ids"] == [f"e{index + 1}" for index in sorted(stays) if index < cut]


@pytest.mark.parametrize("profile", ["default", "klaude", "opencode"])
@given(first=talks(), later=talks(), protect=st.integers(0, 1500), minimum=st.integers(0, 900))
@SOME
def test_of_any_conversation_the_tool_output_is_pruned_that_the_spec_says(
    daemon: Daemon, profile: str, first: list[Step], later: list[Step], protect: int, minimum: int
) -> None:
    sizes = {"prune_protect": protect, "prune_minimum": minimum}
    session = started(daemon, profile, 1_000_000, settings=sizes, persist=False)
    later = [step._replace(call=None if step.call is None else step.call + len(first)) for step in later]
    whole: list[Step] = []
    pruned: list[int] = []
    ids: list[str] = []
    for steps in (first, later):
        whole += steps
        ids += append(daemon, session, *messages_of(whole)[len(ids) :])["entry_ids"]

        told = daemon.call("session/prune", session_id=session)

        expected = spec_prune(whole, protect, minimum, pruned)
        assert told["entry_ids"] == [ids[at] for at in expected]
        pruned += expected

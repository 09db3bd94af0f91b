"""Every compaction trigger at its exact edge: one token below, at, above; six profiles, windows 4k to 2M."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.parity.formulas import SPECS, WINDOWS, first_over
from tests.support.client import Daemon
from tests.support.talk import assistant, turns, user
from tests.support.wire import OVERFLOW, PROFILES, append, begin, compact, report, started, state

EACH = pytest.mark.parametrize("profile", PROFILES)
EACH_WINDOW = pytest.mark.parametrize("window", WINDOWS)


def decisions(daemon: Daemon, session: str, profile: str, sizes: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the decision at each size, in rising order. The sizes are given by usage reports, except for
    evmts, which counts the text itself."""
    if profile != "evmts":
        append(daemon, session, user(1))
        for size in sizes:
            yield append(daemon, session, assistant(1), usage=report(size))["decision"]
        return
    so_far = 0
    for size in sizes:
        yield append(daemon, session, user(size - so_far))["decision"]
        so_far = size


# --- triggers ---------------------------------------------------------------------------------------


@EACH
@EACH_WINDOW
def test_a_compaction_is_due_from_the_specs_token_on_and_not_one_before(
    daemon: Daemon, profile: str, window: int
) -> None:
    session = started(daemon, profile, window, persist=False)
    due, over = SPECS[profile].first_due(window), first_over(window)

    told = []
    for size in decisions(daemon, session, profile, [due - 1, due, due + 1, over - 1, over]):
        told.append((size["used"], size["kind"]))
        if size["used"] == due - 1:
            assert begin(daemon, session) is None

    kinds = ["fits", "due", "due", "due", "over"]
    assert told == list(zip([due - 1, due, due + 1, over - 1, over], kinds, strict=True))


@EACH
@pytest.mark.parametrize("window", [4_096, 200_000])
def test_what_is_due_is_tried_at_the_next_turn(daemon: Daemon, profile: str, window: int) -> None:
    session = started(daemon, profile, window)

    list(decisions(daemon, session, profile, [SPECS[profile].first_due(window)]))

    done = begin(daemon, session)
    assert done is not None
    assert done["trigger"] == "threshold"


SIZES: dict[str, Callable[[int], int]] = {
    # base = input 600 + cache read 30 + cache write 7; output 40; what came after.
    "default": lambda trailing: 637 + 40 + trailing,
    "opal": lambda trailing: 637 + 40 + trailing,
    "go-agent": lambda trailing: 637 + 40 + trailing,
    "klaude": lambda trailing: 637 + 40,
    "evmts": lambda trailing: 11 + 13 + trailing,
    "opencode": lambda trailing: 600 + 30 + 40,
}
"""docs/dev/behaviour.md, the rows "size: base" and "size: what came after the report"."""


@EACH
@pytest.mark.parametrize("trailing", [0, 50])
def test_each_profile_compares_its_own_size_with_the_limit(
    daemon: Daemon, profile: str, trailing: int
) -> None:
    usage = {"input_tokens": 600, "output_tokens": 40, "cache_read_tokens": 30, "cache_write_tokens": 7}
    size = SIZES[profile](trailing)
    inclusive = profile in ("default", "opal")

    kinds = []
    for limit in (size - 1, size, size + 1):
        settings = {"model_auto_compact_token_limit": limit}
        session = started(daemon, profile, 100_000, settings=settings, persist=False)
        answer = append(daemon, session, user(11), assistant(13), usage=usage)
        if trailing:
            answer = append(daemon, session, user(trailing))
        kinds.append(answer["decision"]["kind"])
        assert answer["decision"]["used"] == answer["token_usage"]["compared_tokens"] == size

    assert kinds == ["due", "due" if inclusive else "fits", "fits"]


@EACH
@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"model_auto_compact_token_limit": 12_345}, 12_345),
        ({"threshold_ratio": 0.5}, 50_000),
        ({"reserve_tokens": 30_000}, 70_000),
        ({"reserve_tokens": 0}, 100_000),
    ],
    ids=str,
)
def test_a_limit_a_ratio_or_a_reserve_of_the_user_is_exact_under_each_profile(
    daemon: Daemon, profile: str, settings: dict[str, Any], limit: int
) -> None:
    session = started(daemon, profile, 100_000, settings=settings, persist=False)
    first = limit if profile in ("default", "opal") else limit + 1

    kinds = [d["kind"] for d in decisions(daemon, session, profile, [first - 1, first])]

    assert state(daemon, session)["budget"]["threshold"]["value"] == limit
    if limit < 100_000:
        assert kinds == ["fits", "due"]


@EACH
def test_a_limit_above_the_window_is_lowered_to_it_with_a_warning(daemon: Daemon, profile: str) -> None:
    settings = {"profile": profile, "context_window": 50_000, "model_auto_compact_token_limit": 60_000}

    begun = daemon.call("session/start", compaction=settings)

    assert begun["token_usage"]["threshold_tokens"] == 50_000
    assert any("60,000" in warning for warning in begun["warnings"])


GPT5 = {"default": 217_600, "opal": 320_000, "go-agent": 383_616, "klaude": 383_616, "evmts": 320_000}
GPT5["opencode"] = 272_000
"""Thresholds of a window of 400,000 with an input limit of 272,000: `default` on the cap, the others by their
formula on the window, opencode at the input limit."""


@EACH
def test_a_known_input_limit_is_the_cap_and_the_thresholds_are_the_specs(
    daemon: Daemon, profile: str
) -> None:
    model = {"provider": "openai", "id": "gpt-5", "base_url": "https://api.openai.com/v1"}
    facts = daemon.call("models/lookup", model="openai/gpt-5", base_url=model["base_url"])
    assert (facts["context_window"], facts["input_limit"]) == (400_000, 272_000)
    session = started(daemon, profile, model=model, persist=False)

    told = list(decisions(daemon, session, profile, [200_000, 272_000, 272_001]))

    budget = state(daemon, session)["budget"]
    assert (budget["cap"]["value"], budget["threshold"]["value"]) == (272_000, GPT5[profile])
    assert told[1]["kind"] == ("due" if profile == "default" else "fits")
    assert told[2]["kind"] == "over", "whatever the profile's formula says, the model takes no more"


UNKNOWN = {
    "default": 76_800,
    "opal": 102_400,
    "go-agent": None,
    "klaude": None,
    "evmts": 150_001,
    "opencode": None,
}
"""For each profile, the smallest size at which a compaction is due if the window is unknown
(docs/dev/behaviour.md, "unknown window")."""


@EACH
def test_an_unknown_window_triggers_where_the_profile_says_or_never(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, model="acme/unheard-of-9", persist=False)
    due = UNKNOWN[profile]
    sizes = [900_000] if due is None else [due - 1, due]

    kinds = [decision["kind"] for decision in decisions(daemon, session, profile, sizes)]

    assert kinds == (["fits"] if due is None else ["fits", "due"])


@EACH
def test_a_rejection_moves_every_edge_to_the_window_that_it_named(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 100_000, persist=False)
    append(daemon, session, *turns(8, 1000))
    told = "This model's maximum context length is 64000 tokens. However, your messages resulted in 99000."

    daemon.call("turn/error", session_id=session, error={"status": 400, "message": told})

    budget = state(daemon, session)["budget"]
    inclusive = profile in ("default", "opal")
    assert (budget["window"]["value"], budget["cap"]["value"]) == (64_000, 64_000)
    assert budget["threshold"]["value"] == SPECS[profile].first_due(64_000) - (not inclusive)


# --- what is over, full, or off, whatever the profile -----------------------------------------------


@EACH
@pytest.mark.parametrize("window", [4_096, 65_536])
def test_what_is_over_the_window_is_compacted_whatever_the_threshold(
    daemon: Daemon, profile: str, window: int
) -> None:
    settings = {"model_auto_compact_token_limit": window}
    session = started(daemon, profile, window, settings=settings, persist=False)
    part = window // 20
    append(daemon, session, *turns(9, part), user(first_over(window) - 18 * part - 1))

    fits = begin(daemon, session)
    append(daemon, session, assistant(1))
    over = begin(daemon, session)

    assert fits is None
    assert over is not None
    assert over["compacted"] is True, over["reason"]
    assert over["tokens_after"] < first_over(window)


@EACH
@pytest.mark.parametrize(
    ("usage", "reason", "silent"),
    [
        (report(10_000), "stop", False),
        (report(10_001), "stop", True),
        (report(9_000, 899), "length", False),
        (report(9_000, 900), "length", True),
        (report(9_000, 900), "stop", False),
        (report(100, 10), "model_context_window_exceeded", True),
    ],
    ids=str,
)
def test_a_window_that_was_full_without_a_word_is_seen_at_its_token(
    daemon: Daemon, profile: str, usage: dict[str, int], reason: str, silent: bool
) -> None:
    session = started(daemon, profile, 10_000, persist=False)
    append(daemon, session, user(1))

    told = daemon.call(
        "turn/end", session_id=session, messages=[assistant(1)], usage=usage, stop_reason=reason
    )

    assert told["silent_overflow"] is silent


@EACH
def test_where_it_is_off_nothing_is_compacted_but_on_request(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 10_000, settings={"enabled": False}, persist=False)
    append(daemon, session, *turns(20, 1000))

    begun = begin(daemon, session)
    told = daemon.call("turn/error", session_id=session, error=OVERFLOW)
    asked = compact(daemon, session, keep_recent=1000)

    assert begun is None
    assert (told["overflow"], told["retry"]) == (True, False)
    assert asked["compacted"] is True


@EACH
@pytest.mark.parametrize("used", [1, 5_000, 8_999])
def test_the_answer_may_take_what_the_window_leaves(daemon: Daemon, profile: str, used: int) -> None:
    settings = {"model_auto_compact_token_limit": 9_000}
    session = started(daemon, profile, 10_000, settings=settings, persist=False)
    append(daemon, session, user(used))

    begun = daemon.call("turn/begin", session_id=session)

    assert (begun["compaction"], begun["max_output_tokens"]) == (None, 10_000 - used)

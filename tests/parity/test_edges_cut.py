"""Every cut at its exact edge: one token below, at, above the kept size; windows from 4k to 2M."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.formulas import SPECS, Spec
from tests.support.client import Daemon
from tests.support.talk import assistant, user
from tests.support.wire import OVERFLOW, PROFILES, append, begin, compact, report, started, state

EACH = pytest.mark.parametrize("profile", PROFILES)


def tail(total_of_last_three: int) -> list[dict[str, Any]]:
    """Two old messages, then four; the last three of them have that many tokens together."""
    rest = total_of_last_three - 40
    first = rest // 2
    return [
        user(300),
        assistant(300, seed=1),
        user(10, seed=2),
        assistant(first, seed=3),
        user(40, seed=4),
        assistant(rest - first, seed=5),
    ]


def stay(spec: Spec, keep: int, last_three: int) -> int:
    """Return how many messages stay. The fourth from the end has 10 tokens, the third is an assistant's."""
    stops = last_three >= keep if spec.at_or_above else last_three > keep
    return spec.lands["assistant" if stops else "user"]


def at_the_edge(keep: int) -> tuple[int, int, int]:
    """One token below, at, above."""
    return (keep - 1, keep, keep + 1)


CUT_WINDOWS = pytest.mark.parametrize("window", [4_096, 16_000, 53_332, 65_536, 200_000, 2_000_000])


@pytest.mark.parametrize("profile", ["default", "opal", "go-agent", "klaude"])
@CUT_WINDOWS
def test_an_automatic_compaction_cuts_at_the_specs_token(daemon: Daemon, profile: str, window: int) -> None:
    spec = SPECS[profile]
    keep = spec.keep(window)
    for last_three in at_the_edge(keep):
        session = started(daemon, profile, window, persist=False)
        append(daemon, session, *tail(last_three), usage=report(spec.first_due(window)))

        done = begin(daemon, session)

        assert state(daemon, session)["budget"]["keep"]["value"] == keep
        assert done is not None
        assert (done["compacted"], done["trigger"]) == (True, "threshold"), done["reason"]
        assert done["kept_messages"] == stay(spec, keep, last_three)


@pytest.mark.parametrize("profile", ["default", "opal", "go-agent", "klaude"])
@CUT_WINDOWS
def test_a_manual_compaction_cuts_at_the_specs_token(daemon: Daemon, profile: str, window: int) -> None:
    spec = SPECS[profile]
    keep = spec.manual(window)
    for last_three in at_the_edge(keep):
        session = started(daemon, profile, window, persist=False)
        append(daemon, session, *tail(last_three))

        done = compact(daemon, session)

        assert done["compacted"] is True, done["reason"]
        assert done["kept_messages"] == stay(spec, keep, last_three)


@EACH
@CUT_WINDOWS
def test_an_overflow_compaction_cuts_at_the_specs_token(daemon: Daemon, profile: str, window: int) -> None:
    spec = SPECS[profile]
    keep = spec.overflow(window)
    for last_three in at_the_edge(keep):
        session = started(daemon, profile, window, persist=False)
        append(daemon, session, *tail(last_three))

        told = daemon.call("turn/error", session_id=session, error=OVERFLOW)

        assert (told["overflow"], told["retry"]) == (True, True)
        assert told["compaction"]["trigger"] == "overflow"
        assert told["compaction"]["kept_messages"] == stay(spec, keep, last_three)


@pytest.mark.parametrize("window", [4_096, 200_000, 2_000_000])
@pytest.mark.parametrize(("said", "stays"), [(5, None), (6, None), (7, 5), (8, 5)])
def test_evmts_keeps_five_messages_and_needs_more_than_six(
    daemon: Daemon, window: int, said: int, stays: int | None
) -> None:
    settings = {"model_auto_compact_token_limit": 10}
    session = started(daemon, "evmts", window, settings=settings, persist=False)
    append(daemon, session, *[user(200, seed=n) if n % 2 else assistant(200, seed=n) for n in range(said)])

    done = begin(daemon, session)

    assert done is not None
    if stays is None:
        assert (done["compacted"], done["reason"]) == (False, "Not enough messages to compact")
    else:
        assert (done["compacted"], done["kept_messages"]) == (True, stays)


@pytest.mark.parametrize("window", [4_096, 200_000, 2_000_000])
def test_opencode_keeps_nothing_but_the_request(daemon: Daemon, window: int) -> None:
    session = started(daemon, "opencode", window, persist=False)
    append(daemon, session, *tail(700), usage=report(SPECS["opencode"].first_due(window)))

    done = begin(daemon, session)

    assert done is not None
    assert (done["compacted"], done["kept_messages"]) == (True, 0)
    assert done["pinned_entry_ids"] == ["e5"], "the newest request stays word for word (law 6)"


@EACH
def test_a_keep_of_the_request_is_exact_under_each_profile(daemon: Daemon, profile: str) -> None:
    spec = SPECS[profile]
    for last_three in at_the_edge(700):
        session = started(daemon, profile, 100_000, persist=False)
        append(daemon, session, *tail(last_three))

        done = compact(daemon, session, keep_recent=700)

        assert done["kept_messages"] == stay(spec, 700, last_three)


@EACH
def test_a_keep_of_the_settings_is_exact_below_the_threshold(daemon: Daemon, profile: str) -> None:
    spec = SPECS[profile]
    for last_three in at_the_edge(700):
        session = started(daemon, profile, 4_096, settings={"keep_recent_tokens": 700}, persist=False)
        append(daemon, session, *tail(last_three))

        done = compact(daemon, session)

        assert done["kept_messages"] == stay(spec, 700, last_three)

"""docs/specs-evmts-opencode.md, "opencode.md", the three phases and the first of them, sentence by sentence,
over the wire.

`docs/specs-evmts-opencode.md` says which test is whose. Where the spec and docs/dev/behaviour.md differ,
docs/dev/behaviour.md wins, and the test says so.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.opencode import DUE, filled, finished, usage
from tests.support.client import Daemon
from tests.support.talk import assistant, result, turns, user
from tests.support.wire import MODEL, OVERFLOW, append, begin, compact, started, state

# --- Overview: three phases -------------------------------------------------------------------------


def test_the_three_phases_follow_each_other_detection_pruning_summary(daemon: Daemon) -> None:
    old = [assistant(10, "t"), result("t", 3000), *turns(2, 500)]
    settings = {**DUE, "prune_protect": 0, "prune_minimum": 100}
    session = filled(daemon, user(5), *old, **settings)
    pruned_only = daemon.call("turn/begin", session_id=session)
    append(daemon, session, user(5), assistant(10, "u"), result("u", 3000, seed=1), *turns(2, 900))
    at = daemon.now

    both = daemon.call("turn/begin", session_id=session)

    assert (pruned_only["pruned"], pruned_only["compaction"]) == (1, None)
    assert both["pruned"] == 1, "what a prune leaves above the limit is summarised in the same turn"
    assert (both["compaction"]["compacted"], both["compaction"]["trigger"]) == (True, "threshold")
    kinds = [e["type"] for e in daemon.events(session, after=at)]
    phases = [kind for kind in kinds if kind in ("prune_end", "compaction_start", "compaction_end")]
    assert phases == ["prune_end", "compaction_start", "compaction_end"]
    assert kinds[kinds.index("compaction_end") + 1] == "usage_update"


# --- Phase 1: Overflow Detection --------------------------------------------------------------------


def test_with_auto_false_nothing_is_due_and_a_providers_refusal_reaches_the_caller(daemon: Daemon) -> None:
    session = filled(daemon, **DUE, auto=False)

    told = daemon.call("turn/error", session_id=session, error=OVERFLOW)

    assert append(daemon, session, user(5))["decision"]["kind"] == "fits"
    assert begin(daemon, session) is None
    assert (told["overflow"], told["retry"]) == (True, False)
    assert "compaction" not in told
    assert compact(daemon, session)["compacted"] is True, "a request still compacts"


@pytest.mark.parametrize(
    ("model", "usable", "kind"),
    [
        ("openai/gpt-5", 272_000, "over"),
        ("anthropic/claude-sonnet-4-5", 200_000 - 32_000, "due"),
        ("openai/gpt-4o", 128_000 - 16_384, "due"),
        ("openai/gpt-4", 8_192 - 4_096, "due"),
        ("google/gemini-4-argon", 1_048_576 - 32_000, "due"),
    ],
    ids=["input limit", "output limit above 32000", "below", "small window", "unknown output limit"],
)
def test_usable_is_the_models_input_limit_or_its_context_without_its_output_limit(
    daemon: Daemon, model: str, usable: int, kind: str
) -> None:
    at, above = (finished(daemon, usage(usable - 5 + n, 5), model) for n in (0, 1))

    assert (at["threshold"], at["kind"]) == (usable, "fits"), "total > usable, not >="
    assert above["kind"] == kind, "a known input limit is also the most that the model takes"


def test_without_a_known_context_there_is_no_limit(daemon: Daemon) -> None:
    decision = finished(daemon, usage(90_000_000, 5), "acme/unheard-of-9")

    assert (decision["kind"], decision["threshold"], decision["window"]) == ("fits", None, None)


def test_a_context_of_0_is_unlimited_and_a_refusal_is_still_answered(daemon: Daemon) -> None:
    session = started(daemon, "opencode", 0, model=MODEL, persist=False)

    told = append(daemon, session, *turns(40, 1000), usage=usage(90_000_000, 5))
    before = begin(daemon, session)
    refused = daemon.call("turn/error", session_id=session, error=OVERFLOW)

    assert told["decision"] == {"kind": "fits", "used": 90_000_005, "threshold": None, "window": None}
    assert before is None
    assert (refused["overflow"], refused["retry"]) == (True, True)
    assert refused["compaction"]["tokens_after"] < 40_000


def test_after_a_refusal_without_figures_an_unknown_context_is_128000(daemon: Daemon) -> None:
    # docs/dev/behaviour.md, "unknown window": where the spec would be refused again and again.
    session = started(daemon, "opencode", model="acme/unheard-of-9", persist=False)
    append(daemon, session, *turns(20, 1000))

    told = daemon.call("turn/error", session_id=session, error=OVERFLOW)

    assert told["retry"] is True
    window = state(daemon, session)["budget"]["window"]["value"]
    assert window == 128_000


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        (usage(100_000, 18_000, read=50_000), "fits"),
        (usage(100_001, 18_000, read=50_000), "due"),
        (usage(100_000, 18_001, read=50_000), "due"),
        (usage(100_000, 18_000, read=50_001), "due"),
        (usage(100_000, 18_000, read=50_000, write=9_000), "fits"),
        (usage(100_000, 18_000, read=50_000, reasoning=9_000), "fits"),
    ],
    ids=["168000", "input", "output", "cache read", "cache write", "reasoning"],
)
def test_the_total_is_input_cache_read_and_output(daemon: Daemon, counts: dict[str, Any], kind: str) -> None:
    assert finished(daemon, counts)["kind"] == kind


def test_what_came_after_the_finished_answer_is_not_added(daemon: Daemon) -> None:
    session = started(daemon, "opencode", model=MODEL, persist=False)
    append(daemon, session, user(5), assistant(5), usage=usage(150_000, 18_000))

    later = append(daemon, session, user(5_000))

    assert later["decision"]["kind"] == "fits"
    assert later["token_usage"]["current_context_tokens"] == 173_000, "the gauge shows it all the same"


def test_deviation_what_exceeds_the_models_limit_is_compacted_whatever_the_formula_says(
    daemon: Daemon,
) -> None:
    # docs/dev/behaviour.md, "over": cache writes and what came after do not count for the spec, but fill the
    # window.
    session = started(daemon, "opencode", model=MODEL, persist=False)
    append(daemon, session, *turns(5, 200), usage=usage(100_000, 100, write=110_000))

    done = begin(daemon, session)

    assert done is not None
    assert done["compacted"] is True


def test_the_token_structure_is_understood(daemon: Daemon) -> None:
    session = started(daemon, "opencode", model=MODEL, persist=False)

    billed = append(
        daemon, session, user(5), assistant(5), usage=usage(1000, 200, reasoning=50, read=300, write=40)
    )["token_usage"]

    assert billed["last_prompt_tokens"] == billed["prompt_tokens"] == 1340
    assert (billed["completion_tokens"], billed["reasoning_tokens"]) == (200, 50)
    assert (billed["cache_read_tokens"], billed["cache_write_tokens"]) == (300, 40)

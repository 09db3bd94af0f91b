"""Opal's spec, docs/specs.md, "opal.md", from "Overflow Recovery" to its end: overflow, windows, manual
compaction.

Begins in `test_opal.py` and `test_opal_summary.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback, Overflow, Stall, Step, refusal
from tests.support.own_loop import Talk
from tests.support.talk import assistant, turns, user
from tests.support.wire import MODEL, OVERFLOW, append, begin, compact, report, started, state, view

BOTH = pytest.mark.parametrize("profile", ["opal", "default"])

OPUS = "anthropic/claude-opus-4-1"
"""A model whose window a rejection teaches: no other test uses it."""

# --- lines 140-154, "Overflow Recovery" -------------------------------------------------------------

KNOWN = {
    "context_length_exceeded": "openai",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens."
    " Please reduce the length of the messages.": "openai",
    '{"error":{"message":"Please reduce the length of the messages or completion.",'
    '"code":"context_length_exceeded"}}': "groq",
    "Your input exceeds the context window of this model. Please adjust your input and try again.": "openai",
    "prompt is too long: 212837 tokens > 200000 maximum": "anthropic",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).": "google",
    "prompt token count of 137500 exceeds the limit of 128000": "github-copilot",
    "max_prompt_tokens exceeded": "github-copilot",
    "prompt_tokens_exceeded": "github-copilot",
    "Request too large for this model's context": "proxy",
    "input too long": "proxy",
    "too many tokens in the prompt": "proxy",
    "token limit exceeded": "proxy",
    "The input (130000 tokens) exceeds the model's maximum context length of 128000.": "proxy",
}
"""One sentence for each of the source's strings that means an overflow."""

OTHERS = {
    "max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens": "output_limit",
    "Too many tokens, please wait before trying again.": "rate_limit",
    "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 31000.": "rate_limit",
    "content_too_large": "payload_too_large",
    "string_above_max_length": "payload_too_large",
}
"""Texts that the strings in the source match although they are no overflow."""


@pytest.mark.parametrize("words", KNOWN)
def test_the_providers_words_for_an_overflow_are_known(daemon: Daemon, words: str) -> None:
    found = daemon.call("overflow/classify", status=400, message=words, profile="opal")

    assert (found["overflow"], found["kind"], found["fix"]) == (True, "overflow", "compact")


@pytest.mark.parametrize("words", OTHERS)
def test_words_that_only_look_like_an_overflow_are_told_from_one(daemon: Daemon, words: str) -> None:
    found = daemon.call("overflow/classify", status=400, message=words, profile="opal")

    assert (found["overflow"], found["kind"]) == (False, OTHERS[words])


@BOTH
@pytest.mark.parametrize(("size", "kept"), [(398, 7), (399, 5)])
def test_a_rejected_turn_is_compacted_to_a_fifth_of_the_window_and_sent_again(
    daemon: Daemon, profile: str, size: int, kept: int
) -> None:
    # window ÷ 5 = 2,000: the last 10 tokens and five times 398 reach it, five times 399 exceed it.
    session = started(daemon, profile, 10_000)
    append(daemon, session, *turns(8, size), user(10))

    told = daemon.call("turn/error", session_id=session, error=OVERFLOW)

    assert (told["overflow"], told["retry"]) == (True, True)
    assert told["compaction"]["trigger"] == "overflow"
    assert told["compaction"]["kept_messages"] == kept
    assert len(view(daemon, session)) == 1 + kept


@BOTH
def test_where_no_cut_is_valid_an_emergency_compaction_is_forced(daemon: Daemon, profile: str) -> None:
    session = started(daemon, profile, 100_000)
    append(daemon, session, *turns(3, 200))

    told = daemon.call("turn/error", session_id=session, error=OVERFLOW)

    assert (told["retry"], told["compaction"]["kept_messages"]) == (True, 2)


def test_the_daemons_own_loop_sends_the_turn_again_at_once_and_counts_no_retry(
    daemon: Daemon, server: Loopback
) -> None:
    server.play(Overflow(requested=30_000, limit=20_000), Answer(text="Now it fits."))
    talk = Talk(daemon, started(daemon, "opal", 100_000, settings={"strategy": "truncate"}, model=OPUS))
    append(daemon, talk.id, *turns(20, 1000))

    end = talk.ask("And now?")

    talk.stop()
    assert end["stop_reason"] == "stop"
    assert "retry" not in talk.types()
    assert talk.types().index("compaction_end") > talk.types().index("overflow_detected")
    assert len(server.requests) == 2
    assert server.requests[1].tokens < server.requests[0].tokens


def test_an_overflow_that_repeats_ends(daemon: Daemon) -> None:
    session = started(daemon, "opal", 100_000)
    append(daemon, session, user(500), assistant(900), *turns(6, 2000), user(10))
    sizes = [daemon.call("session/context", session_id=session)["tokens"]]

    while len(sizes) < 10:
        told = daemon.call("turn/error", session_id=session, error=OVERFLOW)
        if not told["retry"]:
            break
        sizes.append(daemon.call("session/context", session_id=session)["tokens"])

    # Their loop has no end with two messages; ours sends the turn again three times.
    assert (sizes[0], len(sizes)) == (25_410, 4)
    assert sizes == sorted(set(sizes), reverse=True), "each attempt sends less"
    assert (told["overflow"], told["retry"]) == (True, False)
    assert told["floor"]["last_request"] == 10


@BOTH
@pytest.mark.parametrize(("prompt", "silent"), [(10_000, False), (10_001, True)])
def test_a_report_above_the_window_compacts_before_the_next_turn(
    daemon: Daemon, profile: str, prompt: int, silent: bool
) -> None:
    session = started(daemon, profile, 10_000)
    append(daemon, session, *turns(8, 400), user(10))

    ended = daemon.call(
        "turn/end", session_id=session, messages=[assistant(10)], usage=report(prompt, 10), stop_reason="stop"
    )
    answered = view(daemon, session)[-1]
    done = begin(daemon, session)

    assert ended["silent_overflow"] is silent
    assert answered["role"] == "assistant", "the finished answer stays and is not asked for again"
    assert done is not None
    assert done["compacted"] is True
    if silent:
        told = daemon.event("overflow_detected", session).value["params"]
        assert (told["source"], told["limit"], told["requested"]) == ("usage", 10_000, 10_001)
        assert (done["trigger"], done["kept_messages"]) == ("silent_overflow", 6)


def test_what_came_from_the_cache_fills_the_window_too(daemon: Daemon) -> None:
    session = started(daemon, "opal", 10_000)
    append(daemon, session, user(10))
    usage = {"input_tokens": 1, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 1000}

    ended = daemon.call("turn/end", session_id=session, messages=[assistant(10)], usage=usage)

    assert ended["silent_overflow"] is True


def test_without_a_session_the_overflow_is_an_error_that_says_so(daemon: Daemon) -> None:
    error = daemon.refusal("turn/error", session_id="nobody", error=OVERFLOW)

    assert error.code == 1001
    assert (error.data["overflow"], error.data["fix"]) == (True, "compact")


# --- lines 156-160, "Context Window Sizes" ----------------------------------------------------------

SONNET = {"provider": "anthropic", "id": "claude-sonnet-4-5", "base_url": "https://api.anthropic.com"}


@BOTH
@pytest.mark.parametrize(
    ("model", "window"), [(SONNET, 200_000), ("acme/unheard-of-9", 128_000), (None, 128_000)]
)
def test_the_window_is_looked_up_and_told_in_the_state_and_every_usage_update(
    daemon: Daemon, profile: str, model: Any, window: int
) -> None:
    session = started(daemon, profile, model=model)

    first = state(daemon, session)
    append(daemon, session, *turns(4, 3000), usage=report(100, 10))
    daemon.call("turn/end", session_id=session, messages=[user(1), assistant(1)], usage=report(200, 10))
    compact(daemon, session, keep_recent=4000)
    daemon.call("session/undo", session_id=session)

    assert first["token_usage"]["context_window"] == first["budget"]["window"]["value"] == window
    told = [event for event in daemon.events(session) if event["type"] == "usage_update"]
    assert len(told) == 4
    assert {event["context_window"] for event in told} == {window}


def test_copilots_models_have_copilots_window_and_a_providers_own_theirs(daemon: Daemon) -> None:
    windows = {}
    for provider, base_url in (("github-copilot", None), ("openai", "https://api.openai.com/v1")):
        facts = daemon.call("models/lookup", model="gpt-4o", provider=provider, base_url=base_url)
        model = {"provider": provider, "id": "gpt-4o", "base_url": base_url}
        begun = daemon.call("session/start", model=model, persist=False)
        windows[provider] = begun["token_usage"]["context_window"]
        assert (facts["provider"], facts["confidence"]) == (provider, "fact")
        assert windows[provider] == facts["context_window"]

    # One name, two windows: Copilot serves half of what OpenAI does.
    assert windows == {"github-copilot": 64_000, "openai": 128_000}


def test_the_window_is_in_every_agent_end(daemon: Daemon, server: Loopback) -> None:
    server.play(Answer(text="hello"))
    talk = Talk(daemon, started(daemon, "opal", 64_000, model=MODEL))

    end = talk.ask("hi")

    talk.stop()
    assert (end["context_window"], end["usage"]["context_window"]) == (64_000, 64_000)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Answer(text="hel", stop="length"), "length"),
        (refusal(), "refusal"),
        (Stall("hel"), "aborted"),
    ],
    ids=["length", "refusal", "abort"],
)
def test_the_window_is_in_the_agent_end_however_a_prompt_ends(
    daemon: Daemon, server: Loopback, step: Step, reason: str
) -> None:
    server.play(step)
    talk = Talk(daemon, started(daemon, "opal", 64_000, model=MODEL))

    turn = talk.prompt("hi")
    if reason == "aborted":
        daemon.event("message_delta", talk.id)
        daemon.call("agent/abort", session_id=talk.id)
    end = talk.end(turn)

    talk.stop()
    assert (end["type"], end["stop_reason"]) == ("agent_end", reason)
    assert (end["context_window"], end["usage"]["context_window"]) == (64_000, 64_000)


@pytest.mark.parametrize(
    ("profile", "threshold", "reported"), [("opal", 102_400, 128_000), ("default", 76_800, 50_000)]
)
def test_an_unknown_model_has_128000_tokens_and_that_is_called_a_guess(
    daemon: Daemon, profile: str, threshold: int, reported: int
) -> None:
    session = started(daemon, profile, model="acme/unheard-of-9")

    usage = append(daemon, session, user(1))["token_usage"]

    assert (usage["context_window"], usage["context_window_confidence"]) == (128_000, "guess")
    assert usage["threshold_tokens"] == threshold, "the default profile compacts a guess earlier, at 60 %"
    limits = {"input_tokens": 10, "context_window": 50_000}
    usage = append(daemon, session, assistant(1), usage=limits)["token_usage"]
    assert usage["context_window"] == reported, "Opal knows no window that a report names"


def test_a_window_that_is_configured_is_told_at_once(daemon: Daemon) -> None:
    session = started(daemon, "opal")

    daemon.call("session/configure", session_id=session, compaction={"context_window": 64_000})

    told = daemon.event("usage_update", session).value["params"]
    assert told["context_window"] == 64_000
    assert told["usage"]["context_window_confidence"] == "override"


def test_a_model_that_is_set_brings_its_window_at_once(daemon: Daemon) -> None:
    session = started(daemon, "opal", model="acme/unheard-of-9")

    answer = daemon.call("model/set", session_id=session, model=SONNET)

    assert answer["token_usage"]["context_window"] == 200_000, "not only with the next report"


# --- lines 162-167, "Manual Compaction" -------------------------------------------------------------


def test_a_manual_compaction_needs_a_session_takes_a_budget_and_renews_the_list(daemon: Daemon) -> None:
    session = started(daemon, "opal", 100_000)
    append(daemon, session, *turns(10, 200), usage=report(90_000))
    before = state(daemon, session)["message_count"]

    missing = daemon.refusal("session/compact")
    done = compact(daemon, session, keep_recent=600)

    assert (missing.code, missing.data["path"]) == (-32602, "$.session_id")
    assert (before, done["messages_before"]) == (20, 20)
    assert state(daemon, session)["message_count"] == len(view(daemon, session)) == done["messages_after"]
    assert begin(daemon, session) is None, "the size before it is forgotten, so nothing is due any more"


@pytest.mark.parametrize("keep", [0, -1, "20000", 1.5])
def test_a_budget_that_is_none_is_refused(daemon: Daemon, keep: Any) -> None:
    session = started(daemon, "opal", 100_000)

    assert daemon.refusal("session/compact", session_id=session, keep_recent=keep).code == -32602

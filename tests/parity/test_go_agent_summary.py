"""The go-agent's spec, docs/specs.md, "go-agent.md", from "Summary Format" to its end, over the wire. Profile
`go-agent`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback
from tests.support.talk import Message, assistant, call, result, text, turns, user
from tests.support.wire import MODEL, OVERFLOW, SUMMARY, append, begin, compact, report, started, state, view

MODELLED = {"model": MODEL}


def session_of(daemon: Daemon, window: int | None = 200_000, **more: Any) -> str:
    """A session under this profile."""
    return started(daemon, "go-agent", window, **more)


# --- lines 83-134, "Summary Format" and "Incremental Compaction" ------------------------------------

FORM = (
    "## Goal\n[",
    "## Constraints & Preferences\n- [",
    "## Progress\n### Done\n- [x] [",
    "### In Progress\n- [ ] [",
    "### Blocked\n- [",
    "## Key Decisions\n- **[",
    "]**: [",
    "## Next Steps\n1. [",
    "## Critical Context\n- [",
)


def test_the_model_is_asked_for_exactly_the_specs_form(daemon: Daemon, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY))
    session = session_of(daemon, settings=MODELLED)
    append(daemon, session, *turns(4, 400))

    compact(daemon, session, keep_recent=900)

    prompt = server.requests[0].body["messages"][0]["content"][0]["text"]
    places = [prompt.find(part) for part in FORM]
    assert -1 not in places
    assert places == sorted(places)


def files() -> list[Message]:
    return [
        call("r1", "Read", file_path="pkg/a.go"),
        result("r1", 100),
        call("w", "apply", path="pkg/b.go", patch="*** Begin Patch"),
        result("w", 100),
        call("r2", "view", path="pkg/b.go"),
        result("r2", 100),
    ]


@pytest.mark.parametrize("strategy", ["summarize", "extract"])
def test_the_files_stand_at_the_end_of_the_summary_by_code(
    daemon: Daemon, server: Loopback, strategy: str
) -> None:
    server.play(Answer(text=f"{SUMMARY}\n<read-files>\ninvented.go\n</read-files>"))
    session = session_of(daemon, settings=MODELLED)
    append(daemon, session, user(5), *files(), *turns(4, 400))

    done = compact(daemon, session, keep_recent=900, strategy=strategy)

    assert done["strategy"] == strategy
    assert done["summary"].endswith(
        "<read-files>\npkg/a.go\n</read-files>\n<modified-files>\npkg/b.go\n</modified-files>"
    )
    assert "invented.go" not in done["summary"]


def test_without_a_model_the_summary_has_headings_of_the_same_form(daemon: Daemon) -> None:
    session = session_of(daemon)
    append(daemon, session, *turns(4, 400))

    done = compact(daemon, session, keep_recent=900)

    assert done["strategy"] == "extract"
    form = [line for part in FORM for line in part.splitlines() if line.startswith("#")]
    shown = [line for line in done["summary"].splitlines() if line.startswith("#")]
    assert shown
    assert shown == [line for line in form if line in shown], "in the same order; empty ones are left out"


def test_the_previous_summary_goes_into_the_new_prompt_to_be_merged(daemon: Daemon, server: Loopback) -> None:
    server.play(Answer(text=SUMMARY), Answer(text=SUMMARY.replace("benchmark", "fuzzer")))
    session = session_of(daemon, settings=MODELLED)
    append(daemon, session, user(0, content="Never change the grammar."), *turns(4, 400))
    compact(daemon, session, keep_recent=900)
    append(daemon, session, *turns(4, 400))

    done = compact(daemon, session, keep_recent=900)

    prompt = server.requests[1].body["messages"][0]["content"][0]["text"]
    previous = prompt.partition("<previous-summary>")[2].partition("</previous-summary>")[0]
    assert previous.strip() == SUMMARY.strip()
    assert prompt.count("The slow function is `scan`.") == 1, "it is not in the transcript again"
    assert "Run the fuzzer." in done["summary"]
    assert "Run the benchmark." not in done["summary"], "one document, not two"


# --- lines 138-146, "Cut Point Rules" ---------------------------------------------------------------


def batch(number: int, size: int) -> list[Message]:
    return [assistant(20, f"t{number}"), result(f"t{number}", size, seed=number)]


def long_turn(*, bash: bool) -> list[Message]:
    """An older turn, and one that alone exceeds 500 tokens; in it a command that the user ran himself."""
    meta = {"kind": "bash_execution"}
    ran = [user(60, seed=3, meta=meta)] if bash else [assistant(60, seed=3)]
    return [
        user(300, content=f"HISTORY {text(290)}"),
        assistant(300),
        user(40, content=f"BEGINNING {text(30)}"),
        *batch(1, 200),
        *ran,
        *batch(2, 420),
        assistant(50, seed=4),
    ]


@pytest.mark.parametrize(
    ("keep", "bash", "first"),
    [
        (50, False, "e9"),
        (51, False, "e7"),
        (470, False, "e7"),
        (490, False, "e7"),
        (491, False, "e6"),
        (550, True, "e6"),
        (551, True, "e4"),
        (770, True, "e4"),
        (800, False, "e3"),
        (810, False, "e2"),
    ],
)
def test_in_a_turn_that_alone_exceeds_keep_the_cut_lands_at_an_assistants_or_a_commands_message(
    daemon: Daemon, keep: int, bash: bool, first: str
) -> None:
    # From the end: e9 50, e8 (result) 470, e7 490, e6 550, e5 (result) 750, e4 770, e3 803; e2 is of the
    # older turn, in which nothing before its user message could be summarised.
    session = session_of(daemon)
    append(daemon, session, *long_turn(bash=bash))

    done = compact(daemon, session, keep_recent=keep)

    assert done["first_kept_entry_id"] == first
    assert daemon.call("session/context", session_id=session)["repairs"] == []


def test_history_and_partial_turn_are_summarised_separately_and_merged(
    daemon: Daemon, server: Loopback
) -> None:
    answers = [SUMMARY.replace("The slow function", f"Slow function {number}") for number in range(2)]
    server.play(*[Answer(text=answer) for answer in answers])
    session = session_of(daemon, settings=MODELLED)
    append(daemon, session, *long_turn(bash=False))

    done = compact(daemon, session, keep_recent=491)

    assert (done["split_turn"], done["first_kept_entry_id"]) == (True, "e6")
    sent = [request.raw.decode() for request in server.requests]
    assert sorted(("HISTORY" in one, "BEGINNING" in one) for one in sent) == [(False, True), (True, False)]
    history, partial = (
        next(number for number, one in enumerate(sent) if word in one) for word in ("HISTORY", "BEGINNING")
    )
    before, _, after = done["summary"].partition("## Turn Context (split turn)")
    assert f"Slow function {history} is" in before
    assert f"Slow function {partial} is" in after, "both, in one message, each in its place"
    assert len([m for m in view(daemon, session) if m.get("meta")]) == 1


# --- lines 150-176, "Compaction Event" and "Disabling Compaction" -----------------------------------


def test_the_end_of_a_compaction_tells_tokens_before_after_and_messages_removed(daemon: Daemon) -> None:
    session = session_of(daemon)
    append(daemon, session, *turns(20, 1000), assistant(10), usage=report(190_000))

    done = begin(daemon, session)

    assert done is not None
    told = daemon.event("compaction_end", session).value["params"]["result"]
    now = daemon.call("session/context", session_id=session)["tokens"]
    assert (told["tokens_before"], told["messages_before"]) == (40_010, 41)
    assert told["tokens_after"] == now < told["tokens_before"], "counted, not what the stale report says"
    assert told["messages_removed"] == 41 - told["kept_messages"]
    assert told["tokens_saved"] == told["tokens_before"] - told["tokens_after"]


def test_disabled_the_conversation_goes_on_until_the_provider_refuses(daemon: Daemon) -> None:
    session = session_of(daemon, 10_000, settings={"enabled": False})
    append(daemon, session, *turns(20, 1000))
    append(daemon, session, assistant(1), usage=report(250_000))

    begun = begin(daemon, session)
    told = daemon.call("turn/error", session_id=session, error=OVERFLOW)
    by_hand = compact(daemon, session, keep_recent=3000)

    assert begun is None
    assert (told["overflow"], told["retry"]) == (True, False)
    assert "compaction" not in told or told["compaction"] is None
    assert by_hand["compacted"] is True, "what a person asks for is still done"


# --- lines 180-200, "Token Estimation" --------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("wörter", 2), ("日本語日本", 2)]
)
def test_a_token_is_four_characters_and_every_rest_counts_as_one(
    daemon: Daemon, content: str, tokens: int
) -> None:
    session = session_of(daemon)

    usage = append(daemon, session, {"role": "user", "content": content})["token_usage"]

    assert usage["current_context_tokens"] == tokens


def test_the_estimate_gives_way_to_the_providers_report_after_each_turn(daemon: Daemon) -> None:
    session = session_of(daemon)
    append(daemon, session, user(100))
    seen = []

    for reported in (900, 1500):
        usage = daemon.call(
            "turn/end", session_id=session, messages=[assistant(20)], usage=report(reported, 25)
        )["token_usage"]
        seen.append((usage["current_context_tokens"], usage["current_context_source"]))
        append(daemon, session, user(30))

    assert seen == [(925, "mixed"), (1525, "mixed")]
    now = state(daemon, session)["token_usage"]
    assert now["current_context_tokens"] == 1525 + 30


def test_the_end_of_a_turn_tells_tokens_usage_and_trailing(daemon: Daemon) -> None:
    # `UsageTokens`: "tokens from last provider usage report", its answer among them; the rest came since.
    session = session_of(daemon)
    append(daemon, session, user(100))

    daemon.call("turn/end", session_id=session, messages=[assistant(20)], usage=report(900, 25))
    append(daemon, session, user(30))
    daemon.call("turn/end", session_id=session, messages=[assistant(20)])

    told = [event["context_usage"] for event in daemon.events(session) if event["type"] == "turn_end"]
    assert told == [
        {"tokens": 925, "usage_tokens": 925, "trailing_tokens": 0},
        {"tokens": 975, "usage_tokens": 925, "trailing_tokens": 50},
    ]


@pytest.mark.parametrize(("output", "kind"), [(16, "fits"), (17, "due")])
def test_what_the_answer_reasoned_is_in_the_size_that_is_told_and_compared(
    daemon: Daemon, output: int, kind: str
) -> None:
    # 183,616 is the threshold of 200,000; ten of the answer's tokens are reasoning.
    session = session_of(daemon)
    append(daemon, session, user(100))
    usage = {"input_tokens": 183_600, "output_tokens": output, "reasoning_tokens": 10}

    ended = daemon.call("turn/end", session_id=session, messages=[assistant(5)], usage=usage)

    size = 183_600 + output
    assert (ended["decision"]["kind"], ended["decision"]["used"]) == (kind, size)
    told = [event["context_usage"] for event in daemon.events(session) if event["type"] == "turn_end"]
    assert told == [{"tokens": size, "usage_tokens": size, "trailing_tokens": 0}]
    assert state(daemon, session)["budget"]["compared"]["value"] == size

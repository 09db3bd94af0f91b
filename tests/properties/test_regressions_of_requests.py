"""R5, R13, R14, R16, R21, R23: regressions of model requests: what a failure means, and what happens next.

See `test_regressions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Fail, Loopback, Overflow
from tests.support.own_loop import TOOLS, Talk
from tests.support.talk import CHARS4, Message, assistant, result, said, turns, user
from tests.support.wire import MODEL, append, started, state, view

Open = Callable[..., Talk]


@pytest.fixture
def talk(spawn: Any) -> Iterator[Open]:
    """Opens a session whose loop the daemon runs, in a daemon of its own: it learns of windows."""
    with ExitStack() as stack:

        def open_(*messages: Message, **settings: Any) -> Talk:
            daemon = spawn()
            compaction = {**CHARS4, "strategy": "extract", **settings}
            started = daemon.call("session/start", model=MODEL, tools=TOOLS, compaction=compaction)
            append(daemon, started["session_id"], *messages)
            one = Talk(daemon, started["session_id"])
            stack.callback(one.stop)
            return one

        yield open_


# --- R5 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "prompt"),
    [
        ([user(90_000)], "And now?"),
        ([user(50), assistant(10, "t"), result("t", 180_000)], "And now?"),
        ([], "word " * 60_000),
    ],
    ids=["two messages", "an oversized tail", "nothing but the request"],
)
def test_an_overflow_that_nothing_cures_ends(
    talk: Open, server: Loopback, messages: list[Message], prompt: str
) -> None:
    """R5: with two messages, or a tail that is itself too large, Opal and OpenCode ask without end."""
    server.play(*[Overflow(requested=300_000, limit=100_000)] * 40)
    one = talk(*messages)

    end = one.ask(prompt)

    assert (end["type"], end["code"]) == ("error", 1008)
    sizes = [request.tokens for request in server.requests]
    assert len(sizes) <= 4
    assert sizes == sorted(set(sizes), reverse=True), "each attempt sends strictly less"
    assert [e["type"] for e in one.daemon.events(one.id)].count("overflow_detected") == len(sizes)
    server.forget()
    assert state(one.daemon, one.id)["status"] == "idle"


def test_a_conversation_that_could_still_shrink_is_not_tried_without_end(
    talk: Open, server: Loopback
) -> None:
    """R5: where the provider names no figures, each attempt could send a little less for a long time."""
    body = '{"error":{"message":"Your input exceeds the context window of this model."}}'
    server.play(*[Fail(status=400, body=body)] * 40)
    one = talk(*turns(60, 1000))

    end = one.ask("And now?")

    assert (end["type"], end["code"]) == ("error", 1008)
    sizes = [request.tokens for request in server.requests]
    assert len(sizes) == 4
    assert sizes == sorted(set(sizes), reverse=True)


# --- R13, R14 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 200500 tokens > 200000 maximum",
        "prompt is too long: 214290 tokens > 200000 maximum",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 150429 tokens.",  # noqa: E501
        "input length and `max_tokens` exceed context limit: 195003 + 32000 > 200000",
        "the request exceeds the available context size, try increasing it (request 5042, window 4096)",
    ],
)
@pytest.mark.parametrize("status", [400, None])
def test_a_status_is_never_read_out_of_a_token_count(daemon: Daemon, text: str, status: int | None) -> None:
    """R13: the Go agent finds "500", "429" and "503" among the digits, and sends the same request again."""
    told = daemon.call("overflow/classify", status=status, message=text)

    assert (told["overflow"], told["kind"]) == (True, "overflow")
    assert told["fix"] in ("compact", "lower_output")


@pytest.mark.parametrize(
    "text",
    [
        "messages.5: `tool_use` ids were found without `tool_result` blocks: call_500429503",
        "temperature: 429.0 is above the most of 500",
        "tools.502.name: string should have at most 504 characters",
    ],
)
def test_a_failure_with_500_or_429_among_its_words_is_not_sent_again(
    talk: Open, server: Loopback, text: str
) -> None:
    """R13, in the daemon's own loop: one request, no `retry`."""
    body = f'{{"type":"error","error":{{"type":"invalid_request_error","message":"{text}"}}}}'
    server.play(*[Fail(status=400, body=body)] * 5)
    one = talk()

    end = one.ask("Hello")

    assert (end["type"], end["code"]) == ("error", 1006)
    assert len(server.requests) == 1
    assert "retry" not in one.types()


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (400, "ThrottlingException: Too many tokens, please wait before trying again.", "rate_limit"),
        (429, "Too many tokens, please wait before trying again.", "rate_limit"),
        (429, "Request too large on tokens per min (TPM): Limit 30000, Requested 40000.", "rate_limit"),
        (429, "", "rate_limit"),
        (400, "max_tokens: 100000 > 8192, the maximum allowed number of output tokens", "output_limit"),
        (400, "Invalid 'messages[2].tool_calls': array too long. Expected at most 128.", "invalid_request"),
        (402, "You exceeded your token limit. Please add credits.", "quota"),
    ],
    ids=["bedrock", "too many tokens", "per minute", "bare 429", "a parameter", "an array", "quota"],
)  # fmt: skip
@pytest.mark.parametrize("profile", ["default", "opal", "klaude"])
def test_throttling_and_wrong_parameters_are_no_overflow(
    daemon: Daemon, profile: str, status: int, text: str, kind: str
) -> None:
    """R14: Opal and klaude look for "too many tokens", "max_tokens", "token limit", and for 429."""
    session = started(daemon, profile, 200_000, model=MODEL)
    append(daemon, session, *turns(20, 100))
    before = daemon.call("session/context", session_id=session)

    told = daemon.call("overflow/classify", status=status, message=text, profile=profile)
    answer = daemon.call("turn/error", session_id=session, error={"status": status, "message": text})

    assert (told["overflow"], told["kind"]) == (False, kind)
    assert (answer["overflow"], answer["kind"]) == (False, kind)
    if "TPM" not in text:  # one request above a cap per minute has to become smaller
        assert "compaction" not in answer
        assert daemon.call("session/context", session_id=session) == before


# --- R16 --------------------------------------------------------------------------------------------

ASKED_FOR = (
    "gpt-4", "gpt", "claude", "sonnet", "claude-sonnet", "acme/gpt-4o", "deepseek-r1", "deepseek-chat",
    "llama-3.1-70b-instruct", "llama", "qwen3-coder", "openrouter/qwen3-coder", "mistral-large", "gemini",
    "gemini-2.5-flash-preview", "kimi-k2", "glm-4.6", "o1", "mini", "4o",
)  # fmt: skip


def test_the_registry_gives_every_process_the_same_answer(spawn: Any) -> None:
    """R16: the Go agent walks over a map and takes the first id that contains the name: another each time."""
    answers = []
    for seed in ("1", "2", "3"):
        daemon = spawn({"PYTHONHASHSEED": seed})
        answers.append([daemon.call("models/lookup", model=name) for name in ASKED_FOR])

    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("name", ["onnet", "pt-4o", "claud", "lama", "emini-2", "4o", "mini", "e"])
def test_a_part_of_a_name_finds_no_model(daemon: Daemon, name: str) -> None:
    """R16: what is contained in many ids is nobody's name: it is a guess that says so."""
    found = daemon.call("models/lookup", model=name)

    assert (found["context_window"], found["confidence"], found["how"]) == (
        128_000,
        "guess",
        "unknown model",
    )


# --- R21 --------------------------------------------------------------------------------------------


def test_a_prompt_that_was_answered_in_a_full_window_is_not_asked_again(talk: Open, server: Loopback) -> None:
    """R21: after a silent overflow Opal compacts and asks a finished prompt again."""
    server.play(Answer(text="It is done.", input_tokens=210_000), Answer(text="Once more."))
    one = talk(*turns(20, 1500))

    end = one.ask("Mend it")

    assert end["stop_reason"] == "stop"
    assert len(server.requests) == 1
    assert said(view(one.daemon, one.id)[-1]) == "It is done."


def test_the_tool_calls_of_an_answer_that_filled_the_window_are_run(talk: Open, server: Loopback) -> None:
    """R21: and drops the calls of an answer that is not finished."""
    server.play(
        Answer(text="Let me look.", calls=(Call("read", '{"path":"a.py"}', "c1"),), input_tokens=210_000),
        Answer(text="It is done.", input_tokens=20_000),
    )
    one = talk(*turns(20, 1500))

    end = one.ask("Mend it")

    assert end["stop_reason"] == "stop"
    assert [call["call_id"] for call in one.executed] == ["c1"]
    assert len(server.requests) == 2
    assert "read is done" in server.requests[1].raw.decode()
    assert server.requests[1].tokens < server.requests[0].tokens
    (done,) = [e for e in one.daemon.events(one.id) if e["type"] == "compaction_end"]
    assert (done["status"], done["result"]["trigger"]) == ("completed", "silent_overflow")


# --- R23 --------------------------------------------------------------------------------------------


def test_the_agent_goes_on_with_its_task_after_a_compaction_in_its_middle(
    talk: Open, server: Loopback
) -> None:
    """R23: klaude's and OpenCode's agents stop where a compaction falls between two steps of a task."""
    server.play(
        Answer(text="Let me look.", calls=(Call("read", "{}", "c1"),), input_tokens=170_000),
        Answer(text="And run it.", calls=(Call("run", "{}", "c2"),), input_tokens=20_000),
        Answer(text="It is done.", input_tokens=21_000),
    )
    one = talk(*turns(20, 1500))

    end = one.ask("Mend the loader, and run it")

    assert end["stop_reason"] == "stop"
    (done,) = [e for e in one.daemon.events(one.id) if e["type"] == "compaction_end"]
    assert done["result"]["trigger"] == "threshold"
    assert [call["call_id"] for call in one.executed] == ["c1", "c2"]
    assert len(server.requests) == 3
    assert "Mend the loader, and run it" in server.requests[1].raw.decode(), "what it was asked stays"
    assert said(view(one.daemon, one.id)[-1]) == "It is done."


def test_an_agent_with_a_loop_of_its_own_is_told_to_go_on_where_its_profile_says_so(daemon: Daemon) -> None:
    """R23: OpenCode's automatic compaction ends with a message that keeps the model at work."""
    session = started(daemon, "opencode", 10_000)
    append(daemon, session, *turns(20, 190), user(10), assistant(980))

    done = daemon.call("turn/begin", session_id=session)["compaction"]

    assert done["compacted"] is True
    last = view(daemon, session)[-1]
    assert (last["role"], said(last)) == ("user", "Continue if you have next steps")

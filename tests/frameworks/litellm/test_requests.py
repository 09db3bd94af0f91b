"""Agents on LiteLLM in a small window, with `CompactdLogger`."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import litellm
import pytest

from compactd.client.events import own_command
from compactd.integrations.frameworks.engine import CompactdWarning, engine_of
from compactd.integrations.frameworks.litellm import CompactdLogger, logger, usage
from compactd.integrations.frameworks.litellm.requests import PREFIX, name_of
from tests.frameworks.litellm import agents
from tests.frameworks.litellm.agents import WINDOW, Agent, registered
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import MODEL, Provider
from tests.support.loopback import Fail, Loopback


def texts(seen: Any) -> str:
    return str(seen.body["messages"])


def filler(number: int, tokens: int = 600) -> list[dict[str, Any]]:
    words = " ".join(f"w{number}x{at}" for at in range(tokens // 4))
    return [
        {"role": "user", "content": f"Note {number}: {words}"},
        {"role": "assistant", "content": "Noted."},
    ]


# --- the conversation of the test kit ------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [agents.openai, agents.anthropic])
async def test_forty_tool_turns_fit_into_a_small_window(
    model: Callable[[Provider], dict[str, Any]], stream: bool
) -> None:
    with Provider(recalls=3) as provider, registered() as log:
        agent = Agent(litellm.acompletion, **model(provider), stream=stream)
        tool = log.recall_tool(agent.session_id)
        agent.request["tools"] = [*agents.DEFINITIONS, tool.definition]
        agent.recall = tool
        for request in provider.asks():
            await agent.run(request)
    assert broken(provider) == []
    totals = provider.totals
    assert (totals.rejections, totals.tasks, totals.turns, totals.recalls) == (0, 5, 40, 3)
    assert log.session(agent.session_id).state().compaction.count >= 1
    # The caller's own list keeps everything.
    assert sum(isinstance(each, dict) and each["role"] == "tool" for each in agent.messages) > 40


def is_reported(session_id: str) -> bool:
    """Return whether a report for this session waits for its answer. Other tests leave theirs."""
    with usage._lock:
        return any(session_id in name for name, _ in usage._waiting)


def test_a_stream_of_completion_is_billed() -> None:
    with Provider() as provider, registered(persist=False) as log:
        messages: list[Any] = [{"role": "user", "content": provider.ask(0)}]
        given = {"metadata": {"session_id": uuid4().hex}, **agents.openai(provider)}
        stream = log.completion(
            messages=messages, stream=True, stream_options={"include_usage": True}, **given
        )
        answer = litellm.stream_chunk_builder(list(stream))
        assert answer is not None
        # LiteLLM reports it in a thread of its own.
        session = log.session(given["metadata"]["session_id"])
        until = time.monotonic() + 10
        while not is_reported(given["metadata"]["session_id"]) and time.monotonic() < until:
            time.sleep(0.01)
        messages += [answer.choices[0].message, {"role": "user", "content": "Go on."}]  # type: ignore[union-attr]
        log.completion(messages=messages, **given)
        assert session.state().token_usage.prompt_tokens == provider.requests[0].tokens


async def test_a_long_id_is_one_session() -> None:
    with Provider() as provider, registered() as log:
        agent = Agent(
            litellm.acompletion, "x" * 500, **agents.openai(provider), fallbacks=[f"openai/{MODEL}"]
        )
        for at in range(2):
            await agent.run(provider.ask(at))
        assert log.session("x" * 500).state().token_usage.prompt_tokens > WINDOW
    assert broken(provider) == []


async def test_a_router_fits_too() -> None:
    with Provider() as provider, registered():
        agent = Agent(agents.router(provider).acompletion, model="small")
        for request in provider.asks():
            await agent.run(request)
    assert broken(provider) == []
    assert provider.totals.tasks == 5


def test_completion_fits_through_the_logger() -> None:
    with Provider() as provider, registered() as log:

        async def ask(**request: Any) -> Any:
            return log.completion(**request)

        agent = Agent(ask, **agents.openai(provider))
        for request in provider.asks():
            asyncio.run(agent.run(request))
        state = log.session(agent.session_id).state()
    assert broken(provider) == []
    assert provider.totals.tasks == 5
    billed = sum(seen.tokens for seen in provider.turns[:-1])
    assert state.token_usage.prompt_tokens == pytest.approx(billed, abs=2)
    # The caller's own list keeps everything.
    assert sum(isinstance(each, dict) and each["role"] == "tool" for each in agent.messages) > 40


async def test_the_ids_place_in_the_request_does_not_matter() -> None:
    with Provider() as provider, registered(persist=False) as log:
        for at, given in enumerate(
            (
                {"metadata": {"session_id": "at-0"}},
                {"litellm_session_id": "at-1"},
                {"litellm_metadata": {"session_id": "at-2"}},
            )
        ):
            await litellm.acompletion(
                messages=[{"role": "user", "content": provider.ask(0)}], **agents.openai(provider), **given
            )
            assert log.session(f"at-{at}").state().message_count == 1


# --- overflows -----------------------------------------------------------------------------------------


async def _overflow(provider: Provider, ask: Any, **request: Any) -> str:
    """Send a conversation that is larger than a window which nobody knows. Return its session's id."""
    session = uuid4().hex
    messages = [each for number in range(20) for each in filler(number, 1_200)]
    messages.append({"role": "user", "content": provider.ask(0)})
    await ask(messages=messages, metadata={"session_id": session}, **request)
    return session


async def test_an_overflow_is_answered_with_a_smaller_request() -> None:
    with Provider() as provider, registered(context_window=None) as log:
        request = {**agents.openai(provider), "model": f"openai/unknown-{uuid4().hex}"}
        session = await _overflow(provider, log.acompletion, **request)
        assert [seen.accepted for seen in provider.requests] == [False, True]
        # The hook and the logger do not both report the error.
        assert log.session(session).state().compaction.count == 1
        request = {**request, "model": f"openai/unknown-{uuid4().hex}"}

        async def sync(**given: Any) -> Any:
            return await asyncio.to_thread(log.completion, **given)

        await _overflow(provider, sync, **request)
        assert [seen.accepted for seen in provider.requests] == [False, True] * 2


async def test_without_a_seam_the_next_request_fits() -> None:
    with Provider() as provider, registered(context_window=None):
        session = uuid4().hex
        request = {**agents.openai(provider), "model": f"openai/unknown-{uuid4().hex}"}
        messages = [each for number in range(20) for each in filler(number, 1_200)]
        messages.append({"role": "user", "content": provider.ask(0)})
        given = {"messages": messages, "metadata": {"session_id": session}, **request}
        with pytest.raises(litellm.ContextWindowExceededError):
            await litellm.acompletion(**given)
        await litellm.acompletion(**given)
    assert [seen.accepted for seen in provider.requests] == [False, True]


@pytest.mark.parametrize(
    "options",
    [{"retry_policy": {"BadRequestErrorRetries": 3}}, {"context_window_fallbacks": [{"small": ["other"]}]}],
)
async def test_what_a_router_sends_again_is_smaller(options: dict[str, Any]) -> None:
    with Provider() as provider, registered(context_window=None):
        name = f"openai/unknown-{uuid4().hex}"
        deployment = {**agents.openai(provider), "model": name}
        models = [{"model_name": each, "litellm_params": dict(deployment)} for each in ("small", "other")]
        router = litellm.Router(model_list=models, **options)
        await _overflow(provider, router.acompletion, model="small")
    assert [seen.accepted for seen in provider.requests] == [False, True]


async def test_fallbacks_of_one_request_get_the_whole_conversation() -> None:
    """LiteLLM gives a fallback the messages that were chosen for the first model."""
    with Provider() as provider, registered() as log:
        agent = Agent(litellm.acompletion, **agents.openai(provider), fallbacks=[f"openai/{MODEL}"])
        for request in provider.asks():
            await agent.run(request)
        name = log.session(agent.session_id).name
        entries = engine_of().demand(lambda client: client.session_history(session_id=name)).entries
    assert broken(provider) == []
    assert provider.totals.tasks == 5
    # The session was never taken back to an earlier message: nothing was said twice.
    assert sum(entry.kind == "message" for entry in entries) == len(agent.messages) - 2


async def test_another_failure_is_raised_at_once() -> None:
    with Loopback(reply=lambda seen: _unauthorised()) as server, registered() as log:
        with pytest.raises(litellm.AuthenticationError):
            await log.acompletion(
                model="openai/x",
                api_base=f"{server.base_url}/v1",
                api_key="k",
                messages=[{"role": "user", "content": "Hello."}],
                metadata={"session_id": uuid4().hex},
            )
        assert len(server.requests) == 1


def _unauthorised() -> Any:
    return Fail(
        401, '{"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}}'
    )


async def test_a_provider_that_refuses_everything_ends_after_four_attempts() -> None:
    with (
        Provider(window=10) as provider,
        registered(context_window=None) as log,
        pytest.raises(litellm.ContextWindowExceededError),
    ):
        await _overflow(provider, log.acompletion, **agents.openai(provider))
    assert 1 <= len(provider.requests) <= 4


# --- what is left alone --------------------------------------------------------------------------------


async def test_a_request_without_a_session_id_is_left_alone_and_said_once() -> None:
    logger._said.clear()
    with Provider() as provider, registered():
        for _ in range(2):
            messages = [each for number in range(8) for each in filler(number)]
            messages.append({"role": "user", "content": provider.ask(0)})
            await litellm.acompletion(messages=messages, **agents.openai(provider))
            assert provider.requests[-1].body["messages"] == messages
    # It is said once. LiteLLM's threads change the process's filters for warnings, so a warning itself
    # cannot be caught here without luck.
    (said,) = logger._said
    assert "has no session id" in said


async def test_messages_that_the_hook_cannot_see_are_left_alone_and_said_once() -> None:
    logger._said.clear()
    with Provider() as provider, registered():
        messages = [{"role": "user", "content": provider.ask(0)}]
        given = agents.openai(provider)
        model = given.pop("model")
        await litellm.acompletion(model, messages, metadata={"session_id": "positional"}, **given)
        assert provider.requests[-1].body["messages"] == messages
    (said,) = logger._said
    assert "`messages=…`" in said


async def test_an_id_that_the_proxy_made_up_is_none() -> None:
    with Provider() as provider, registered() as log:
        session = uuid4().hex
        messages = [{"role": "user", "content": provider.ask(0)}]
        metadata = {"session_id": session, "litellm_session_id_generated": True}
        await litellm.acompletion(messages=messages, metadata=metadata, **agents.openai(provider))
        assert log.session(session).state().message_count == 0


async def test_embeddings_are_left_alone() -> None:
    session = uuid4().hex
    with registered() as log:
        given = {"model": "openai/x", "api_key": "k", "metadata": {"session_id": session}}
        messages = [{"role": "user", "content": "Not a chat."}]
        await litellm.aembedding(input=["Hello."], mock_response=[[0.5]], messages=messages, **given)
        assert log.session(session).state().message_count == 0


async def test_short_conversations_are_sent_as_they_are() -> None:
    with Provider() as provider, registered():
        messages = [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": [{"type": "text", "text": provider.ask(0)}], "name": "Ada"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "Go on."},
        ]
        given = copy.deepcopy(messages)
        await litellm.acompletion(
            messages=messages, metadata={"session_id": uuid4().hex}, **agents.openai(provider)
        )
    assert provider.requests[-1].body["messages"] == given == messages


async def test_keys_of_a_proxy_do_not_share_sessions() -> None:
    with Provider() as provider, registered(persist=False) as log:
        for key in ("a" * 64, "b" * 64):
            metadata = {"session_id": "same", "user_api_key_hash": key}
            messages = [{"role": "user", "content": f"I am {key[0]}. {provider.ask(0)}"}]
            await litellm.acompletion(messages=messages, metadata=metadata, **agents.openai(provider))
            assert log.session("same").state().message_count == 0
            assert log.session(name_of("same", key).removeprefix(PREFIX)).state().message_count == 1


# --- usage ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [agents.openai, agents.anthropic])
async def test_what_the_provider_billed_is_in_the_session(
    model: Callable[[Provider], dict[str, Any]], stream: bool
) -> None:
    with Provider() as provider, registered() as log:
        extra = {"stream_options": {"include_usage": True}} if stream else {}
        agent = Agent(litellm.acompletion, **model(provider), stream=stream, **extra)
        for at in range(2):
            await agent.run(provider.ask(at))
        usage = log.session(agent.session_id).state().token_usage
    # The last answer enters the session with the next request.
    billed = sum(seen.tokens for seen in provider.turns[:-1])
    assert usage.prompt_tokens == pytest.approx(billed, abs=2)


# --- failures ------------------------------------------------------------------------------------------


async def test_killing_the_daemon_between_any_two_steps_loses_nothing() -> None:
    with Provider() as provider, registered():
        agent = Agent(litellm.acompletion, **agents.openai(provider))
        with warnings.catch_warnings():
            warnings.simplefilter("error", CompactdWarning)
            for request in provider.asks():
                os.kill(engine_of().demand(lambda client: client.pid), signal.SIGKILL)
                await agent.run(request)
    assert broken(provider) == []
    assert provider.totals.tasks == 5


async def test_a_request_without_a_daemon_is_sent_as_it_is_with_one_warning() -> None:
    command = ("/nonexistent/compactd",)
    with Provider(window=None) as provider, registered(command=command):
        agent = Agent(litellm.acompletion, **agents.openai(provider))
        for at in range(2):
            await agent.run(provider.ask(at))
    assert len(provider.requests[-1].body["messages"]) == len(agent.messages) - 1
    assert engine_of(command)._warned == {""}  # the one kind of a daemon that fails


async def test_what_the_adapter_cannot_read_is_sent_with_a_warning() -> None:
    class Odd(str):
        """An id as a later version might have it."""

        def __str__(self) -> str:
            raise LookupError("odd")

    command = ("/usr/bin/env", *own_command())
    with Provider() as provider, registered(command=command):
        messages = [{"role": "user", "content": provider.ask(0)}]
        await litellm.acompletion(
            messages=messages, metadata={"session_id": Odd("x")}, **agents.openai(provider)
        )
        assert provider.requests[-1].body["messages"] == messages
    assert engine_of(command)._warned == {"LookupError"}


# --- how it is used ------------------------------------------------------------------------------------


def test_two_event_loops_one_after_the_other_continue_a_conversation() -> None:
    with Provider() as provider, registered():
        agent = Agent(litellm.acompletion, **agents.openai(provider))
        for request in provider.asks():
            asyncio.run(agent.run(request))
    assert broken(provider) == []
    assert provider.totals.tasks == 5


def test_event_loops_at_the_same_time_have_conversations_of_their_own() -> None:
    with Provider() as one, Provider() as other, registered() as log:

        def whole(provider: Provider) -> str:
            agent = Agent(litellm.acompletion, **agents.openai(provider))
            for request in provider.asks():
                asyncio.run(agent.run(request))
            return agent.session_id

        with ThreadPoolExecutor() as pool:
            sessions = list(pool.map(whole, (one, other)))
        counts = [log.session(session).state().compaction.count for session in sessions]
    assert broken(one) == broken(other) == []
    assert min(counts) >= 1


async def test_requests_of_one_loop_at_the_same_time_do_not_mix() -> None:
    with Provider() as one, Provider() as other, registered():

        async def whole(provider: Provider) -> None:
            agent = Agent(litellm.acompletion, **agents.openai(provider))
            for request in provider.asks():
                await agent.run(request)

        await asyncio.gather(whole(one), whole(other))
    assert broken(one) == broken(other) == []


async def test_a_logger_can_be_pickled_and_copied() -> None:
    made = CompactdLogger(context_window=WINDOW, persist=False)
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        with Provider() as provider, registered() as _:
            litellm.callbacks = [other]
            agent = Agent(litellm.acompletion, **agents.openai(provider))
            for request in provider.asks():
                await agent.run(request)
        assert broken(provider) == []
        assert other.session(agent.session_id).state().compaction.count >= 1


async def test_an_edited_history_is_followed() -> None:
    with Provider(window=None) as provider, registered(context_window=None) as log:
        agent = Agent(litellm.acompletion, **agents.openai(provider))
        await agent.run(provider.ask(0))
        agent.messages[1] = {"role": "user", "content": agent.messages[1]["content"] + " Please."}
        await agent.run(provider.ask(1))
        state = log.session(agent.session_id).state()
        assert texts(provider.requests[-1]).count(" Please.") == 1
        agent.messages = agent.messages[:4]
        agent.messages.append({"role": "user", "content": "Now something else."})
        await agent.answer()
        assert len(provider.requests[-1].body["messages"]) == 5
        assert log.session(agent.session_id).state().message_count <= state.message_count


def test_a_setting_that_does_not_exist_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="there is no setting 'treshold'"):
        CompactdLogger(compaction={"treshold": 1})


def test_a_forked_process_has_a_daemon_of_its_own() -> None:
    with Provider() as provider:
        script = f"""
import asyncio, os, litellm
from compactd.integrations.frameworks.litellm import CompactdLogger
litellm.callbacks = [CompactdLogger(persist=False)]
given = {agents.openai(provider)!r}
def ask(text):
    messages = [{{"role": "user", "content": text}}]
    asyncio.run(litellm.acompletion(messages=messages, metadata={{"session_id": "f"}}, **given))
ask("Hello.")
if (child := os.fork()) == 0:
    ask("Hello again.")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
ask("Still here.")
print(litellm.callbacks[0].session("f").state().message_count)
"""
        done = subprocess.run(
            [sys.executable, "-W", "error::UserWarning", "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "1"


async def test_the_recall_tool_answers_wrong_arguments_with_what_is_wrong() -> None:
    with Provider() as provider, registered(persist=False) as log:
        agent = Agent(litellm.acompletion, **agents.openai(provider))
        await agent.run(provider.ask(0))
        recall = log.recall_tool(agent.session_id, name="look_back")
        assert recall.definition["function"]["name"] == "look_back"
        assert "(tool)" in recall('{"query": "seal code"}')
        assert "(tool)" in recall({"query": "seal code"})
        assert "There is no entry e999" in recall('{"entry_ids": ["e999"]}')
        for wrong in ("{", '{"query": 7}', '{"start": "x"}', "[]"):
            assert recall(wrong).startswith("The arguments cannot be read")
        assert recall("") == "Give `query` or `entry_ids`."


async def test_a_router_with_pre_call_checks_refuses_before_the_hook() -> None:
    """The page says so. If this fails, the page can say better."""
    with Provider() as provider, registered():
        model = {"model_name": "small", "litellm_params": agents.openai(provider)}
        checked = {**model, "model_info": {"max_input_tokens": WINDOW}}
        router = litellm.Router(model_list=[checked], enable_pre_call_checks=True)
        with pytest.raises(litellm.ContextWindowExceededError, match="_pre_call_checks"):
            await _overflow(provider, router.acompletion, model="small")
        assert provider.requests == []


async def test_the_last_answer_is_cut_to_what_fits() -> None:
    with Provider(window=None) as provider, registered():
        messages = [each for number in range(6) for each in filler(number, 800)]
        messages.append({"role": "user", "content": provider.ask(0)})
        metadata = {"session_id": uuid4().hex}
        await litellm.acompletion(
            messages=messages, metadata=metadata, max_tokens=50_000, **agents.openai(provider)
        )
    assert provider.requests[-1].body["max_tokens"] < WINDOW

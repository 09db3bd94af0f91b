"""What goes wrong around an agent: dead daemons, refused requests, edited sessions, copies, threads."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.context_cache_config import ContextCacheConfig
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from google.genai.errors import ClientError

from compactd.integrations.frameworks.engine import CompactdWarning, close_engines, engine_of
from compactd.integrations.frameworks.google_adk import CompactdPlugin, CompactdSummarizer, requests
from compactd.integrations.frameworks.google_adk.requests import ModelCall
from compactd.integrations.frameworks.history import Setup
from tests.frameworks.google_adk.agents import (
    Scripted,
    ask,
    call,
    have,
    new_session,
    reads,
    results,
    runner_of,
    said,
    talked,
    text,
)
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.talk import talk

SMALL = 8_000
TURNS = 16


@pytest.fixture
def own_daemon() -> Iterator[None]:
    """A daemon that dies often is not started again for a while."""
    yield
    close_engines()


def kill_the_daemon() -> None:
    with suppress(Exception):
        os.kill(engine_of().demand(lambda client: client.pid), signal.SIGKILL)


def too_large(tokens: int = 9_000) -> ClientError:
    words = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed (8000)."
    return ClientError(400, {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}})


# --- the daemon -----------------------------------------------------------------------------------------


class Killer(BasePlugin):
    """Kills the daemon at one of the steps of an agent, counted from 1."""

    def __init__(self, at: int) -> None:
        super().__init__("killer")
        self.at = at
        self.count = 0

    async def _step(self, **_: Any) -> None:
        self.count += 1
        if self.count == self.at:
            kill_the_daemon()

    before_model_callback = _step  # type: ignore[assignment]
    after_model_callback = _step  # type: ignore[assignment]
    after_tool_callback = _step  # type: ignore[assignment]
    after_run_callback = _step  # type: ignore[assignment]


@pytest.mark.usefixtures("own_daemon")
def test_a_daemon_that_is_killed_at_any_step_costs_nothing() -> None:
    short = talk(lots=1, parts=3)
    at, steps = 1, 2
    while at <= steps:
        killer = Killer(at)
        plugin = CompactdPlugin(context_window=3_000, persist=at % 4 == 1)
        with Provider(short, window=3_000) as provider, warnings.catch_warnings():
            warnings.simplefilter("error", CompactdWarning)
            session = have(provider, killer, plugin)

            assert (at, broken(provider)) == (at, [])
            assert (at, provider.totals.turns) == (at, 3)
        value = short.facts[short.uses[0].fact]
        assert value in plugin.session(session).recall(value, ())
        close_engines()
        steps = killer.count
        at += 2
    assert steps >= 12


@pytest.mark.parametrize("command", [("/no/such/program",), (sys.executable, "-c", "print('no daemon')")])
def test_without_a_daemon_the_agent_goes_on_and_warns_once(command: tuple[str, ...]) -> None:
    model = reads(4)
    plugin = CompactdPlugin(context_window=SMALL, command=command, reduce="default")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = talked(runner_of(model, plugin), "Read the files.", "Again.")
    assert said([session.events[-1].content]) == "done"
    assert [len(seen) for seen in model.seen] == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert sum(each.category is CompactdWarning for each in caught) == 1


@pytest.mark.usefixtures("own_daemon")
def test_a_look_at_a_session_in_memory_puts_nothing_on_disk() -> None:
    plugin = CompactdPlugin(context_window=SMALL)
    session = talked(runner_of(reads(1), plugin), "Read the files.")
    kill_the_daemon()
    assert plugin.session(session).state().message_count == 0
    engine_of().close()
    stored = engine_of().demand(lambda client: client.session_list()).sessions
    assert not [each for each in stored if session.id in each.session_id]


def test_without_a_daemon_nothing_is_summarised() -> None:
    event = Event(author="user", content=types.UserContent("Hello."))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summarizer = CompactdSummarizer(command=["/no/such/program"])
        assert asyncio.run(summarizer.maybe_summarize_events(events=[event])) is None


def test_a_request_that_cannot_be_read_is_named_with_the_versions_that_can() -> None:
    class Later(BasePlugin):
        async def before_model_callback(
            self, *, callback_context: CallbackContext, llm_request: LlmRequest
        ) -> None:
            llm_request.tools_dict = None  # type: ignore[assignment]  # as a later version might have it

    model = Scripted(answer=lambda *_: [text("done")])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = talked(runner_of(model, Later("later"), CompactdPlugin(context_window=SMALL)), "Hello.")
    assert said([session.events[-1].content]) == "done"
    (warning,) = [str(each.message) for each in caught if each.category is CompactdWarning]
    assert "TypeError" in warning
    assert "tested with google-adk 2.13" in warning


# --- refused requests -----------------------------------------------------------------------------------


def test_a_refused_request_is_sent_again_smaller_and_counted() -> None:
    model = reads(TURNS, lambda number: too_large() if number == 10 else None)
    plugin = CompactdPlugin(context_window=100_000)
    session = talked(runner_of(model, plugin), "Read the files.")
    assert len(said(model.seen[10])) < len(said(model.seen[9]))
    assert model.seen[10][-1] == model.seen[9][-1]
    assert len(results([event.content for event in session.events])) == TURNS - 1
    assert plugin.session(session).state().compaction.count >= 1


def test_a_streamed_answer_after_a_refusal_comes_once() -> None:
    model = reads(TURNS, lambda number: too_large() if number == 10 else None)
    runner = runner_of(model, CompactdPlugin(context_window=100_000))

    async def run() -> list[Event]:
        return await ask(runner, await new_session(runner), "Read the files.", streams=True)

    events = asyncio.run(run())
    read = [each.args for event in events if not event.partial for each in event.get_function_calls()]
    # The script counts attempts: the tenth was refused.
    assert read == [{"number": number} for number in range(1, TURNS + 1) if number != 10]
    assert said([events[-1].content]) == "done"


def test_a_provider_that_refuses_everything_ends_after_four_attempts() -> None:
    model = reads(0, lambda _: too_large())
    with pytest.raises(ClientError, match="exceeds the maximum"):
        talked(runner_of(model, CompactdPlugin(context_window=SMALL)), "Read the files.")
    assert 1 <= len(model.seen) <= 4


def test_another_failure_is_raised_at_once() -> None:
    model = reads(3, lambda number: ValueError("no") if number == 2 else None)
    with pytest.raises(ValueError, match="no"):
        talked(runner_of(model, CompactdPlugin(context_window=SMALL)), "Read the files.")
    assert len(model.seen) == 2


def test_attempts_count_as_calls_of_the_model() -> None:
    from google.adk.agents.invocation_context import LlmCallsLimitExceededError
    from google.adk.agents.run_config import RunConfig

    model = reads(TURNS, lambda number: too_large() if number == 10 else None)
    runner = runner_of(model, CompactdPlugin(context_window=100_000))

    async def run() -> None:
        session = await new_session(runner)
        words = types.UserContent("Read the files.")
        limit = RunConfig(max_llm_calls=10)
        async for _ in runner.run_async(
            user_id=session.user_id, session_id=session.id, new_message=words, run_config=limit
        ):
            pass

    with pytest.raises((LlmCallsLimitExceededError, ClientError)):
        asyncio.run(run())
    assert len(model.seen) == 10


def redacted(content: types.Content) -> types.Content:
    return types.Content(role=content.role, parts=[types.Part(text="(redacted)")])


@pytest.mark.parametrize("how", ["replaced", "removed", "in front"])
def test_what_a_later_callback_took_out_is_not_sent_after_a_refusal(how: str) -> None:
    def edit(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        contents = llm_request.contents
        if how == "replaced":
            llm_request.contents = [redacted(contents[0]), *contents[1:]]
        elif how == "removed":
            llm_request.contents = contents[1:]
        else:
            llm_request.contents = [types.UserContent("More."), *contents]

    model = reads(TURNS, lambda number: too_large() if number == 10 else None)
    runner = runner_of(model, CompactdPlugin(context_window=100_000), before_model_callback=edit)
    with pytest.raises(ClientError):
        talked(runner, "The secret is 4711. Read the files.")
    assert len(model.seen) == 10
    assert how == "in front" or "4711" not in said([content for seen in model.seen for content in seen])


def test_what_a_later_callback_added_at_the_end_is_sent_again() -> None:
    def edit(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        llm_request.contents.append(types.UserContent("Be brief."))

    model = reads(TURNS, lambda number: too_large() if number == 10 else None)
    runner = runner_of(model, CompactdPlugin(context_window=100_000), before_model_callback=edit)
    talked(runner, "Read the files.")
    assert [said(seen[-1:]) for seen in model.seen] == ["Be brief."] * (TURNS + 1)


# --- sessions that others edit ---------------------------------------------------------------------------


def test_a_rewound_session_is_followed() -> None:
    model = reads(3)
    plugin = CompactdPlugin(context_window=SMALL)
    runner = runner_of(model, plugin)

    async def run() -> None:
        session = await new_session(runner)
        await ask(runner, session, "Read the files.")
        second = await ask(runner, session, "Read them again.")
        await runner.rewind_async(
            user_id=session.user_id,
            session_id=session.id,
            rewind_before_invocation_id=second[0].invocation_id,
        )
        await ask(runner, session, "And now?")

    asyncio.run(run())
    assert "Read them again." in said(model.seen[4])
    assert "Read them again." not in said(model.seen[8])
    assert "Read the files." in said(model.seen[8])
    assert said(model.seen[8][-1:]) == "And now?"


def test_a_session_with_removed_events_is_followed() -> None:
    model = reads(2)
    plugin = CompactdPlugin(context_window=SMALL)
    runner = runner_of(model, plugin)

    async def run() -> None:
        session = await new_session(runner)
        await ask(runner, session, "Read the files.")
        assert isinstance(runner.session_service, InMemorySessionService)
        events = runner.session_service.sessions[session.app_name][session.user_id][session.id].events
        del events[1:]
        await ask(runner, session, "And now?")

    asyncio.run(run())
    assert said(model.seen[3]) == "Read the files.\nAnd now?"


# --- processes, threads, loops, copies -------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_and_pickles_work_like_the_original(duplicate: Callable[[Any], Any]) -> None:
    model = reads(TURNS)
    plugin = duplicate(CompactdPlugin(context_window=SMALL))
    talked(runner_of(model, plugin), "Read the files.")
    assert len(model.seen[-1]) < 2 * TURNS
    assert plugin.name == "compactd"
    summarizer = duplicate(CompactdSummarizer(target_tokens=500))
    events = [Event(author="reader", content=content) for content in model.seen[1]]
    made = asyncio.run(summarizer.maybe_summarize_events(events=events))
    assert "Read the files." in made.actions.compaction.compacted_content.parts[0].text
    # A summary of ADK's is summarised with the others.
    again = asyncio.run(summarizer.maybe_summarize_events(events=[made, *events[1:]]))
    assert "Read the files." in again.actions.compaction.compacted_content.parts[0].text


def test_two_event_loops_share_a_plugin_and_a_session() -> None:
    model = reads(TURNS)
    plugin = CompactdPlugin(context_window=SMALL)
    runner = runner_of(model, plugin)
    session = asyncio.run(new_session(runner))
    for words in ("Read the files.", "Again."):
        assert said([asyncio.run(ask(runner, session, words))[-1].content]) == "done"
    assert max(map(len, model.seen)) < 2 * TURNS


def test_thirty_threads_share_one_plugin() -> None:
    plugin = CompactdPlugin(context_window=SMALL)

    def run(_: int) -> str:
        session = talked(runner_of(reads(3), plugin), "Read the files.")
        return said([session.events[-1].content])

    with ThreadPoolExecutor(30) as pool:
        assert set(pool.map(run, range(30))) == {"done"}


def test_runs_side_by_side_in_one_loop_each_get_their_own_contents() -> None:
    plugin = CompactdPlugin(context_window=SMALL)
    models = [reads(8) for _ in range(6)]

    async def run(at: int) -> None:
        runner = runner_of(models[at], plugin)
        await ask(runner, await new_session(runner), f"Read the files, {at}.")

    async def all_of_them() -> None:
        await asyncio.gather(*map(run, range(len(models))))

    asyncio.run(all_of_them())
    for at, model in enumerate(models):
        assert len(model.seen) == 9
        assert all(f"Read the files, {at}." in said(seen) for seen in model.seen)


@pytest.mark.usefixtures("own_daemon")
def test_a_session_on_disk_goes_on_in_another_process(tmp_path: Any) -> None:
    """The daemon is another one, and the runner, the plugin and ADK's service are new."""
    words = ("Read the files.", "Go on.")
    models = [reads(TURNS) for _ in words]
    counts = []

    async def run(model: Scripted, said: str) -> None:
        plugin = CompactdPlugin(context_window=SMALL)
        runner = runner_of(model, plugin)
        runner.session_service = SqliteSessionService(str(tmp_path / "adk.db"))
        ids = {"app_name": runner.app_name, "user_id": "someone", "session_id": "one"}
        session = await runner.session_service.get_session(**ids)
        session = session or await runner.session_service.create_session(**ids)
        await ask(runner, session, said)
        counts.append(plugin.session(session).state().compaction.count)

    for model, said_now in zip(models, words, strict=True):
        asyncio.run(run(model, said_now))
        close_engines()
    assert counts[0] >= 1
    # The first request of the second process has the summary of the first process.
    assert said(models[1].seen[0]).count("[Conversation summary") == 1
    assert counts[1] > counts[0]


def test_a_cancelled_run_leaves_nothing_behind() -> None:
    async def forever(number: int) -> str:
        """Reads a file for ever."""
        await asyncio.sleep(60)
        return ""

    model = Scripted(answer=lambda *_: [call("forever", number=1)])
    runner = runner_of(model, CompactdPlugin(context_window=SMALL), tools=[forever])

    async def run() -> None:
        session = await new_session(runner)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ask(runner, session, "Read."), 0.02)

    known = len(requests._calls)
    for _ in range(3):
        asyncio.run(run())
    gc.collect()
    assert len(requests._calls) <= known


def test_requests_that_are_never_answered_are_forgotten_by_and_by() -> None:
    """Those that another plugin answers, so that no other callback is called."""
    contexts = [SimpleNamespace(actions=EventActions()) for _ in range(requests.MAX_CALLS + 9)]
    mirror = CompactdPlugin().session(Session(app_name="a", user_id="b", id="c"))
    for context in contexts:
        call = ModelCall(mirror, [], [], [], Setup(), None)
        requests.remember(context, call)  # type: ignore[arg-type]  # all that is asked of it
    assert len(requests._calls) == requests.MAX_CALLS
    assert requests.take(contexts[0]) is None  # type: ignore[arg-type]
    assert requests.take(contexts[-1]) is call  # type: ignore[arg-type]


def test_with_googles_explicit_cache_a_refused_request_is_not_sent_again_but_the_next_one_fits() -> None:
    """The model's class moved a part of the request into the cache, so compactd does not know the rest."""

    def answer(number: int, request: LlmRequest) -> list[types.Part] | Exception:
        if number == 10:
            request.contents = request.contents[4:]
            request.config.system_instruction = None
            return too_large()
        return [text("done")] if number > 10 else [call("read", number=number)]

    model = Scripted(answer=answer)
    runner = runner_of(model, CompactdPlugin(context_window=100_000))
    runner.context_cache_config = ContextCacheConfig()

    async def run() -> None:
        session = await new_session(runner)
        with pytest.raises(ClientError):
            await ask(runner, session, "Read the files.")
        await ask(runner, session, "Go on.")

    asyncio.run(run())
    assert len(model.seen) == 11
    assert "[Conversation summary" in said(model.seen[10])

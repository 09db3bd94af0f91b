"""What else an agent gets: look-ups, shorter outputs, sessions of its own for each agent, instructions."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import START, Workflow
from google.genai import types
from pydantic import BaseModel

from compactd.integrations.frameworks.engine import engine_of
from compactd.integrations.frameworks.google_adk import CompactdPlugin
from compactd.integrations.frameworks.google_adk.sessions import session_name
from tests.frameworks.google_adk.agents import (
    APP,
    Scripted,
    ask,
    call,
    calls,
    new_session,
    read,
    reads,
    results,
    runner_of,
    said,
    talked,
    text,
)

SMALL = 8_000
TURNS = 16


def stored_sessions() -> list[str]:
    sessions = engine_of().demand(lambda client: client.session_list()).sessions
    return [each.session_id for each in sessions]


def history(name: str) -> str:
    """Return all that a session of the daemon has, as text."""
    found = engine_of().demand(lambda client: client.session_history(session_id=name))
    return msgspec.json.encode(found).decode()


# --- look-ups -------------------------------------------------------------------------------------------


def test_the_tool_finds_what_was_compacted() -> None:
    def answer(number: int, _: LlmRequest) -> list[types.Part]:
        if number == TURNS:
            return [call("recall", query="2:33 the value")]
        return [text("done")] if number > TURNS else [call("read", number=number)]

    model = Scripted(answer=answer)
    talked(runner_of(model, CompactdPlugin(context_window=SMALL)), "Read the files.")
    assert "\\n2:33 the" not in said(model.seen[TURNS - 1])
    found = results(model.seen[TURNS][-1:])[0]
    assert f"(tool) 2:33 the value is {33 * 7919 % 1000}" in str(found.response)


def test_odd_arguments_of_the_tool_do_no_harm() -> None:
    odd: list[dict[str, Any]] = [
        {},
        {"query": None, "entry_ids": "e1", "start": None},
        {"query": 7, "entry_ids": [1], "start": 2.0},
    ]
    answers = [[call("recall", **each)] for each in odd]
    model = Scripted(
        answer=lambda number, _: answers[number - 1] if number <= len(answers) else [text("done")]
    )
    session = talked(runner_of(model, CompactdPlugin(context_window=SMALL)), "Hello there.")
    outputs = [str(each.response) for each in results(model.seen[-1])]
    assert "Give `query` or `entry_ids`" in outputs[0]
    assert "Hello there." in outputs[1]
    assert "There is no entry 1" in outputs[2]
    assert said([session.events[-1].content]) == "done"


class Verdict(BaseModel):
    good: bool


def tools_in(request: LlmRequest) -> list[str]:
    declared = [each for tool in request.config.tools or [] for each in tool.function_declarations or [tool]]
    return [getattr(each, "name", None) or type(each).__name__ for each in declared]


@pytest.mark.parametrize(
    ("plugin", "options", "tools"),
    [
        ({}, {}, ["read", "recall"]),
        ({}, {"tools": []}, ["recall"]),
        ({"recall": False}, {}, ["read"]),
        ({}, {"tools": [], "output_schema": Verdict}, []),
    ],
)
def test_the_model_gets_the_tool_where_it_takes_functions(
    plugin: dict[str, Any], options: dict[str, Any], tools: list[str]
) -> None:
    offered: list[list[str]] = []

    def answer(_: int, request: LlmRequest) -> list[types.Part]:
        offered.append(tools_in(request))
        return [text('{"good": true}')]

    talked(runner_of(Scripted(answer=answer), CompactdPlugin(**plugin), **options), "Hello.")
    assert offered == [tools]


def test_a_tool_of_the_same_name_stays_the_agents() -> None:
    def recall(query: str) -> str:
        """The agent's own."""
        return "mine"

    def answer(number: int, _: LlmRequest) -> list[types.Part]:
        return [call("recall", query="x")] if number == 1 else [text("done")]

    model = Scripted(answer=answer)
    talked(runner_of(model, CompactdPlugin(), tools=[recall]), "Hello.")
    assert results(model.seen[1])[0].response == {"result": "mine"}


# --- shorter outputs ------------------------------------------------------------------------------------


def passed() -> str:
    """Runs the tests."""
    return "\n".join(f"tests/test_{number}.py::test_it PASSED" for number in range(400))


def passed_by_mcp() -> dict[str, Any]:
    """Runs the tests."""
    return {"content": [{"type": "text", "text": passed()}], "isError": False}


def structured() -> dict[str, Any]:
    """Runs the tests."""
    return {"report": passed(), "count": 400}


@pytest.mark.parametrize("tool", [passed, passed_by_mcp])
def test_outputs_are_shortened_where_it_is_wanted(tool: Any) -> None:
    def answer(number: int, _: LlmRequest) -> list[types.Part]:
        return [call(tool.__name__)] if number == 1 else [text("done")]

    sizes = {}
    for level in ("off", "observe", "default"):
        model = Scripted(answer=answer)
        plugin = CompactdPlugin(context_window=100_000, reduce=level)  # type: ignore[arg-type]
        talked(runner_of(model, plugin, tools=[tool]), "Run the tests.")
        (response,) = results(model.seen[1])
        sizes[level] = len(str(response.response))
        assert (response.response or {}).keys() == ({"result"} if tool is passed else {"content", "isError"})
    assert sizes["off"] == sizes["observe"] > 2 * sizes["default"]


def test_outputs_with_several_values_stay_as_they_are() -> None:
    def answer(number: int, _: LlmRequest) -> list[types.Part]:
        return [call("structured")] if number == 1 else [text("done")]

    model = Scripted(answer=answer)
    plugin = CompactdPlugin(context_window=100_000, reduce="strong")
    talked(runner_of(model, plugin, tools=[structured]), "Run the tests.")
    assert results(model.seen[1])[0].response == structured()


def test_levels_and_settings_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="reduce must be one of"):
        CompactdPlugin(reduce="much")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no setting 'keep_recent'"):
        CompactdPlugin(compaction={"keep_recent": 1})


# --- sessions -------------------------------------------------------------------------------------------


def test_the_names_of_sessions_are_never_ambiguous() -> None:
    names = {
        session_name(Session(app_name=app, user_id=user, id=id_))
        for app, user, id_ in [("a", "b/c", "d"), ("a/b", "c", "d"), ("a", "b", "c/d"), ("a", "b%2Fc", "d")]
    }
    assert len(names) == 4
    assert session_name(Session(app_name="a", user_id="b@c.d", id="e f")) == "google-adk:a/b@c.d/e f"


def followed(session: str) -> set[str]:
    """Return what distinguishes the sessions of the daemon that belong to a session of ADK's."""
    names = [name for name in engine_of()._mirrors if name.startswith(session)]
    return {re.sub(r"adk-[-0-9a-f]+", "ID", name.removeprefix(session)) for name in names}


def app_of(root: Any) -> Runner:
    return InMemoryRunner(app=App(name=APP, root_agent=root, plugins=[CompactdPlugin(context_window=SMALL)]))


def part(name: str, **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=reads(3), tools=[read], description="Reads.", **options)


def delegating(tool: str, **arguments: Any) -> Scripted:
    turns = [[call(tool, **arguments)], [text("all done")]]
    return Scripted(answer=lambda number, _: turns[(number - 1) % 2])


def test_an_agent_that_takes_over_has_a_session_of_its_own() -> None:
    model = delegating("transfer_to_agent", agent_name="helper")
    root = LlmAgent(name="root", model=model, sub_agents=[part("helper")])
    name = session_name(talked(app_of(root), "Do it."))
    assert followed(name) == {"", "/helper"}
    assert "Do it." in history(name)
    assert stored_sessions().count(f"{name}/helper") == 1
    own = history(f"{name}/helper")
    assert "the value is" in own
    # What another agent did is no word of the user's.
    assert '"author":"subagent"' in own


def test_branches_side_by_side_have_sessions_of_their_own() -> None:
    with pytest.deprecated_call():
        both = ParallelAgent(name="both", sub_agents=[part("one"), part("two")])
    name = session_name(talked(app_of(both), "Do it."))
    assert followed(name) == {"/one/branch both.one", "/two/branch both.two"}


def test_nodes_of_a_workflow_have_sessions_of_their_own() -> None:
    first, second = part("first"), part("second")
    flow = Workflow(name="flow", edges=[(START, first), (first, second)])
    name = session_name(talked(app_of(flow), "Do it.", "Again."))
    assert followed(name) == {"/first", "/second"}
    assert "Do it." not in history(f"{name}/second")
    # The second run of a node begins with other words, so it is another conversation.
    open_now = engine_of().demand(lambda client: client.session_list()).sessions
    (again,) = [each.session_id for each in open_now if each.session_id.startswith(f"{name}/first")]
    assert again.startswith(f"{name}/first:")


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [("single_turn", "/helper/branch helper@ID"), ("task", "/helper/branch helper@ID/task ID")],
)
def test_a_delegated_task_has_a_session_of_its_own(mode: Any, suffix: str) -> None:
    finish = [[call("read", number=1)], [call("finish_task", result="read")], [text("done")]]
    helper = LlmAgent(
        name="helper",
        model=Scripted(answer=lambda number, _: finish[min(number, 3) - 1]),
        tools=[read],
        description="Reads.",
        mode=mode,
    )
    model = delegating("helper", request="Read the files.")
    root = LlmAgent(name="root", model=model, sub_agents=[helper])
    name = session_name(talked(app_of(root), "Do it."))
    assert followed(name) == {"", suffix}


def test_an_agent_that_is_a_tool_has_a_session_in_memory_that_ends_with_it() -> None:
    helper = LlmAgent(name="helper", model=reads(TURNS), tools=[read], description="Helps.")
    turns = [[call("helper", request="Read the files.")], [text("all done")]]
    model = Scripted(answer=lambda number, _: turns[number - 1])
    session = talked(runner_of(model, CompactdPlugin(context_window=SMALL), tools=[AgentTool(helper)]), "Go.")
    assert said([session.events[-1].content]) == "all done"
    assert isinstance(helper.model, Scripted)
    assert len(helper.model.seen[-1]) < 2 * TURNS
    assert not any(session.id in name for name in stored_sessions_on_disk())


def stored_sessions_on_disk() -> list[str]:
    engine_of().close()
    return stored_sessions()


@pytest.mark.parametrize(
    ("persist", "in_memory"), [(None, True), (None, False), (True, True), (False, False)]
)
def test_a_session_is_kept_as_long_as_adks_own(tmp_path: Any, persist: bool | None, in_memory: bool) -> None:
    plugin = CompactdPlugin(context_window=SMALL, persist=persist)
    runner = runner_of(reads(2), plugin)
    if not in_memory:
        runner.session_service = SqliteSessionService(str(tmp_path / "adk.db"))

    async def run() -> Session:
        session = await new_session(runner)
        await ask(runner, session, "Read the files.")
        # A person's look does not change where the session is kept.
        assert plugin.session(session).state().message_count == 6
        return session

    session = asyncio.run(run())
    is_kept = (not in_memory) if persist is None else persist
    assert (session_name(session) in stored_sessions_on_disk()) == is_kept


# --- what is no part of the conversation ------------------------------------------------------------------


def test_the_input_context_of_a_run_is_sent_but_not_remembered() -> None:
    model = reads(TURNS)
    plugin = CompactdPlugin(context_window=SMALL)
    runner = runner_of(model, plugin)

    async def run() -> Session:
        session = await new_session(runner)
        for number in (1, 2):
            context = [types.UserContent(f"The weather is of kind {number}.")]
            async for _ in runner.run_async(
                user_id=session.user_id,
                session_id=session.id,
                new_message=types.UserContent("Read the files."),
                run_config=RunConfig(model_input_context=context),
            ):
                pass
        return session

    session = asyncio.run(run())
    for at, seen in enumerate(model.seen):
        assert said(seen).count(f"The weather is of kind {1 + at // (TURNS + 1)}.") == 1
        assert said(seen).count("The weather") == 1
    everything = history(session_name(session))
    assert "The weather" not in everything
    assert everything.count('"text":"Read the files."') == 2


def test_what_a_tool_puts_into_one_request_is_sent_but_not_remembered() -> None:
    class Attaching(BasePlugin):
        """Adds a file after a tool's response, as ADK's `load_artifacts` does."""

        async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> None:
            if results(llm_request.contents[-1:]):
                llm_request.contents.append(types.UserContent("Artifact a.txt is: 4711"))

    model = reads(TURNS)
    runner = runner_of(model, Attaching("attaching"), CompactdPlugin(context_window=SMALL))
    session = talked(runner, "Read the files.")
    assert [said(seen).count("4711") for seen in model.seen] == [0, *[1] * TURNS]
    assert all("4711" in said(seen[-1:]) for seen in model.seen[1:])
    everything = history(session_name(session))
    assert "Read the files." in everything
    assert "4711" not in everything


def test_a_static_instruction_with_a_picture_stays_in_front() -> None:
    picture = types.Part.from_bytes(data=b"\x89PNG\r\n", mime_type="image/png")
    static = types.Content(role="user", parts=[types.Part(text="Look at it."), picture])
    model = reads(TURNS)
    runner = runner_of(
        model, CompactdPlugin(context_window=SMALL), static_instruction=static, instruction="Be brief."
    )
    talked(runner, "Read the files.")
    assert len(model.seen[-1]) < 2 * TURNS
    for seen in model.seen:
        assert "inline_data_0" in said(seen[:1])
        assert said(seen).count("Be brief.") == 1


def test_a_lower_limit_for_the_answer_is_set_if_the_window_has_no_room() -> None:
    limits = []

    def answer(number: int, request: LlmRequest) -> list[types.Part]:
        limits.append(request.config.max_output_tokens)
        return [text("done")]

    config = types.GenerateContentConfig(max_output_tokens=50_000)
    runner = runner_of(
        Scripted(answer=answer), CompactdPlugin(context_window=SMALL), generate_content_config=config
    )
    talked(runner, "Hello.")
    assert 0 < limits[0] < SMALL


def test_calls_with_ids_of_their_provider_and_parallel_calls_keep_their_pairs() -> None:
    def answer(number: int, _: LlmRequest) -> list[types.Part]:
        if number > TURNS:
            return [text("done")]
        parts = [call("read", number=number * 10 + at) for at in range(3)]
        for at, part in enumerate(parts):
            assert part.function_call is not None
            part.function_call.id = None if at == 1 else f"call_{number}_{at}"
            part.thought_signature = b"signed" if at == 0 else None
        return parts

    model = Scripted(answer=answer)
    talked(runner_of(model, CompactdPlugin(context_window=12_000)), "Read the files.")
    assert len(model.seen[-1]) < 2 * TURNS
    for seen in model.seen:
        made, answered = calls(seen), results(seen)
        assert [each.id for each in made] == [each.id for each in answered]
        first = [content.parts[0] for content in seen if content.role == "model" and content.parts]
        assert all(part.thought_signature == b"signed" for part in first)


def test_an_agent_without_history_has_only_its_turn() -> None:
    model = reads(2)
    runner = runner_of(model, CompactdPlugin(context_window=SMALL), include_contents="none")
    talked(runner, "Read the files.", "Again.")
    assert [len(seen) for seen in model.seen] == [1, 3, 5, 1, 3, 5]
    assert said(model.seen[3]) == "Again."


def test_requests_whose_conversation_google_keeps_are_left_alone() -> None:
    class Chained(BasePlugin):
        async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> None:
            llm_request.previous_interaction_id = "v1_abc"

    model = reads(2)
    session = talked(runner_of(model, Chained("chained"), CompactdPlugin(context_window=SMALL)), "Read.")
    assert [len(seen) for seen in model.seen] == [1, 3, 5]
    assert engine_of().known(session_name(session)) is None


def test_a_model_answers_to_its_name() -> None:
    """The daemon finds the window of Gemini's, Claude's and LiteLLM's models, whatever ADK calls them."""
    windows = {}
    for name in (
        "gemini-2.5-flash",
        "projects/p/locations/l/publishers/google/models/gemini-2.5-flash",
        "claude-sonnet-4-5",
        "openai/gpt-4.1",
    ):
        model = Scripted(model=name, answer=lambda *_: [text("done")])
        plugin = CompactdPlugin()
        state = plugin.session(talked(runner_of(model, plugin), "Hello.")).state()
        windows[name] = (state.model, state.token_usage.context_window)
    assert list(windows.values())[:2] == [("google/gemini-2.5-flash", 1_048_576)] * 2
    assert windows["claude-sonnet-4-5"][0] == "anthropic/claude-sonnet-4-5"
    assert windows["openai/gpt-4.1"] == ("openai/gpt-4.1", 1_047_576)


def test_two_plugins_of_one_name_are_refused_by_adk() -> None:
    model: BaseLlm = reads(1)
    with pytest.raises(ValueError, match="already registered"):
        runner_of(model, CompactdPlugin(), CompactdPlugin())
    assert isinstance(runner_of(model, CompactdPlugin(), CompactdPlugin(name=uuid4().hex)), Runner)

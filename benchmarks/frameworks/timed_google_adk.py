"""Times Google ADK between two calls of the model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any
from uuid import uuid4

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.runners import InMemoryRunner
from google.genai import types

from benchmarks.frameworks.clock import DONE, EARLIER, REQUEST, Clock, call_id, history
from benchmarks.frameworks.runners import BIG_WINDOW, SYSTEM, TOOLS, Timed
from benchmarks.frameworks.with_google_adk import INVOCATIONS, NAME, USER
from tests.frameworks.support.talk import ToolUse

AGENT = "inspector"


class Model(BaseLlm):
    """A model that answers at once."""

    clock: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Do the next step of the script."""
        step = self.clock.called()
        said = types.ModelContent(DONE) if step is None else types.ModelContent([_call(step)])
        self.clock.answered()
        yield LlmResponse(content=said)


def _call(step: ToolUse) -> types.Part:
    function = types.FunctionCall(id=call_id(step), name=step.name, args={"number": step.number})
    return types.Part(function_call=function)


def _events() -> list[Event]:
    events = [Event(author="user", content=types.UserContent(EARLIER))]
    for step in history():
        response = types.FunctionResponse(id=call_id(step), name=step.name, response={"result": step.output})
        returned = types.Content(role="user", parts=[types.Part(function_response=response)])
        events.append(Event(author=AGENT, content=types.ModelContent([_call(step)])))
        events.append(Event(author=AGENT, content=returned))
    return [*events, Event(author=AGENT, content=types.ModelContent(DONE))]


def _timed(plugins: Callable[[], list[BasePlugin]]) -> Callable[[Clock, bool], Any]:
    async def run(clock: Clock, is_long: bool) -> None:
        agent = LlmAgent(
            name=AGENT, model=Model(model="timed-1", clock=clock), instruction=SYSTEM, tools=list(TOOLS)
        )
        runner = InMemoryRunner(app=App(name="inspection", root_agent=agent, plugins=plugins()))
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id=USER, session_id=uuid4().hex
        )
        for event in _events() if is_long else ():
            await runner.session_service.append_event(session, event)
        clock.begin()
        words = types.UserContent(REQUEST)
        async for _ in runner.run_async(user_id=USER, session_id=session.id, new_message=words):
            pass

    return run


class Nothing(BasePlugin):
    """A plugin that changes nothing: what ADK itself takes for one."""

    async def before_model_callback(self, **_: Any) -> None:
        """Send the request as it is."""

    async def after_model_callback(self, **_: Any) -> None:
        """Take the answer as it is."""


def _compactd() -> list[BasePlugin]:
    from compactd.integrations.frameworks.google_adk import CompactdPlugin

    return [CompactdPlugin(context_window=BIG_WINDOW)]


TIMED = (
    Timed(NAME, "`LlmAgent`", "alone", _timed(list)),
    Timed(NAME, "a plugin that changes nothing", "own", _timed(lambda: [Nothing("nothing")])),
    Timed(
        NAME,
        "`ContextFilterPlugin`, the last invocation",
        "own",
        _timed(lambda: [ContextFilterPlugin(num_invocations_to_keep=INVOCATIONS)]),
    ),
    Timed(NAME, "`CompactdPlugin`", "compactd", _timed(_compactd)),
)

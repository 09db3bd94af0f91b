"""The plugin for an app or a runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import Session
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from compactd.client import Json
from compactd.integrations.frameworks import recall as recalling
from compactd.integrations.frameworks.engine import SessionOptions, checked_level
from compactd.integrations.frameworks.failures import MAX_ATTEMPTS
from compactd.integrations.frameworks.google_adk import early, requests
from compactd.integrations.frameworks.google_adk.recall_tool import RecallTool
from compactd.integrations.frameworks.google_adk.requests import ModelCall
from compactd.integrations.frameworks.google_adk.responses import is_error, text_in, with_text
from compactd.integrations.frameworks.google_adk.sessions import CLIENT, Sessions
from compactd.integrations.frameworks.google_adk.versions import TESTED
from compactd.integrations.frameworks.mirror import Mirror

T = TypeVar("T")

Reduce = Literal["off", "observe", "light", "default", "strong"]


class CompactdPlugin(BasePlugin):
    """Keeps the model requests of all agents of an app within the model's window, and loses nothing.

    Before each model request, its contents are given to compactd. When they near the window's limit, the
    oldest are replaced by a summary, in this request and the later ones. ADK's session is not changed: it
    keeps every event. If the provider rejects a request as too large, the conversation is compacted and the
    request is sent again.

    The object holds options only: it may be copied, pickled, and shared by apps, threads and event loops.
    """

    def __init__(
        self,
        *,
        context_window: int | None = None,
        compaction: Mapping[str, Json] | None = None,
        reduce: Reduce = "off",
        recall: bool = True,
        model: str | None = None,
        working_dir: str | None = None,
        persist: bool | None = None,
        command: Sequence[str] | None = None,
        name: str = "compactd",
    ) -> None:
        """Start the daemon in the background.

        Args:
            context_window: The model's window in tokens. Default: compactd looks it up by the model's name.
            compaction: Settings of compactions, e.g. `{"keep_recent_tokens": 20_000}` (docs/settings.md).
            reduce: Shorten tool outputs before they enter the conversation: `light`, `default` or `strong`.
                `observe` only counts what would be saved.
            recall: Give the model a tool `recall`, which finds what is no longer in its requests.
            model: `provider/id`. Default: as the request's model says.
            working_dir: The folder that the conversations are about. Default: the current folder.
            persist: Whether sessions are kept on disk. Default: unless ADK keeps its own in memory.
            command: The command that starts the daemon. Default: this Python's `compactd serve`.
            name: The plugin's name.
        """
        super().__init__(name)
        checked_level(reduce, get_args(Reduce))
        options = SessionOptions(
            CLIENT,
            TESTED,
            context_window=context_window,
            compaction=None if compaction is None else dict(compaction),
            working_dir=working_dir,
        )
        self._sessions = Sessions(options, persist, None if command is None else tuple(command))
        self._reduce = reduce
        self._has_recall = recall
        self._model = model
        self._sessions.engine.start_soon()

    def session(self, session: Session, agent: str | None = None) -> Mirror:
        """Return compactd's session of a session of ADK's: that of the root agent, or of `agent`. Its
        `state()` says how full the context is, what was billed and what was compacted; `undo()` takes back
        the last compaction; `recall(query, ())` searches it.
        """
        return self._sessions.of_session(session, agent)

    # --- model requests ---------------------------------------------------------------------------------

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Replace the request's contents by those that compactd chose."""
        call = self._sessions.engine.guard(partial(self._begun, callback_context, llm_request), TESTED)
        if call is not None:
            requests.remember(callback_context, call)
            await self._choose(call, llm_request)
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Give compactd the answer that ends a run."""
        if llm_response.partial:
            return None
        call = requests.take(callback_context)
        if call is None:
            return None
        if llm_response.get_function_calls():
            early.expect(callback_context, call)
        else:
            await self._guarded(partial(call.record, llm_response))
        return None

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """Send a turn to the daemon as soon as its tools have returned, while ADK makes the next request."""
        engine = self._sessions.engine
        send = engine.guard(partial(early.turn_of, invocation_context, event, self), TESTED)
        if send is not None:
            engine.guard(send, TESTED)
        return None

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """If the request was too large for the model, make it smaller and send it again. An answer to a
        request that was sent again comes in one piece.
        """
        call = requests.take(callback_context)
        for _ in range(MAX_ATTEMPTS - 1 if call else 0):
            assert call is not None
            may_repeat = await self._guarded(partial(call.may_repeat, error))
            added = call.added_since(llm_request)
            if not may_repeat or added is None:
                return None
            await self._choose(call, llm_request)
            llm_request.contents.extend(added)
            try:
                response = await _sent(callback_context, llm_request)
            except Exception as another:
                error = another
            else:
                requests.remember(callback_context, call)
                return response
        return None

    def _begun(self, context: CallbackContext, request: LlmRequest) -> ModelCall | None:
        """Return the request that is about to be sent; None if compactd has no part in it."""
        run = context.get_invocation_context()
        is_live = run.live_request_queue is not None
        if is_live or request.previous_interaction_id or not request.contents:
            return None
        if self._has_recall and recalling.NAME not in request.tools_dict and _takes_functions(request):
            request.append_tools([RecallTool(self._sessions)])
        return requests.call_of(self._sessions.of_run(context), context, request, self._model)

    async def _choose(self, call: ModelCall, request: LlmRequest) -> None:
        """Put compactd's contents into the request."""
        if not self._sessions.engine.guard(call.choose_at_once, TESTED):
            await self._guarded(call.choose)
        request.contents = list(call.sent)
        limit, asked = call.max_output_tokens, getattr(request.config, "max_output_tokens", None)
        if limit is not None and asked is not None and asked > limit > 0:
            request.config.max_output_tokens = limit

    async def _guarded(self, work: Callable[[], T]) -> T | None:
        """Do work that asks the daemon. The event loop does not wait for it."""
        return await asyncio.to_thread(self._sessions.engine.guard, work, TESTED)

    # --- tool outputs -----------------------------------------------------------------------------------

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> Any:
        """With `reduce`, give the model a shorter text of the output. Only texts are reduced."""
        text = None if self._reduce == "off" or tool.name == recalling.NAME else text_in(result)
        if text is None:
            return None

        def reduce() -> str | None:
            is_observing = self._reduce == "observe"
            reduced = self._sessions.of_run(tool_context).reduce(
                tool.name,
                tool_args,
                text,
                is_error=is_error(result),
                level=None if is_observing else self._reduce,
                observe=is_observing,
            )
            return None if reduced is None else reduced.content

        content = await self._guarded(reduce)
        return None if content is None or content == text else with_text(result, content)


def _takes_functions(request: LlmRequest) -> bool:
    """Return whether a function may be added: many models refuse one next to a schema for the answer, or next
    to tools that the provider runs.
    """
    config = request.config
    has_schema = config.response_schema is not None or config.response_json_schema is not None
    return not has_schema and all(getattr(tool, "function_declarations", None) for tool in config.tools or ())


async def _sent(context: CallbackContext, request: LlmRequest) -> LlmResponse | None:
    """Ask the agent's model, and return its whole answer. Raises what the model raises."""
    run = context.get_invocation_context()
    run.increment_llm_call_count()
    agent: Any = run.agent
    model = await agent.canonical_model_async(context)
    responses = [each async for each in model.generate_content_async(request, stream=False)]
    return responses[-1] if responses else None

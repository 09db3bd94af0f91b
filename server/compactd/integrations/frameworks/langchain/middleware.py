"""The middleware for `create_agent` and `create_deep_agent`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from compactd.client import Json
from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.engine import Engine, SessionOptions, checked_level, engine_of
from compactd.integrations.frameworks.failures import MAX_ATTEMPTS, request_error
from compactd.integrations.frameworks.history import Setup
from compactd.integrations.frameworks.langchain import messages as mapping
from compactd.integrations.frameworks.langchain.versions import TESTED
from compactd.integrations.frameworks.mirror import Mirror
from compactd.protocol.wire import ErrorResult

Reduce = Literal["off", "observe", "light", "default", "strong"]

_CLIENT = "langchain"
_PROVIDERS = {
    "google_genai": "google",
    "google_vertexai": "google-vertex",
    "amazon_bedrock": "amazon-bedrock",
}
"""Providers that compactd's list of models calls otherwise than LangChain."""


@dataclass(frozen=True)
class _Options:
    session: SessionOptions
    session_id: str | None
    model: str | None
    reduce: Reduce
    has_recall: bool
    command: tuple[str, ...] | None


class CompactdMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Keeps an agent's model requests within the model's window, and loses nothing.

    Before each model request, the messages are given to compactd. When they near the window's limit, the
    oldest are replaced by a summary, in this request and the later ones. The agent's state is not changed: it
    keeps every message. If the provider rejects a request as too large, the conversation is compacted and the
    request is sent again.

    The conversation's session has the `thread_id` of the run's config as its name. Without one (an agent
    without a checkpointer) the session is in memory only, and ends with the process.

    The object holds options only: it may be copied, pickled, and shared by agents, threads and event loops.
    """

    def __new__(cls, *_: object, reduce: Reduce = "off", **__: object) -> CompactdMiddleware:
        """Without `reduce`, make one that has no part in tool calls: such a part costs 0.3 ms for each tool
        call.
        """
        is_plain = cls is CompactdMiddleware and reduce == "off"
        return super().__new__(_WithoutToolCalls if is_plain else cls)

    def __init__(
        self,
        *,
        context_window: int | None = None,
        compaction: Mapping[str, Json] | None = None,
        reduce: Reduce = "off",
        recall: bool = True,
        session_id: str | None = None,
        model: str | None = None,
        working_dir: str | None = None,
        persist: bool = True,
        command: Sequence[str] | None = None,
        name: str = "CompactdMiddleware",
    ) -> None:
        """Start the daemon in the background.

        Args:
            context_window: The model's window in tokens. Default: compactd looks it up by the model's name,
            then in
                the model's profile.
            compaction: Settings of compactions, e.g. `{"keep_recent_tokens": 20_000}` (docs/settings.md).
            reduce: Shorten tool outputs before they enter the conversation: `light`, `default` or `strong`.
            `observe`
                only counts what would be saved.
            recall: Give the model a tool `recall`, which finds what is no longer in its requests.
            session_id: A name for the session. Default: the `thread_id`.
            model: `provider/id`. Default: as the request's model says.
            working_dir: The folder that the conversation is about. Default: the current folder.
            persist: False: keep sessions in memory only.
            command: The command that starts the daemon. Default: this Python's `compactd serve`.
            name: The middleware's name. For deepagents: `SummarizationMiddleware`, the name of its own, which
                this one then replaces.
        """
        super().__init__()
        checked_level(reduce, get_args(Reduce))
        session = SessionOptions(
            _CLIENT,
            TESTED,
            context_window=context_window,
            compaction=None if compaction is None else dict(compaction),
            working_dir=working_dir,
            persist=persist,
        )
        self._name = name
        self._options = _Options(
            session, session_id, model, reduce, recall, None if command is None else tuple(command)
        )
        self._engine().start_soon()

    @property
    def name(self) -> str:
        """The name of the middleware."""
        return self._name

    @property
    def tools(self) -> Sequence[BaseTool]:  # type: ignore[override]  # made each time: none can be pickled
        """The tool `recall`, unless it was turned off."""
        return (self._recall_tool(),) if self._options.has_recall else ()

    # --- model requests ---------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Send the request with the messages that compactd chose; after an overflow, smaller."""
        call = self._call(request)
        for attempt in range(MAX_ATTEMPTS):
            try:
                return handler(call.prepared())
            except Exception as error:
                if isinstance(error, GraphBubbleUp) or not call.may_repeat(error, attempt):
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Like `wrap_model_call`. The event loop does not wait for the daemon."""
        call = self._call(request)
        for attempt in range(MAX_ATTEMPTS):
            sent = await asyncio.to_thread(call.prepared)
            try:
                return await handler(sent)
            except Exception as error:
                if isinstance(error, GraphBubbleUp):
                    raise
                if not await asyncio.to_thread(call.may_repeat, error, attempt):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def after_agent(self, state: AgentState[Any], runtime: Any) -> None:
        """Give compactd the agent's last answer."""
        self._recorded(state, runtime)

    async def aafter_agent(self, state: AgentState[Any], runtime: Any) -> None:
        """Like `after_agent`."""
        await asyncio.to_thread(self._recorded, state, runtime)

    def _call(self, request: ModelRequest[Any]) -> _ModelCall:
        mirror = self._mirror(request.messages, request.runtime)
        return _ModelCall(request, self._engine(), mirror, self._options.model)

    def _recorded(self, state: AgentState[Any], runtime: Any) -> None:
        messages = state["messages"]
        if messages:
            mirror = self._mirror(messages, runtime)
            self._engine().guard(lambda: mirror.record(mapping.history_of(messages)), TESTED)

    # --- tool outputs -----------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Shorten the tool's output, if `reduce` is on."""
        return self._reduced(request, handler(request))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Like `wrap_tool_call`."""
        result = await handler(request)
        if self._options.reduce == "off":
            return result
        return await asyncio.to_thread(self._reduced, request, result)

    def _reduced(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        level, call = self._options.reduce, request.tool_call
        if level == "off" or call["name"] == recall.NAME or not isinstance(result, ToolMessage):
            return result
        mirror = self._mirror(_messages_of(request.state), request.runtime)
        is_one_text = isinstance(result.content, str) or len(result.content) == 1

        def shorter(text: str) -> str:
            answer = mirror.reduce(
                call["name"],
                call["args"],
                text,
                call_id=call["id"] if is_one_text else None,
                is_error=result.status == "error",
                level=None if level == "observe" else level,
                observe=level == "observe",
            )
            return text if answer is None else answer.content

        return mapping.tool_texts(result, shorter)

    def _recall_tool(self) -> BaseTool:
        def look_up(
            runtime: ToolRuntime,
            query: Annotated[str, recall.QUERY] = "",
            entry_ids: Annotated[list[str] | None, recall.ENTRY_IDS] = None,
            start: Annotated[int, recall.START] = 0,
        ) -> str:
            mirror = self._mirror(_messages_of(runtime.state), runtime)
            return mirror.recall(query, entry_ids or [], start)

        return StructuredTool.from_function(
            look_up,
            name=recall.NAME,
            description=recall.DESCRIPTION,
        )

    # --- for people -------------------------------------------------------------------------------------

    def session(self, thread_id: str) -> Mirror:
        """Return the session of a thread: its `state()` says how full the context is, what was billed and
        what was compacted; `undo()` takes back the last compaction; `recall(query, ())` searches it.
        """
        return self._engine().mirror(
            f"{_CLIENT}:{self._options.session_id or thread_id}", self._options.session
        )

    def _engine(self) -> Engine:
        return engine_of(self._options.command)

    def _mirror(self, messages: Sequence[AnyMessage], runtime: Any) -> Mirror:
        options = self._options
        info = getattr(runtime, "execution_info", None)
        thread = options.session_id or getattr(info, "thread_id", None)
        if thread is None:
            first = messages[0].id if messages else None
            name = f"{_CLIENT}:run:{first or 'unnamed'}"
            return self._engine().mirror(name, replace(options.session, persist=False))
        name = f"{_CLIENT}:{thread}"
        # The namespace of a sub-agent begins with that of the tool call that started it.
        *parents, _own = (getattr(info, "checkpoint_ns", "") or "").split("|")
        if not parents:
            return self._engine().mirror(name, options.session)
        return self._engine().mirror(
            f"{name}/{'/'.join(parents)}", replace(options.session, parent_session_id=name)
        )


class _WithoutToolCalls(CompactdMiddleware):
    wrap_tool_call = AgentMiddleware.wrap_tool_call
    awrap_tool_call = AgentMiddleware.awrap_tool_call


@dataclass
class _ModelCall:
    """One model request, until it is answered."""

    request: ModelRequest[Any]
    engine: Engine
    mirror: Mirror
    model: str | None
    max_tokens: int | None = None

    def prepared(self) -> ModelRequest[Any]:
        """Return the request as it shall be sent."""
        request = self.request
        if self.max_tokens is not None:
            settings = {**request.model_settings, "max_tokens": self.max_tokens}
            request = request.override(model_settings=settings)
        messages = self.engine.guard(self._chosen, TESTED)
        return request if messages is None else request.override(messages=messages)

    def _chosen(self) -> list[AnyMessage] | None:
        """Return the messages to send; None if they are the request's own."""
        messages = self.request.messages
        view = self.mirror.prepare(mapping.history_of(messages), self._setup())
        if view is None or view.is_whole:
            return None
        return mapping.shown(view.items, messages)

    def _setup(self) -> Setup:
        request = self.request
        prompt = request.system_message
        profile = getattr(request.model, "profile", None) or {}
        return Setup(
            model=self.model or _model_name(request.model),
            fallback_window=profile.get("max_input_tokens"),
            system_prompt="" if prompt is None else str(prompt.text),
            tools_key=tuple(map(_tool_key, request.tools)),
            tools=lambda: [convert_to_openai_tool(tool) for tool in request.tools],
        )

    def may_repeat(self, error: Exception, attempt: int) -> bool:
        """Report the failed request, and return whether it shall be sent again."""
        if attempt == MAX_ATTEMPTS - 1:
            return False
        told: ErrorResult | None = self.mirror.failed(
            request_error(error, is_overflow=isinstance(error, ContextOverflowError))
        )
        if told is None or not told.retry:
            return False
        self.max_tokens = told.max_output_tokens or self.max_tokens
        return True


def _model_name(model: Any) -> str | None:
    """Return the model as `provider/id`; None if it does not say."""
    params = model._get_ls_params() if hasattr(model, "_get_ls_params") else {}
    provider, name = params.get("ls_provider"), params.get("ls_model_name")
    if not provider or not name:
        return None
    return f"{_PROVIDERS.get(provider, provider)}/{name}"


def _tool_key(tool: Any) -> object:
    """Return a value that is equal as long as the model is shown the same. deepagents makes its tools again
    for each request.
    """
    if not isinstance(tool, BaseTool):
        return repr(tool)
    schema = tool.args_schema
    return (type(tool), tool.name, tool.description, schema if isinstance(schema, type) else repr(schema))


def _messages_of(state: Any) -> Sequence[AnyMessage]:
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    return messages or ()

"""`CompactdCapability`: what an agent of Pydantic AI gets from compactd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic_ai import messages as pai
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.tools import AgentDepsT, RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from compactd.client import Json
from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.engine import checked_level, engine_of
from compactd.integrations.frameworks.failures import MAX_ATTEMPTS
from compactd.integrations.frameworks.history import View
from compactd.integrations.frameworks.mirror import Mirror
from compactd.integrations.frameworks.pydantic_ai import archive, early, versions
from compactd.integrations.frameworks.pydantic_ai.errors import request_error
from compactd.integrations.frameworks.pydantic_ai.messages import Units, units_of
from compactd.integrations.frameworks.pydantic_ai.requests import setup_of
from compactd.integrations.frameworks.pydantic_ai.sessions import PREFIX, SessionId, Sessions, in_thread
from compactd.integrations.frameworks.pydantic_ai.shown import shown_history

if TYPE_CHECKING:
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AgentToolset

Reduce = Literal["off", "observe", "light", "default", "strong"]


@dataclass
class CompactdCapability(AbstractCapability[AgentDepsT]):
    """Keeps each model request within the model's context window. `Agent(…,
    capabilities=[CompactdCapability()])`.

    The agent's own history stays whole; only what the model is sent gets shorter. This object holds options
    only.
    """

    session_id: SessionId = None
    """The conversation's session: a name, or a function of the run's context. None: the framework's
    `conversation_id`."""

    _: KW_ONLY

    context_window: int | None = None
    """The model's window in tokens. None: compactd's for the model's name, or else the framework's."""
    compaction: Mapping[str, Json] | None = None
    """Settings of compactions, such as `{"threshold_ratio": 0.7}`; see docs/settings.md."""
    persistent: bool = False
    """True: the agent's own history is replaced, too: `all_messages()` then begins with the summary."""
    reduce: Reduce = "off"
    """How much of a tool's output is left out when it comes. `observe` only counts what would be left out."""
    recall: bool | str = True
    """Whether the model gets a tool that looks up what was said earlier; a text is the tool's name."""
    persist: bool | None = None
    """Whether sessions are kept on disk. None: if `session_id` is given; otherwise they end with the process.
    """
    working_dir: str | None = None
    """The folder that conversations are about. None: the process's current folder."""
    command: tuple[str, ...] | None = None
    """The command that starts the daemon. None: this Python's."""
    id: str | None = "compactd"
    """The framework joins capabilities of one id: an agent has one of these."""

    def __post_init__(self) -> None:
        versions.check()
        checked_level(self.reduce, get_args(Reduce))
        self._sessions().options()
        engine_of(self.command).start_soon()

    # --- for people -------------------------------------------------------------------------------------

    def session(self, conversation: str | RunContext[Any] | AgentRunResult[Any]) -> Mirror:
        """Return the session of a conversation: that of its id, of a run's context or of a run's result. Its
        `state()` says how full the context is and what was billed; `undo()` takes the last compaction back.
        """
        sessions = self._sessions()
        if isinstance(conversation, str):
            return sessions.mirror(PREFIX + conversation)
        if isinstance(conversation, RunContext):
            return sessions.mirror(sessions.name(conversation))
        fixed = self.session_id if isinstance(self.session_id, str) else None
        return sessions.mirror(PREFIX + (fixed or conversation.conversation_id))

    # --- model requests ---------------------------------------------------------------------------------

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """With `persistent`, replace the agent's history by what its next request contains. Otherwise, send
        the last turn to the daemon, while the framework makes the request.
        """
        if not self.persistent:
            self._send_early(ctx, request_context.messages)
            return request_context
        messages = list(request_context.messages)
        shown = await self._shown(ctx, request_context)
        if shown is not None:
            name = self._sessions().name(ctx)
            whole = archive.whole_history(name, messages)
            if not _are_same(shown, whole):
                archive.remember(name, shown, whole)
            request_context.messages = list(shown)
            ctx.messages[:] = shown
        return request_context

    async def prepare_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send the view in place of the history, fitted to the model that is about to be asked."""
        shown = await self._shown(ctx, request_context)
        if shown is not None:
            request_context.messages = shown
        return request_context

    async def on_model_request_error(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, error: Exception
    ) -> pai.ModelResponse:
        """If the request was too large for the model, make it smaller and send it again."""
        described = request_error(error) if request_context.attempt < MAX_ATTEMPTS else None
        if described is not None:
            mirror = self.session(ctx)
            answer = await in_thread(partial(mirror.failed, described))
            if answer is not None and answer.overflow and answer.retry:
                raise RetryModelRequest() from error
        raise error

    async def _shown(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> list[pai.ModelMessage] | None:
        """Return the messages of the next request; None if they are those of `request_context`."""
        try:
            name = self._sessions().name(ctx)
            given = request_context.messages
            whole = archive.whole_history(name, given) if self.persistent else given
            units = units_of(whole)
            parameters = request_context.model_request_parameters
            setup = setup_of(request_context.model, parameters, whole, ctx, self.context_window)
            mirror = self._sessions().mirror(name)
            mirror.let_answers_be_read()
            view = mirror.prepare_at_once(units.history(), setup)
            if view is None:
                view = await in_thread(partial(mirror.prepare, units.history(), setup))
            if not self.persistent:
                early.note(mirror, ctx.messages, units, setup)
            if view is None:
                return None
            _limit_output(request_context, view)
            return _messages_of(view, units, given, ctx.conversation_id)
        except Exception as error:
            versions.warn_once(error)
            return None

    def _send_early(self, ctx: RunContext[AgentDepsT], messages: Sequence[pai.ModelMessage]) -> None:
        try:
            sessions = self._sessions()
            early.send(sessions.mirror(sessions.name(ctx)), messages)
        except Exception as error:
            versions.warn_once(error)

    # --- the end of a run -------------------------------------------------------------------------------

    async def after_run(
        self, ctx: RunContext[AgentDepsT], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Give the session the last answer."""
        await self._record(ctx, result.all_messages())
        return result

    async def on_run_error(self, ctx: RunContext[AgentDepsT], *, error: BaseException) -> AgentRunResult[Any]:
        """Give the session what was said before the run failed."""
        if isinstance(error, Exception):
            await self._record(ctx, ctx.messages)
        raise error

    async def _record(self, ctx: RunContext[AgentDepsT], messages: Sequence[pai.ModelMessage]) -> None:
        try:
            name = self._sessions().name(ctx)
            whole = archive.whole_history(name, messages) if self.persistent else messages
            mirror = self._sessions().mirror(name)
            early.forget(mirror)
            await in_thread(partial(mirror.record, units_of(whole).history()))
        except Exception as error:
            versions.warn_once(error)

    # --- tools ------------------------------------------------------------------------------------------

    async def after_tool_execute(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: pai.ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        result: Any,
    ) -> Any:
        """With `reduce`, give the model a shorter text of the output. Only texts are reduced."""
        content = result.return_value if isinstance(result, pai.ToolReturn) else result
        if self.reduce == "off" or not isinstance(content, str) or call.tool_name == self._recall_name():
            return result
        try:
            reduced = await in_thread(
                partial(
                    self.session(ctx).reduce,
                    call.tool_name,
                    call.args_as_dict(),
                    content,
                    call_id=call.tool_call_id,
                    level=None if self.reduce == "observe" else self.reduce,
                    observe=self.reduce == "observe",
                )
            )
        except Exception as error:
            versions.warn_once(error)
            return result
        if reduced is None or self.reduce == "observe" or reduced.content == content:
            return result
        if isinstance(result, pai.ToolReturn):
            return replace(result, return_value=reduced.content)
        return reduced.content

    def get_toolset(self) -> AgentToolset[AgentDepsT] | None:
        """Return the recall tool."""
        name = self._recall_name()
        if name is None:
            return None

        async def look_up(
            ctx: RunContext[AgentDepsT], query: str = "", entry_ids: list[str] | None = None, start: int = 0
        ) -> str:
            return await in_thread(partial(self.session(ctx).recall, query, entry_ids or (), start))

        tool = Tool.from_schema(look_up, name, recall.DESCRIPTION, _RECALL_SCHEMA, takes_ctx=True)
        return FunctionToolset([tool])

    def _recall_name(self) -> str | None:
        if isinstance(self.recall, str):
            return self.recall
        return recall.NAME if self.recall else None

    def _sessions(self) -> Sessions:
        return Sessions(
            session_id=self.session_id,
            persist=self.persist,
            context_window=self.context_window,
            compaction=self.compaction,
            working_dir=self.working_dir,
            command=self.command,
        )


_RECALL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": recall.QUERY},
        "entry_ids": {"type": "array", "items": {"type": "string"}, "description": recall.ENTRY_IDS},
        "start": {"type": "integer", "description": recall.START},
    },
    "additionalProperties": False,
}


def _messages_of(
    view: View, units: Units, given: Sequence[pai.ModelMessage], conversation_id: str | None
) -> list[pai.ModelMessage] | None:
    """Return the view as messages; None if they are those that were given."""
    if view.is_whole:
        return None if given is units.messages else list(units.messages)
    return shown_history(units, view.items, conversation_id=conversation_id)


def _are_same(one: Sequence[pai.ModelMessage], other: Sequence[pai.ModelMessage]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _limit_output(request_context: ModelRequestContext, view: View) -> None:
    """Lower the request's `max_tokens` if it has one that does not fit."""
    settings = request_context.model_settings
    limit, asked = view.max_output_tokens, (settings or {}).get("max_tokens")
    if settings is not None and limit is not None and isinstance(asked, int) and asked > limit > 0:
        changed = settings.copy()
        changed["max_tokens"] = limit
        request_context.model_settings = changed

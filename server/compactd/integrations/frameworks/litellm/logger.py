"""`CompactdLogger`: what the requests of LiteLLM get from compactd."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import litellm
from litellm._logging import verbose_proxy_logger
from litellm.exceptions import ContextWindowExceededError
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes

from compactd.client import Json
from compactd.integrations.frameworks import recall
from compactd.integrations.frameworks.engine import CompactdWarning, Engine, SessionOptions, engine_of
from compactd.integrations.frameworks.failures import MAX_ATTEMPTS, request_error
from compactd.integrations.frameworks.litellm import messages as mapping
from compactd.integrations.frameworks.litellm import usage
from compactd.integrations.frameworks.litellm.recall_tool import RecallTool
from compactd.integrations.frameworks.litellm.requests import limited, name_of, session_name, setup_of
from compactd.integrations.frameworks.litellm.versions import TESTED
from compactd.integrations.frameworks.mirror import Mirror

_CHAT = (CallTypes.acompletion, CallTypes.completion)
_NO_SESSION = (
    "a request has no session id, so it is sent as it is. Give one, as in `metadata={'session_id': 'docs'}`"
)
_POSITIONAL = "the messages of a request were not given as `messages=…`, so they are sent as they are"

_NO_DAEMON = "it could not be asked, so requests are sent as they are. `compactd doctor` may say more"

_said: set[str] = set()


@dataclass
class _Call:
    """A request that is being sent."""

    mirror: Mirror
    messages: list[mapping.ChatMessage]
    """The caller's."""
    request: dict[str, Any]
    """The request as it is sent."""
    may_repeat: bool | None = None
    """Whether a smaller request would be worth sending, once the provider has refused this one."""

    @property
    def sent(self) -> list[mapping.ChatMessage]:
        """The messages that are sent."""
        sent: list[mapping.ChatMessage] = self.request["messages"]
        return sent


_call: ContextVar[_Call | None] = ContextVar("compactd_call", default=None)
"""The request of the current task. LiteLLM calls the hooks of one request in one task."""


class CompactdLogger(CustomLogger):
    """Keeps each chat completion within the model's context window. `litellm.callbacks = [CompactdLogger()]`.

    Requests name their conversation: `metadata={"session_id": "docs"}`. The caller's list of messages stays
    whole; only what the model is sent gets shorter. This object holds options only.
    """

    def __init__(
        self,
        *,
        context_window: int | None = None,
        compaction: Mapping[str, Json] | None = None,
        working_dir: str | None = None,
        persist: bool = True,
        command: tuple[str, ...] | None = None,
    ) -> None:
        """Start the daemon in the background.

        Args:
            context_window: The model's window in tokens. Default: what the deployment's `model_info` says,
                else what compactd knows of the model, else what LiteLLM does.
            compaction: Settings of compactions, such as `{"threshold_ratio": 0.7}`; see docs/settings.md.
            working_dir: The folder that conversations are about. Default: the process's current folder.
            persist: False: keep sessions in memory only.
            command: The command that starts the daemon. Default: this Python's.
        """
        super().__init__()
        self._options = SessionOptions(
            "litellm",
            TESTED,
            context_window=context_window,
            compaction=None if compaction is None else dict(compaction),
            working_dir=working_dir,
            persist=persist,
        )
        self._command = None if command is None else tuple(command)
        self._engine().start_soon()

    # --- for people -------------------------------------------------------------------------------------

    def session(self, session_id: str) -> Mirror:
        """Return the session of a conversation. Its `state()` says how full the context is and what was
        billed; `undo()` takes the last compaction back.
        """
        return self._mirror(name_of(session_id))

    def recall_tool(self, session_id: str, name: str = recall.NAME) -> RecallTool:
        """Return the tool with which the model looks up what was said earlier in a conversation. Your loop
        runs it.
        """
        return RecallTool(self.session(session_id), name)

    def completion(self, **request: Any) -> Any:
        """Call `litellm.completion`, which has no hook that could change its messages. After an overflow, the
        request is sent again, smaller: at most three times.
        """
        for attempt in range(MAX_ATTEMPTS):
            call = self._begin(request)
            if call is None:
                return litellm.completion(**request)
            try:
                response = litellm.completion(**call.request)
            except Exception as error:
                self._report(call, error)
                if attempt == MAX_ATTEMPTS - 1 or not call.may_repeat:
                    raise
            else:
                if not request.get("stream"):
                    self._remember(call.mirror.name, response)
                return response
        raise AssertionError("the last attempt returns or raises")

    async def acompletion(self, **request: Any) -> Any:
        """Call `litellm.acompletion`. After an overflow, the request is sent again, smaller: at most three
        times.
        """
        for attempt in range(MAX_ATTEMPTS):
            call = await asyncio.to_thread(self._begin, request)
            if call is None:
                return await litellm.acompletion(**request)
            _call.set(call)
            try:
                return await litellm.acompletion(**call.request)
            except Exception as error:
                # What the hook made of it, if the logger is registered: it has reported the error, too.
                call = _call.get() or call
                await asyncio.to_thread(self._report, call, error)
                if attempt == MAX_ATTEMPTS - 1 or not call.may_repeat:
                    raise
        raise AssertionError("the last attempt returns or raises")

    # --- hooks of requests ------------------------------------------------------------------------------

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """Send the view in place of the messages. LiteLLM calls this for each attempt at a request of
        `acompletion`, of a router and of the proxy.
        """
        if call_type not in _CHAT:
            return None
        call = _call.get()
        if call is not None and call.sent is kwargs.get("messages"):
            return None
        if call is not None and call.request.get("stream"):
            # LiteLLM reports what a stream cost after it has ended, in a task of its own.
            await asyncio.sleep(0)
        begun = await asyncio.to_thread(self._begin, kwargs, call)
        _call.set(begun)
        return None if begun is None else begun.request

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, object],
        exception: Exception,
        call_type: CallTypes | None,
        fallback_depth: int | None = None,
    ) -> None:
        """If the request was too large for the model, make the next one smaller."""
        call = _call.get()
        if call is not None and call.sent == request_data.get("messages"):
            await asyncio.to_thread(self._report, call, exception)

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: CallTypes | None
    ) -> None:
        """Note what the request cost."""
        if call_type in _CHAT and (name := self._named(request_data)):
            self._remember(name, response)

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Note what a streamed request of `acompletion` cost."""
        self._note_stream(kwargs, response_obj, CallTypes.acompletion)

    def log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Note what a streamed request of `completion` cost."""
        self._note_stream(kwargs, response_obj, CallTypes.completion)

    def _note_stream(self, kwargs: dict[str, Any], response: Any, call_type: CallTypes) -> None:
        if kwargs.get("stream") and kwargs.get("call_type") == call_type and not kwargs.get("cache_hit"):
            name = self._named(kwargs.get("litellm_params") or {})
            if name is not None:
                self._remember(name, response)

    # --- the session ------------------------------------------------------------------------------------

    def _begin(self, request: dict[str, Any], before: _Call | None = None) -> _Call | None:
        """Return the request with the messages that compactd chose; None if it is sent as it is. `before`:
        the last request of the same task.
        """
        return self._engine().guard(partial(self._begun, request, before), TESTED)

    def _begun(self, request: dict[str, Any], before: _Call | None) -> _Call | None:
        name = session_name(request)
        if name is None:
            _say_once(_NO_SESSION)
            return None
        messages = request.get("messages")
        if not isinstance(messages, list):
            _say_once(_POSITIONAL)
            return None
        mirror = self._mirror(name)
        if before is not None and before.mirror.name == name and before.sent == messages:
            # A fallback of `acompletion` is given what was already chosen for the first model.
            messages = before.messages
        count = mapping.opening_of(messages)
        opening, said = messages[:count], messages[count:]
        history = mapping.history_of(said, partial(usage.take, name))
        view = mirror.prepare(history, setup_of(request, opening, self._options.context_window))
        if view is None:
            if _is_proxy():
                _say_once(_NO_DAEMON)
            return None
        # Until something is left out, nothing is changed: LiteLLM makes messages valid itself.
        chosen = mapping.shown(view.items, said) if view.is_compacted and not view.is_whole else said
        sent = limited({**request, "messages": [*opening, *chosen]}, view)
        return _Call(mirror, messages, sent)

    def _report(self, call: _Call, error: Exception) -> None:
        """Tell the daemon why the request failed, once."""
        if call.may_repeat is not None:
            return
        described = request_error(error, is_overflow=isinstance(error, ContextWindowExceededError))
        told = self._engine().guard(partial(call.mirror.failed, described), TESTED)
        call.may_repeat = told is not None and told.overflow and told.retry

    def _remember(self, name: str, response: object) -> None:
        self._engine().guard(partial(usage.remember, name, response), TESTED)

    def _named(self, request: Mapping[str, Any]) -> str | None:
        return self._engine().guard(partial(session_name, request), TESTED)

    def _mirror(self, name: str) -> Mirror:
        return self._engine().mirror(name, self._options)

    def _engine(self) -> Engine:
        return engine_of(self._command)


def _is_proxy() -> bool:
    return "litellm.proxy.proxy_server" in sys.modules


def _say_once(what: str) -> None:
    """Say something once in this process: as a warning, or in the proxy's log, because it shows none."""
    if what in _said:
        return
    _said.add(what)
    text = f"compactd: {what}. See docs/litellm.md."
    if _is_proxy():
        verbose_proxy_logger.warning(text)
    else:
        warnings.warn(text, CompactdWarning, stacklevel=2)

"""A turn that is sent to the daemon before ADK makes the next request.

When the tools have returned, the next request's contents are known, unless something edits them: those of the
last request, the model's answer, and the results. If they are other contents after all, nothing is lost: the
mirror notices it with the next request, and sends no further turn early.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from compactd.integrations.frameworks.google_adk.contents import keyed_history, keys_of
from compactd.integrations.frameworks.google_adk.requests import MAX_CALLS, ModelCall, usage_report

_OWN_ID = "adk-"
"""How an id begins that ADK gave to a call. Most models are not shown it."""
_EDITING = ("before_model_callback", "on_event_callback")
"""The callbacks in which another plugin can change what the next request says."""


@dataclass
class Turn:
    """A request that was answered with calls, until these are answered."""

    call: ModelCall
    answer: Event | None = None

    def send(self, answer: Event, results: Event) -> bool:
        """Send the answer and the results to the daemon. Return whether that was done. Waits for nothing."""
        said = self.call.said
        new = [each.content for each in (answer, results) if each.content is not None]
        if any(_has_own_id(content) for content in new):
            shows = _shows_own_ids(said)
            if shows is None:
                return False
            new = new if shows else [_without_own_ids(content) for content in new]
        keys = [*self.call.keys, *keys_of(new)]
        history = keyed_history(keys, [*said, *new], usage_report(answer.usage_metadata))
        return self.call.mirror.send_early(history, self.call.setup, may_wait=False)


_turns: OrderedDict[Hashable, tuple[weakref.ref[object], Turn]] = OrderedDict()
"""Invocation, agent and branch -> the run's session, and the turn. Each run has a session object of its own:
what the run leaves is forgotten with it.
"""


def expect(context: CallbackContext, call: ModelCall) -> None:
    """Note a request that was answered with calls."""
    run = context.get_invocation_context()
    key = (run.invocation_id, context.agent_name, run.branch)
    _turns[key] = (weakref.ref(run.session, lambda _: _turns.pop(key, None)), Turn(call))
    _turns.move_to_end(key)
    while len(_turns) > MAX_CALLS:
        _turns.popitem(last=False)


def turn_of(run: InvocationContext, event: Event, plugin: BasePlugin) -> Callable[[], bool] | None:
    """Return what sends the turn that an event completes; None if it completes none, or if another plugin may
    change what was said: the daemon then gets nothing that ADK does not show to it.
    """
    key = (event.invocation_id, event.author, event.branch)
    if event.get_function_calls():
        if (found := _turns.get(key)) is not None:
            found[1].answer = event
        return None
    responses = event.get_function_responses()
    found = _turns.pop(key, None) if responses else None
    if found is None:
        return None
    _, turn = found
    answer = turn.answer
    if answer is None or not turn.call.keys or _ends_run(event):
        return None
    called = [(each.id, each.name) for each in answer.get_function_calls()]
    if called != [(each.id, each.name) for each in responses] or _is_edited(run.plugin_manager, plugin):
        return None
    return partial(turn.send, answer, event)


def _ends_run(event: Event) -> bool:
    """Return whether the agent's next request comes later, or never."""
    actions = event.actions
    return bool(
        event.is_final_response()
        or actions.transfer_to_agent
        or actions.escalate
        or actions.requested_auth_configs
        or actions.requested_tool_confirmations
    )


def _is_edited(manager: Any, plugin: BasePlugin) -> bool:
    """Return whether plugins other than `plugin` could change what the next request says."""
    return any(
        getattr(type(each), name, None) is not getattr(BasePlugin, name)
        for each in manager.plugins
        if each is not plugin
        for name in _EDITING
    )


# --- the ids that ADK gives -----------------------------------------------------------------------------


def _ids(content: types.Content) -> list[str | None]:
    said = [part.function_call or part.function_response for part in content.parts or ()]
    return [each.id for each in said if each is not None]


def _has_own_id(content: types.Content) -> bool:
    return any((each or "").startswith(_OWN_ID) for each in _ids(content))


def _shows_own_ids(contents: Sequence[types.Content]) -> bool | None:
    """Return whether the model is shown the ids that ADK gives to calls; None if no content says it."""
    for content in reversed(contents):
        for each in _ids(content):
            if not each:
                return False
            if each.startswith(_OWN_ID):
                return True
    return None


def _without_own_ids(content: types.Content) -> types.Content:
    return content.model_copy(update={"parts": [_part_without_own_id(part) for part in content.parts or ()]})


def _part_without_own_id(part: types.Part) -> types.Part:
    for name in ("function_call", "function_response"):
        said = getattr(part, name)
        if said is not None and (said.id or "").startswith(_OWN_ID):
            return part.model_copy(update={name: said.model_copy(update={"id": None})})
    return part

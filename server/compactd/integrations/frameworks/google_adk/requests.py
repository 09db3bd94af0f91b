"""A model request of ADK, until it is answered."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from compactd.client import Json
from compactd.integrations.frameworks.failures import request_error
from compactd.integrations.frameworks.google_adk.contents import history_of, quotes_another_agent
from compactd.integrations.frameworks.google_adk.responses import plain
from compactd.integrations.frameworks.google_adk.shown import shown
from compactd.integrations.frameworks.history import History, Setup, ShownMessage, View
from compactd.integrations.frameworks.mirror import Mirror

MAX_CALLS = 256
"""The most requests that are remembered at once. One that another plugin answers is never taken."""
_FRONT = -1
_INSTRUCTION = "<<<BEGIN_SYSTEM_INSTRUCTION>>>"
"""What ADK writes into a user's content that is an instruction."""
_PREFIXES = {"gemini": "google", "gemma": "google", "claude": "anthropic"}
"""How names of models begin that ADK knows without a provider -> their provider."""


@dataclass
class ModelCall:
    """One model request: the conversation, and what is in this request only."""

    mirror: Mirror
    given: list[types.Content]
    """The contents as ADK made them."""
    said: list[types.Content]
    """Those that are the conversation."""
    passing: list[tuple[int, types.Content]]
    """Contents that no later request has, each with the index in `said` that it comes before."""
    setup: Setup
    usage: Mapping[str, Any] | None
    sent: list[types.Content] = field(default_factory=list)
    """The contents that the request had after compactd."""
    max_output_tokens: int | None = None
    keys: Sequence[Hashable] = ()
    """Those of what was said, since `sent` was chosen."""

    def choose(self) -> None:
        """Put into `sent` what the request shall contain. Asks the daemon."""
        self.sent = self.given
        history = history_of(self.said, self.usage)
        view = self.mirror.prepare(history, self.setup)
        if view is not None:
            self._take(view, history)

    def choose_at_once(self) -> bool:
        """Do the same if the daemon has answered already: the turn was sent early. Return whether it was."""
        self.mirror.let_answers_be_read()
        if not self.mirror.has_early_answers:
            return False
        self.sent = self.given
        history = history_of(self.said, self.usage)
        view = self.mirror.prepare_at_once(history, self.setup)
        if view is not None:
            self._take(view, history)
        return view is not None

    def _take(self, view: View, history: History) -> None:
        self.keys = history.keys
        self.max_output_tokens = view.max_output_tokens
        if not view.is_whole:
            self.sent = self._placed(view.items)

    def _placed(self, items: Sequence[int | ShownMessage]) -> list[types.Content]:
        """Return the contents that `items` show, and what is in this request only in its places."""
        placed = [content for at, content in self.passing if at == _FRONT]
        later = [each for each in self.passing if each[0] != _FRONT]
        for item in items:
            index = item if isinstance(item, int) else item.index
            while later and index is not None and later[0][0] <= index:
                placed.append(later.pop(0)[1])
            placed.append(shown(item, self.said))
        return [*placed, *(content for _, content in later)]

    def added_since(self, request: LlmRequest) -> list[types.Content] | None:
        """Return the contents that were added after compactd's; None if those were changed or removed, by
        another callback or by the model's class.
        """
        own = set(map(id, self.sent))
        count = len(self.sent)
        if [id(content) for content in request.contents[:count]] != [id(content) for content in self.sent]:
            return None
        added = request.contents[count:]
        return None if any(id(content) in own for content in added) else added

    def may_repeat(self, error: Exception) -> bool:
        """Report the failed request, and return whether it shall be sent again."""
        told = self.mirror.failed(request_error(error))
        if told is None or not (told.overflow and told.retry):
            return False
        self.max_output_tokens = told.max_output_tokens or self.max_output_tokens
        return True

    def record(self, response: LlmResponse) -> None:
        """Give the session the answer that ends a run."""
        if response.content is not None:
            said = [*self.said, response.content]
            self.mirror.record(history_of(said, usage_report(response.usage_metadata)))


def call_of(mirror: Mirror, context: CallbackContext, request: LlmRequest, model: str | None) -> ModelCall:
    """Return the model request that is about to be sent. O(contents, tools)."""
    passing = _passing(context, request)
    places = dict(passing)
    said = [content for at, content in enumerate(request.contents) if at not in places]
    front = getattr(request, "_static_instruction_prefix_end_index", None) or 0
    before = [
        (_FRONT if at < front else at - number, request.contents[at])
        for number, (at, _) in enumerate(passing)
    ]
    texts = [_instruction(request), *(_text(content) for _, content in before)]
    declared = _declarations(request)
    setup = Setup(
        model=model or _model_name(request.model),
        system_prompt="\n\n".join(text for text in texts if text),
        tools_key=tuple([_tool_key(each) for each in declared]),
        tools=lambda: [_tool(each) for each in declared],
    )
    return ModelCall(mirror, list(request.contents), said, before, setup, _newest_usage(context))


def _passing(context: CallbackContext, request: LlmRequest) -> list[tuple[int, types.Content]]:
    """Return the contents that are in this request only, each with its index: instructions that ADK puts into
    contents, a run's input context, and what tools added. They are no part of the conversation.
    """
    contents = request.contents
    front = getattr(request, "_static_instruction_prefix_end_index", None) or 0
    last = next((at for at in range(len(contents) - 1, -1, -1) if not _is_user_text(contents[at])), -1)
    # After the agent's own results, nothing has been said.
    is_after_tools = _ends_with_results(context)
    places = {*range(front)}
    for at in range(max(last + 1, front), len(contents)):
        content = contents[at]
        if _INSTRUCTION in _text(content) or (is_after_tools and not quotes_another_agent(content)):
            places.add(at)
    places.update(_places_of(getattr(context.run_config, "model_input_context", None) or (), contents))
    return [(at, contents[at]) for at in sorted(places)]


def _places_of(given: Sequence[types.Content], contents: Sequence[types.Content]) -> range:
    """Return where the contents `given` are, one after the other, counted from the end."""
    size = len(given)
    for at in range(len(contents) - size, -1, -1) if given else ():
        if list(contents[at : at + size]) == list(given):
            return range(at, at + size)
    return range(0)


def _is_user_text(content: types.Content) -> bool:
    return content.role == "user" and not any(part.function_response for part in content.parts or ())


def _ends_with_results(context: CallbackContext) -> bool:
    """Return whether the newest event of the session is a response to a call of this agent."""
    newest = next((event for event in reversed(context.session.events) if event.content), None)
    if newest is None or newest.author not in (context.agent_name, "user"):
        return False
    return bool(newest.get_function_responses())


def _newest_usage(context: CallbackContext) -> Mapping[str, Any] | None:
    """Return the provider's report on the agent's newest answer."""
    name = context.agent_name
    answers = (
        event
        for event in reversed(context.session.events)
        if event.author == name and event.content is not None and event.content.role == "model"
    )
    newest = next(answers, None)
    return None if newest is None else usage_report(newest.usage_metadata)


def usage_report(usage: Any) -> Mapping[str, Any] | None:
    """Return a report in Gemini's form, or in Anthropic's if something was written to the cache: Gemini's has
    no field for it.
    """
    if usage is None or usage.prompt_token_count is None:
        return None
    prompt, answer = usage.prompt_token_count, usage.candidates_token_count or 0
    read, thoughts = usage.cached_content_token_count or 0, usage.thoughts_token_count or 0
    written = getattr(usage, "cache_creation_input_tokens", None)
    if written:
        return {
            "input_tokens": max(0, prompt - read - written),
            "output_tokens": answer + thoughts,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
        }
    return {
        "prompt_token_count": prompt,
        "tool_use_prompt_token_count": usage.tool_use_prompt_token_count or 0,
        "candidates_token_count": answer,
        "thoughts_token_count": thoughts,
        "cached_content_token_count": read,
    }


# --- what a request contains besides contents -----------------------------------------------------------


def _model_name(model: str | None) -> str | None:
    """Return the model as `provider/id`. LiteLLM's names are that already."""
    if not model:
        return None
    if model.startswith("projects/"):
        # As in projects/P/locations/L/publishers/google/models/gemini-2.5-pro
        model = model.rpartition("/")[2]
    if "/" in model:
        return model
    provider = next((name for start, name in _PREFIXES.items() if model.startswith(start)), None)
    return f"{provider}/{model}" if provider else model


def _instruction(request: LlmRequest) -> str:
    given = request.config.system_instruction if request.config else None
    if given is None or isinstance(given, str):
        return given or ""
    pieces = given if isinstance(given, list) else [given]
    return "\n".join(piece if isinstance(piece, str) else _text(piece) for piece in pieces)


def _text(content: Any) -> str:
    """Return the texts of a content or a part."""
    parts = getattr(content, "parts", None) or [content]
    return "\n".join(text for part in parts if isinstance(text := getattr(part, "text", None), str))


def _declarations(request: LlmRequest) -> Sequence[Any]:
    """Return the functions that the model may call, and the tools that its provider runs."""
    found: list[Any] = []
    for tool in (request.config.tools if request.config else None) or ():
        found.extend(getattr(tool, "function_declarations", None) or [tool])
    return found


def _tool_key(tool: Any) -> Hashable:
    """Return a value that is equal as long as the model is shown the same. ADK declares its tools again for
    each request.
    """
    if not isinstance(tool, types.FunctionDeclaration):
        return repr(tool)
    return (tool.name, tool.description, repr(tool.parameters_json_schema or tool.parameters))


def _tool(tool: Any) -> Json:
    if not isinstance(tool, types.FunctionDeclaration):
        dump = getattr(tool, "model_dump", None)
        raw: Any = dump(mode="json", by_alias=True, exclude_none=True) if dump else plain(tool)
        return {"name": type(tool).__name__, "input_schema": raw}
    schema = tool.parameters_json_schema
    if schema is None and tool.parameters is not None:
        schema = tool.parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"name": tool.name or "", "description": tool.description or "", "input_schema": schema or {}}


# --- from one callback to the next ----------------------------------------------------------------------

_calls: OrderedDict[int, tuple[weakref.ref[object], ModelCall]] = OrderedDict()
"""Identity of the event actions that all callbacks of one request share -> those actions, and the request."""


def remember(context: CallbackContext, call: ModelCall) -> None:
    """Note a request until it is answered, or until ADK forgets it."""
    key = id(context.actions)
    _calls[key] = (weakref.ref(context.actions, lambda _: _calls.pop(key, None)), call)
    while len(_calls) > MAX_CALLS:
        _calls.popitem(last=False)


def take(context: CallbackContext) -> ModelCall | None:
    """Return the request of this callback, and forget it. None if it is not known."""
    found = _calls.pop(id(context.actions), None)
    return None if found is None else found[1]

"""What the daemon knows of a session's model: window, source, prices, and how tokens are counted."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from compactd.cli.loading import Conversation
from compactd.client import Client
from compactd.core.profiles import PROFILES
from compactd.core.tokens import Counter, message_tokens, system_tokens, tool_tokens
from compactd.core.usage import context_size, normalise
from compactd.messages import Confidence, Tool
from compactd.providers.counters import counter_for
from compactd.rpc.wire import LookupResult, StateResult

NAME_IT = "--model ID or --window N tells it"
"""What to do about a window that nobody knows."""


class Known(Struct, frozen=True, kw_only=True):
    """A session's model, as far as it is known."""

    state: StateResult
    lookup: LookupResult | None
    """None where no model is named."""
    counter: Counter
    """The session's own."""
    system_tokens: int
    tools_tokens: int

    @property
    def fixed_tokens(self) -> int:
        """Of system prompt and tools, as far as the file holds them."""
        return self.system_tokens + self.tools_tokens

    @property
    def lookup_how(self) -> str:
        """How the registry came to its answer."""
        return "" if self.lookup is None else self.lookup.how

    @property
    def window(self) -> int | None:
        """Tokens."""
        return self.state.token_usage.context_window

    @property
    def confidence(self) -> Confidence:
        """Of the window."""
        return self.state.token_usage.context_window_confidence

    @property
    def is_guess(self) -> bool:
        """True where nobody recorded the window."""
        return self.confidence == "guess"

    @property
    def model(self) -> str | None:
        """`provider/model` as the registry spells it; as the session names it where that has none."""
        if self.lookup is None or self.is_guess:
            return self.state.model
        return named(self.lookup)

    @property
    def window_number(self) -> str:
        """`200,000`; with a question mark where it is a guess."""
        if self.window is None:
            return "unknown"
        return f"{self.window:,}{'?' if self.is_guess else ''}"

    @property
    def window_origin(self) -> str:
        """Where the window comes from, in a few words."""
        match self.confidence:
            case "override":
                return "given by you"
            case "observed":
                return "learned from the provider"
            case "guess":
                return "a guess"
            case confidence:
                return f"registry: {confidence}"


def known(client: Client, session_id: str, conversation: Conversation) -> Known:
    """Asks the daemon what it knows of a session's model."""
    state = client.ask("agent/state", {"session_id": session_id}, StateResult)
    lookup = None
    if state.model is not None:
        lookup = client.ask("models/lookup", {"model": state.model}, LookupResult)
    counter = counter_of(state, lookup)
    tools = [msgspec.json.decode(raw, type=Tool) for raw in conversation.tools]
    return Known(
        state=state,
        lookup=lookup,
        counter=counter,
        system_tokens=system_tokens(conversation.system_prompt, counter),
        tools_tokens=sum(tool_tokens(tool, counter) for tool in tools),
    )


def counter_of(state: StateResult, lookup: LookupResult | None) -> Counter:
    """What counts a session's texts, as its settings and its model have it."""
    settings = state.compaction.settings
    estimator = msgspec.json.decode(settings["estimator"].value, type=str)
    if estimator == "chars4":
        profile = msgspec.json.decode(settings["profile"].value, type=str)
        estimator = PROFILES[profile].rules.chars4
    return counter_for(estimator, lookup.tokenizer if lookup else None)


def named(found: LookupResult) -> str:
    """`provider/model`."""
    return found.model if found.provider is None else f"{found.provider}/{found.model}"


def beside_messages(conversation: Conversation, counter: Counter) -> int | None:
    """Tokens that the provider reports beside the messages: system prompt, tools.

    The input of the first answer that has a report, less our estimate of what precedes it; none where no
    answer has one. O(messages before it).
    """
    before = 0
    for message, _ in conversation.messages:
        if message.role == "assistant" and message.usage is not None:
            size = context_size(normalise(message.usage)[0])
            if size > 0:
                return max(0, size - before)
        before += message_tokens(message, counter)
    return None

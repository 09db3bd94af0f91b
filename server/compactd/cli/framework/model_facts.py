"""What the daemon knows of a session's model: window, source, prices, and how tokens are counted."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from compactd.cli.framework.load_file import Begun, Conversation
from compactd.client import Client
from compactd.core.budget.profiles import PROFILES
from compactd.core.budget.recorded_window import Recorded
from compactd.core.tokens.counting import Counter, system_tokens, tool_tokens
from compactd.models.tokenizers.counters import counter_for
from compactd.protocol.messages import Confidence, Tool
from compactd.protocol.wire import LookupResult, StateResult

NAME_IT = "--model ID or --window N tells it"
"""What to do about a window that nobody knows."""


class Known(Struct, frozen=True, kw_only=True):
    """A session's model, as far as it is known."""

    state: StateResult
    recorded: Recorded
    """What the session's file tells of the window."""
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
    def is_by_file(self) -> bool:
        """The window is the one that the session's file shows."""
        return self.recorded.window is not None and self.recorded.window == self.window

    @property
    def confidence(self) -> Confidence:
        """Of the window."""
        if self.is_by_file:
            return "guess" if self.recorded.is_guess else "observed"
        return self.state.token_usage.context_window_confidence

    @property
    def is_guess(self) -> bool:
        """True where nobody recorded the window."""
        return self.confidence == "guess"

    @property
    def is_estimate(self) -> bool:
        """True where the window is worked out from what happened in the session."""
        return self.is_by_file and self.recorded.is_estimate

    @property
    def window_source(self) -> str | None:
        """Where the window comes from, in words."""
        return self.recorded.source if self.is_by_file else self.state.budget["window"].source

    @property
    def model(self) -> str | None:
        """`provider/model` as the registry spells it; as the session names it where that has none."""
        if self.lookup is None or self.is_guess:
            return self.state.model
        return named(self.lookup)

    @property
    def window_number(self) -> str:
        """`200,000`; `~200,000` for an estimate, `128,000?` for a guess."""
        if self.window is None:
            return "unknown"
        return f"{'~' if self.is_estimate else ''}{self.window:,}{'?' if self.is_guess else ''}"

    @property
    def window_origin(self) -> str:
        """Where the window comes from, in a few words."""
        if self.is_by_file:
            return f"{'a guess: ' if self.is_guess else ''}{self.recorded.source}"
        match self.confidence:
            case "override":
                return "given by you"
            case "observed":
                return "learned from the provider"
            case "guess":
                return "a guess"
            case confidence:
                return f"registry: {confidence}"


def known(client: Client, begun: Begun, conversation: Conversation) -> Known:
    """Asks the daemon what it knows of a session's model."""
    state = client.ask("agent/state", {"session_id": begun.session_id}, StateResult)
    lookup = None
    if state.model is not None:
        lookup = client.ask("models/lookup", {"model": state.model}, LookupResult)
    counter = counter_of(state, lookup)
    tools = [msgspec.json.decode(raw, type=Tool) for raw in conversation.tools]
    return Known(
        state=state,
        recorded=begun.recorded,
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
    return counter_for(estimator, lookup.tokenizer if lookup else None, lookup.model if lookup else None)


def named(found: LookupResult) -> str:
    """`provider/model`."""
    return found.model if found.provider is None else f"{found.provider}/{found.model}"

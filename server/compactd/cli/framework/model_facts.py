"""What the daemon knows about a session's model: window and its source, prices, token counter."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.load_file import DaemonSession
from compactd.client import Client
from compactd.core.budget.profiles import PROFILES
from compactd.core.budget.recorded_window import NOTHING_RECORDED, Recorded
from compactd.core.tokens.counting import Counter, system_tokens, tool_tokens
from compactd.models.tokenizers.counters import counter_for
from compactd.protocol.messages import Confidence, Tool
from compactd.protocol.wire import LookupResult, StateResult

NAME_IT = "set it with --model ID or --window N"
"""What the user can do about an unknown window."""

MCP = "mcp__"
"""How Claude Code and Codex begin the name of an MCP server's tool (code.claude.com, "MCP", 2026-11)."""


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What is known about a session's model."""

    state: StateResult
    recorded: Recorded
    """What the session's file shows about the window."""
    lookup: LookupResult | None
    """What the registry says about the model; None if neither the file nor the user names a model."""
    counter: Counter
    """The token counter of the session."""
    system_tokens: int = 0
    tools_tokens: int = 0
    mcp_tokens: int = 0
    """Those of `tools_tokens` that are tools of MCP servers."""

    @property
    def fixed_tokens(self) -> int:
        """Tokens of the system prompt and tools that the file contains."""
        return self.system_tokens + self.tools_tokens

    @property
    def lookup_how(self) -> str:
        """How the registry found the model; empty if no model is named."""
        return "" if self.lookup is None else self.lookup.how

    @property
    def window(self) -> int | None:
        """The context window in tokens."""
        return self.state.token_usage.context_window

    @property
    def threshold(self) -> int | None:
        """The size in tokens at which compactd compacts; None if automatic compaction is off."""
        return self.state.token_usage.threshold_tokens if self.state.compaction.enabled else None

    @property
    def is_by_file(self) -> bool:
        """True if the window is the one that the session's file shows."""
        return self.recorded.window is not None and self.recorded.window == self.window

    @property
    def confidence(self) -> Confidence:
        """How reliable the window is."""
        if self.is_by_file:
            return "guess" if self.recorded.is_guess else "observed"
        return self.state.token_usage.context_window_confidence

    @property
    def is_guess(self) -> bool:
        """True if no source states the window."""
        return self.confidence == "guess"

    @property
    def is_estimate(self) -> bool:
        """True if the window was estimated from what happened in the session."""
        return self.is_by_file and self.recorded.is_estimate

    @property
    def window_source(self) -> str | None:
        """Where the window comes from, in words."""
        return self.recorded.source if self.is_by_file else self.state.budget["window"].source

    @property
    def model(self) -> str | None:
        """The model's name: `provider/model` as the registry spells it. If the registry does not know the
        model, the name that the session uses.
        """
        if self.lookup is None or self.is_guess:
            return self.state.model
        return full_model_name(self.lookup)

    @property
    def window_number(self) -> str:
        """The window as text: `200,000`; `~200,000` for an estimate, `128,000?` for a guess."""
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


def ask_model_facts(client: Client, session_id: str) -> ModelFacts:
    """Ask the daemon what it knows about the model of a session."""
    state = client.agent_state(session_id=session_id)
    lookup = None if state.model is None else client.models_lookup(model=state.model)
    return ModelFacts(
        state=state, recorded=NOTHING_RECORDED, lookup=lookup, counter=_counter_of(state, lookup)
    )


def ask_conversation_facts(
    client: Client, begun: DaemonSession, conversation: LoadedConversation
) -> ModelFacts:
    """Ask the daemon what it knows about the model of the session `begun`, and count the tokens of the
    conversation's system prompt and tools.
    """
    facts = ask_model_facts(client, begun.session_id)
    tools = [msgspec.json.decode(raw, type=Tool) for raw in conversation.tools]
    return replace(
        facts,
        recorded=begun.recorded,
        system_tokens=system_tokens(conversation.system_prompt, facts.counter),
        tools_tokens=sum(tool_tokens(tool, facts.counter) for tool in tools),
        mcp_tokens=sum(tool_tokens(tool, facts.counter) for tool in tools if tool.name.startswith(MCP)),
    )


def _counter_of(state: StateResult, lookup: LookupResult | None) -> Counter:
    """Return the token counter that the session's settings and model select."""
    settings = state.compaction.settings
    estimator = msgspec.json.decode(settings["estimator"].value, type=str)
    if estimator == "chars4":
        profile = msgspec.json.decode(settings["profile"].value, type=str)
        estimator = PROFILES[profile].rules.chars4
    return counter_for(estimator, lookup.tokenizer if lookup else None, lookup.model if lookup else None)


def full_model_name(found: LookupResult) -> str:
    """Return `provider/model`, or the model alone if the provider is unknown."""
    return found.model if found.provider is None else f"{found.provider}/{found.model}"

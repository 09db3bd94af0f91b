"""Params and results of our methods, as they stand on the wire.

Longer than other files on purpose: it is one vocabulary, read from top to bottom.

snake_case; ids are strings; times are Unix seconds.

The docstrings of these structs and fields are the public document of the protocol.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from compactd.core.settings import GivenSettings
from compactd.messages import CompactionResult, Confidence, Decision, Status, TokenUsage

SessionId = Annotated[
    str,
    Meta(min_length=1, max_length=256, pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]+$"),
]
"""1 to 256 code points without control characters."""
Positive = Annotated[int, Meta(gt=0, le=2**53)]
Format = str
"""`neutral`, `openai`, `anthropic`; `openai_responses` and `gemini` come with a later version."""


NULL = Raw(b"null")
"""A raw field that was left out: `Raw | None` would refuse objects (msgspec 0.22)."""


class Wire(Struct, frozen=True, kw_only=True):
    """What goes over the wire."""


class Nothing(Wire, frozen=True, kw_only=True):
    """No params, or an empty result."""


class ModelRef(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A model by its parts."""

    id: Annotated[str, Meta(min_length=1)]
    provider: str | None = None
    base_url: str | None = None
    """The endpoint, where it is not the provider's own."""


class ClientInfo(Wire, frozen=True, kw_only=True):
    """Who is speaking."""

    name: str | None = None
    version: str | None = None
    compaction_hook: bool = False
    """The client answers `session/compacting`."""


class Files(Wire, frozen=True, kw_only=True):
    """Files that tools touched, as the client knows them."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


# --- sessions ---------------------------------------------------------------------------------------


class StartParams(Wire, frozen=True, kw_only=True):
    """Params of `session/start`."""

    model: str | ModelRef | None = None
    """`"provider/id"`, or its parts. Left out on a resume: the session's own."""
    session_id: SessionId | None = None
    """The session to resume, or the id to use for a new one."""
    system_prompt: str | None = None
    tools: tuple[Raw, ...] | None = None
    """In our shape, or OpenAI's, Anthropic's or Gemini's."""
    working_dir: str | None = None
    title: str | None = None
    compaction: GivenSettings | None = None
    context_window: Positive | None = None
    """The model's window in tokens, if you know it better than the registry."""
    parent_session_id: SessionId | None = None
    snapshots: bool | None = None
    """Taken with a later version; ignored until then."""
    persist: bool | None = None
    """False keeps the session in memory alone. Default true."""
    durability: Literal["disk", "os"] | None = None
    """`disk` (the default) survives a power cut when answered; `os` survives a killed daemon."""
    client: ClientInfo | None = None


class StartResult(Wire, frozen=True, kw_only=True):
    """Result of `session/start`."""

    session_id: str
    resumed: bool
    read_only: bool
    """Another process writes this session: you can read and follow it."""
    model: str | None
    context_window: int | None
    """Tokens; the same as `token_usage.context_window`."""
    token_usage: TokenUsage
    message_count: int
    """Messages of the view."""
    seq: int
    """The number of the last event sent for this session; 0 at opening."""
    warnings: tuple[str, ...]


class AppendParams(Wire, frozen=True, kw_only=True):
    """Params of `session/append`."""

    session_id: SessionId
    messages: tuple[Raw, ...]
    """Oldest first."""
    usage: Raw = NULL
    """The provider's usage report, in ours or any provider's shape, for the call's last assistant message."""
    epoch: int | None = None
    """Of the context that the report is about; default the last one handed out."""
    format: Format | None = None
    """The shape of `messages`: `neutral` (the default), `openai`, `anthropic`."""
    files: Files | None = None


class AppendResult(Wire, frozen=True, kw_only=True):
    """Result of `session/append`. When it is there, the messages are durable."""

    entry_ids: tuple[str, ...]
    """As long as `messages`; a duplicate has its old id."""
    duplicates: tuple[str, ...]
    """Client ids that were here already, with the same content."""
    pending_calls: tuple[str, ...]
    """Tool calls that have no result yet."""
    token_usage: TokenUsage
    decision: Decision


class SessionParams(Wire, frozen=True, kw_only=True):
    """Params of a method that needs a session and nothing else."""

    session_id: SessionId


class ContextParams(Wire, frozen=True, kw_only=True):
    """Params of `session/context`."""

    session_id: SessionId
    format: Format | None = None


class RepairInfo(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What was mended so that a provider takes the request."""

    kind: str
    entry_id: str | None = None
    call_id: str | None = None


class ContextResult(Wire, frozen=True, kw_only=True):
    """Result of `session/context`: what the next model request must contain."""

    messages: tuple[Raw, ...]
    tokens: int
    """Estimate of the whole request: system prompt, tools and messages, repairs included."""
    epoch: int
    repairs: tuple[RepairInfo, ...]
    system: str | UnsetType = UNSET
    tools: tuple[Raw, ...] | UnsetType = UNSET


class CompactParams(Wire, frozen=True, kw_only=True):
    """Params of `session/compact`. At most one of the budgets."""

    session_id: SessionId
    keep_recent: int | None = None
    """Tokens of the verbatim tail."""
    keep_messages: int | None = None
    """Messages of the verbatim tail."""
    preserve_count: int | None = None
    """Another name of `keep_messages`."""
    target_tokens: int | None = None
    """Tokens of the whole new request, system prompt and tools included."""
    instructions: str | None = None
    """What a summary should look at most."""
    strategy: Literal["auto", "summarize", "extract", "truncate"] | None = None
    model: str | None = None
    """The summariser."""
    force: bool | None = None
    """Where no valid cut exists, compact all but the last two messages."""
    dry_run: bool | None = None
    """Tell what would happen, change nothing."""


class HistoryParams(Wire, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Params of `session/history`."""

    session_id: SessionId
    from_: str | None = None
    """An entry id, inclusive."""
    limit: Positive | None = None


class HistoryEntry(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a session's history."""

    entry_id: str
    kind: str
    """`message`, `compaction`, `prune`, or `compaction_failed`."""
    at: float
    in_context: bool
    message: Raw | UnsetType = UNSET
    compaction: CompactionResult | None = None
    title: str | None = None
    pruned_at: float | None = None


class HistoryResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/history`, oldest first."""

    entries: tuple[HistoryEntry, ...]
    next: str | None = None
    """The entry id to go on from, where `limit` cut the list."""


class SearchParams(Wire, frozen=True, kw_only=True):
    """Params of `session/search`."""

    session_id: SessionId
    query: Annotated[str, Meta(min_length=1)]
    """Plain text; case is ignored."""
    limit: Positive | None = None
    """Default 20."""


class Hit(Wire, frozen=True, kw_only=True):
    """A place where a search found its text."""

    entry_id: str
    role: str
    snippet: str
    in_context: bool
    """False where a compaction took it out of the context."""
    at: float


class SearchResult(Wire, frozen=True, kw_only=True):
    """Result of `session/search`, newest first."""

    hits: tuple[Hit, ...]


class ExpandParams(Wire, frozen=True, kw_only=True):
    """Params of `session/expand`: a compaction, or entries."""

    session_id: SessionId
    compaction_id: str | None = None
    entry_ids: tuple[str, ...] | None = None


class Original(Wire, frozen=True, kw_only=True):
    """A message as it was appended."""

    entry_id: str
    message: Raw


class ExpandResult(Wire, frozen=True, kw_only=True):
    """Result of `session/expand`: the originals, oldest first."""

    entries: tuple[Original, ...]


class UndoResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/undo` and `session/redo`."""

    message_count: int
    token_usage: TokenUsage
    compaction_id: str | None = None
    entry_ids: tuple[str, ...] | None = None
    """Of a prune: the messages that it shortened."""


class SessionInfo(Wire, frozen=True, kw_only=True):
    """One session of `session/list`."""

    session_id: str
    title: str | None
    model: str | None
    message_count: int
    compactions: int
    bytes: int
    updated_at: float
    open: bool
    """Open in this daemon or another one."""


class ListResult(Wire, frozen=True, kw_only=True):
    """Result of `session/list`, newest first."""

    sessions: tuple[SessionInfo, ...]


class ConfigureParams(Wire, frozen=True, kw_only=True):
    """Params of `session/configure`. What is left out stays."""

    session_id: SessionId
    compaction: GivenSettings | None = None
    system_prompt: str | None = None
    tools: tuple[Raw, ...] | None = None
    title: str | None = None


class Setting(Wire, frozen=True, kw_only=True):
    """A value and where it came from."""

    value: Raw
    source: str


class ConfigureResult(Wire, frozen=True, kw_only=True):
    """Result of `session/configure`: every setting in force."""

    settings: dict[str, Setting]
    warnings: tuple[str, ...]


class PinParams(Wire, frozen=True, kw_only=True):
    """Params of `session/pin`."""

    session_id: SessionId
    entry_ids: tuple[str, ...]
    pinned: bool = True


class PinResult(Wire, frozen=True, kw_only=True):
    """Result of `session/pin`: all messages that are pinned now, oldest first."""

    pinned_entry_ids: tuple[str, ...]


# --- the loop ---------------------------------------------------------------------------------------


class Term(Wire, frozen=True, kw_only=True):
    """A term of the budget equation and where it came from."""

    value: int | float | bool | None
    source: str


class CompactionState(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Compactions of a session."""

    enabled: bool
    running: bool
    count: int
    tokens_saved: int
    history: tuple[CompactionResult, ...]
    """Completed ones, oldest first, without their summaries."""
    settings: dict[str, Setting]
    last: CompactionResult | None = None


class StateResult(Wire, frozen=True, kw_only=True):
    """Result of `agent/state`."""

    session_id: str
    status: Status
    model: str | None
    message_count: int
    tools: tuple[str, ...]
    """Names."""
    token_usage: TokenUsage
    budget: dict[str, Term]
    compaction: CompactionState
    queued: int
    """Prompts that wait."""


class BeginResult(Wire, frozen=True, kw_only=True):
    """Result of `turn/begin`."""

    compaction: CompactionResult | None
    pruned: int
    token_usage: TokenUsage
    max_output_tokens: int | UnsetType = UNSET


class EndParams(Wire, frozen=True, kw_only=True):
    """Params of `turn/end`."""

    session_id: SessionId
    messages: tuple[Raw, ...]
    usage: Raw = NULL
    epoch: int | None = None
    format: Format | None = None
    stop_reason: str | None = None
    files: Files | None = None


class EndResult(Wire, frozen=True, kw_only=True):
    """Result of `turn/end`."""

    entry_ids: tuple[str, ...]
    duplicates: tuple[str, ...]
    pending_calls: tuple[str, ...]
    token_usage: TokenUsage
    decision: Decision
    silent_overflow: bool
    """The report says that the request was larger than the window: the next `turn/begin` compacts."""


# --- without a session ------------------------------------------------------------------------------


class LookupParams(Wire, frozen=True, kw_only=True):
    """Params of `models/lookup`."""

    model: Annotated[str, Meta(min_length=1, max_length=4096)]
    provider: str | None = None
    base_url: str | None = None


class LookupResult(Wire, frozen=True, kw_only=True):
    """Result of `models/lookup`. Tokens."""

    model: str
    provider: str | None
    context_window: int
    input_limit: int | None
    output_limit: int | None
    upper_bound: bool
    """A local server may have loaded the model with less."""
    confidence: Confidence
    source: str
    how: str
    tokenizer: str | None
    pricing: Raw
    retired: bool


class CountParams(Wire, frozen=True, kw_only=True):
    """Params of `tokens/count`: a text, or messages."""

    model: str | None = None
    text: str | None = None
    messages: tuple[Raw, ...] | None = None
    format: Format | None = None


class CountResult(Wire, frozen=True, kw_only=True):
    """Result of `tokens/count`."""

    tokens: int
    exact: bool
    """The model's own tokenizer counted."""
    method: str


class InfoResult(Wire, frozen=True, kw_only=True):
    """Result of `daemon/info`."""

    version: str
    protocol_version: str
    pid: int
    uptime_s: float
    sessions: int
    paths: dict[str, str]
    encodings: tuple[str, ...]
    platform: str
    """`tested` on Linux and macOS, else `untested`."""

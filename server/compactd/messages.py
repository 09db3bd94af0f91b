"""The vocabulary: messages, usage, results and events, as frozen values without behaviour.

Longer than other files on purpose: it is one vocabulary, read from top to bottom.

Field docstrings are the public document of each field. Token counts are integers of the session's
estimator unless a field says otherwise; times are Unix seconds (UTC) ending in `_at`.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

Role = Literal["user", "assistant", "tool", "system"]
Trigger = Literal["manual", "threshold", "overflow", "silent_overflow", "model_switch"]
Strategy = Literal["summarize", "extract", "truncate"]
Confidence = Literal["override", "observed", "fact", "disputed", "guess"]
FileState = Literal["unchanged", "changed", "missing", "unknown"]
Status = Literal["idle", "running", "streaming", "executing_tools", "compacting", "unknown"]
Change = Literal["pin", "title", "settings", "tools", "branch"]
Owner = Literal["this", "other", "none"]
PinReason = Literal["request", "pinned", "command"]
Author = Literal[
    "user",
    "assistant",
    "tool",
    "file",
    "subagent",
    "skill",
    "notification",
    "reminder",
    "hook",
    "summary",
    "unknown",
]


# --- messages ---------------------------------------------------------------------------------------


class BlockMeta(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What programs say about a block. Fields we do not know stay in the message's own bytes."""

    author: str | None = None
    """Who wrote this block, where it is another one than the message's. As in the message's `meta`."""


class Text(Struct, frozen=True, kw_only=True, tag="text", omit_defaults=True):
    """Plain text."""

    text: str
    meta: BlockMeta | None = None


class Thinking(Struct, frozen=True, kw_only=True, tag="thinking", omit_defaults=True):
    """A model's reasoning. Sent back verbatim with its signature, or not at all."""

    text: str = ""
    signature: str | None = None
    redacted: str | None = None
    """The provider's opaque form, where the text is hidden."""


class Image(Struct, frozen=True, kw_only=True, tag="image", omit_defaults=True):
    """A picture, by its base64 `data` or its `url`. Counted by its pixels, never by its bytes."""

    media_type: str = "image/png"
    data: str | None = None
    url: str | None = None
    width: int | None = None
    height: int | None = None


class Document(Struct, frozen=True, kw_only=True, tag="document", omit_defaults=True):
    """A file given to the model: text, base64 `data`, or a `url`."""

    media_type: str = "application/pdf"
    title: str | None = None
    text: str | None = None
    data: str | None = None
    url: str | None = None
    pages: int | None = None
    meta: BlockMeta | None = None


class ToolCall(Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A call the model made. `arguments` is kept byte for byte."""

    call_id: str
    name: str
    arguments: Raw = Raw(b"{}")
    """The JSON value as the client sent it: an object, or OpenAI's string."""


class ToolResult(Struct, frozen=True, kw_only=True, tag="tool_result", omit_defaults=True):
    """What a call gave back."""

    call_id: str
    content: str | tuple[Block, ...] = ""
    """Text, or blocks. Any other JSON arrives here as its text, byte for byte."""
    name: str | None = None
    is_error: bool = False


class Opaque(Struct, frozen=True, kw_only=True, tag="opaque"):
    """Something only `provider` understands; given back to it untouched."""

    provider: str
    raw: Raw


class Unknown(Struct, frozen=True, kw_only=True):
    """A block of a type this version does not know, kept as it came."""

    type: str
    raw: Raw


Block = Text | Thinking | Image | Document | ToolCall | ToolResult | Opaque | Unknown


class Meta(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What programs say about a message. Fields we do not know stay in the message's own bytes."""

    type: str | None = None
    """`compaction_summary` marks a summary of ours."""
    kind: str | None = None
    """`bash_execution` marks a user message that holds a shell command the user ran and its output."""
    author: str | None = None
    """Who wrote the message: `user` (a person typed it), `assistant`, `tool`, `file`, `subagent`, `skill`,
    `notification`, `reminder`, `hook`, `summary` or `unknown`; any other name counts as `unknown`. Left out,
    the role decides, and fenced code, quotations and tagged blocks in a user's message are not the person's
    words. Only what the author `user` said can set a constraint, a goal or a request; `user` counts only in
    a message of role `user` that is not `synthetic`."""
    synthetic: bool = False
    """No person wrote it."""
    pinned: bool = False
    """Stays in every later view, within a cap."""
    compaction_id: str | None = None
    read_files: tuple[str, ...] = ()
    """Of a summary: the files that were read and not changed. A summary always has it."""
    modified_files: tuple[str, ...] = ()
    """Of a summary: the files that were changed. A summary always has it."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation."""

    role: Role
    content: tuple[Block, ...]
    """Oldest first. A string on the wire is one text block."""
    id: str | None = None
    """The client's id, if it gave one."""
    created_at: float | None = None
    usage: Raw | None = None
    """The provider's usage report as it came, if the message carries one."""
    stop_reason: str | None = None
    meta: Meta | None = None


class Tool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool offered to the model."""

    name: str
    description: str | None = None
    input_schema: Raw = Raw(b"{}")


# --- usage ------------------------------------------------------------------------------------------


class Usage(Struct, frozen=True, kw_only=True):
    """A provider's report of one request, normalised. Tokens."""

    input_tokens: int = 0
    """Without what was read from or written to the cache."""
    output_tokens: int = 0
    """Reasoning included."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    context_window: int | None = None
    """The model's window, where the report names it."""


class TokenUsage(Struct, frozen=True, kw_only=True):
    """Where a session stands: what was billed, and how full the context is. Tokens."""

    prompt_tokens: int = 0
    """Sum over all reports of input and cache. Billing; decides nothing."""
    completion_tokens: int = 0
    total_tokens: int = 0
    """`prompt_tokens` + `completion_tokens`, cumulative. Billing; decides nothing."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    last_prompt_tokens: int = 0
    """Input of the last report, cache included. 0 until the first report of this model, and again after each
    compaction, prune, undo, redo, branch and redaction."""
    current_context_tokens: int | None = None
    """The size of the next request: the last report's input + an estimate of what came after it."""
    compared_tokens: int | None = None
    """The size that the profile compares with `threshold_tokens`: some compare the last report alone, or an
    estimate of everything."""
    current_context_source: Literal["measured", "estimated", "mixed"] = "estimated"
    context_window: int | None = None
    context_window_confidence: Confidence = "guess"
    threshold_tokens: int | None = None
    """Where a compaction becomes due; null if none ever does."""
    percent: float | None = None
    """100 × `current_context_tokens` ÷ `context_window`."""
    decision: Literal["fits", "due", "over"] = "fits"
    """What that size asks for: nothing, a compaction, or that the next request is not sent as it is."""
    epoch: int = 1
    """Rises with every change of the context but an append."""


# --- results ----------------------------------------------------------------------------------------


class Decision(Struct, frozen=True, kw_only=True):
    """Whether the conversation fits, a compaction is due, or the request is over the cap."""

    kind: Literal["fits", "due", "over"]
    used: int
    """The size that decided: the one that the profile compares with the threshold, or if `over`, the size of
    the whole next request. Tokens."""
    threshold: int | None
    """Where a compaction becomes due; null if none ever does."""
    window: int | None


class Floor(Struct, frozen=True, kw_only=True):
    """What no compaction can remove. Tokens."""

    system: int
    tools: int
    last_request: int
    summary: int


class Retention(Struct, frozen=True, kw_only=True):
    """Facts of the removed text that were used more than once, looked up in the new context."""

    score: float
    """`kept` ÷ all, 0 to 1; 1 where there was none."""
    kept: int
    lost: tuple[str, ...]
    """The facts that are missing, most used first, at most 50."""
    before: float | UnsetType = UNSET
    """The score of the model's own summary, before anything was added; left out where no model wrote."""


class RereadAdvice(Struct, frozen=True, kw_only=True):
    """A file that the last turns worked on, and whether it is on disk as the session saw it last."""

    path: str
    """As the conversation names it."""
    state: FileState
    """`unknown`: the session did not see the whole file, or it could not be looked at."""
    size_bytes: int | UnsetType = UNSET
    """On disk now."""


class Pinned(Struct, frozen=True, kw_only=True):
    """A message that stays word for word although it is older than the tail."""

    entry_id: str
    reason: PinReason
    """`request`: the newest request, or the calls and results in one message with it. `pinned`:
    `session/pin` or the message's `meta` says so. `command`: the request before the newest shell command."""


class CompactionResult(Struct, frozen=True, kw_only=True):
    """What a compaction did, or why it did nothing. Tokens are of the whole request."""

    compacted: bool
    reason: str = ""
    """Why nothing was done, or why fewer messages were kept than asked for. Empty where all went as asked."""
    compaction_id: str | None = None
    trigger: Trigger = "manual"
    strategy: Strategy = "extract"
    messages_before: int = 0
    messages_after: int = 0
    messages_removed: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    tokens_saved: int = 0
    first_kept_entry_id: str | None = None
    kept_messages: int = 0
    """The verbatim tail, without pinned messages and summary."""
    pinned_entry_ids: tuple[str, ...] = ()
    pinned: tuple[Pinned, ...] = ()
    """The same with the reason of each; empty for compactions of earlier versions."""
    split_turn: bool = False
    summary: str = ""
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    retention: Retention | None = None
    unfounded: tuple[str, ...] | UnsetType = UNSET
    """Paths, names, numbers and commands that a model's summary states and the conversation does not hold, at
    most 20; left out where there are none. The summary names them too."""
    remarks: tuple[str, ...] | UnsetType = UNSET
    """Lines that a model's summary put in the user's name and the user's words do not hold, as the model
    wrote them. They stand in it as the model's remarks, marked `(model)`. Left out if there are none."""
    files_to_reread: tuple[RereadAdvice, ...] | UnsetType = UNSET
    """Files that the last turns worked on, newest first; left out where none is known. Advice only."""
    pruned_tool_results: int = 0
    created_at: float = 0.0
    duration_ms: int = 0
    model: str | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    cost: float | UnsetType = UNSET
    floor: Floor | UnsetType = UNSET
    warnings: tuple[str, ...] | UnsetType = UNSET
    """Parameters of this `session/compact` that were ignored because nobody knows them. Left out if there are
    none."""


# --- events -----------------------------------------------------------------------------------------
# Each goes out as `agent/event` with `session_id` and `seq` before its own fields.


class ContextUsage(Struct, frozen=True, kw_only=True):
    """The context after a turn. Tokens."""

    tokens: int
    usage_tokens: int
    """What the provider's last report measured, its answer included; 0 without a report."""
    trailing_tokens: int
    """Estimated, since then."""


class AgentStart(Struct, frozen=True, kw_only=True, tag="agent_start"):
    """The daemon's own loop took a prompt up. Exactly one `agent_end` or `error` follows."""

    turn_id: str


class TurnStart(Struct, frozen=True, kw_only=True, tag="turn_start"):
    """A model request is about to be sent. Exactly one `turn_end` follows, whatever happens."""

    turn_id: str
    """The prompt that is being answered, as `agent/prompt` named it."""


class MessageStart(Struct, frozen=True, kw_only=True, tag="message_start"):
    """The model is asked; what it writes follows. Exactly one `message_end` follows. A request that is sent
    again starts a new message."""

    turn_id: str
    """The prompt that is being answered."""


class MessageDelta(Struct, frozen=True, kw_only=True, tag="message_delta"):
    """More of the answer's text. May be left out while the client does not read."""

    delta: str
    """The text since the last delta."""
    turn_id: str
    """The prompt that is being answered."""


class ThinkingDelta(Struct, frozen=True, kw_only=True, tag="thinking_delta"):
    """More of the model's reasoning. May be left out while the client does not read."""

    delta: str
    """The text since the last delta."""
    turn_id: str
    """The prompt that is being answered."""


class MessageEnd(Struct, frozen=True, kw_only=True, tag="message_end"):
    """The whole answer, or what came of it."""

    message: Raw
    """Null if nothing came, or if the request failed."""
    stop_reason: str | None = None
    """Why the model stopped; `error` if the request failed, `aborted` if the client took the prompt back."""
    turn_id: str
    """The prompt that is being answered."""
    entry_id: str | None = None
    """The entry of the message in the session; null if `message` is null."""


class MessageQueued(Struct, frozen=True, kw_only=True, tag="message_queued"):
    """A prompt waits for its turn; it is durable."""

    turn_id: str
    """The prompt's id; `prompt/drop` takes it back."""


class ToolExecutionStart(Struct, frozen=True, kw_only=True, tag="tool_execution_start"):
    """The client is asked to run a tool. Calls that are answered without the client have no such event."""

    call_id: str
    name: str
    """The tool's."""
    turn_id: str
    """The prompt that is being answered."""
    entry_id: str | None = None
    """The message with the call."""


class ToolExecutionEnd(Struct, frozen=True, kw_only=True, tag="tool_execution_end"):
    """A tool ended."""

    call_id: str
    name: str
    """The tool's."""
    is_error: bool
    """The tool failed, or gave no result in time."""
    turn_id: str
    """The prompt that is being answered."""
    entry_id: str | None = None
    """The message with the result; null if there is none, because the prompt was aborted."""


class Retry(Struct, frozen=True, kw_only=True, tag="retry"):
    """A request failed and is sent again."""

    attempt: int
    """2 for the first repetition."""
    delay_s: float
    """Seconds until it is sent."""
    reason: str
    """One sentence."""
    turn_id: str | None = None
    """The prompt that is being answered; null for a summariser's request."""


class AgentEnd(Struct, frozen=True, kw_only=True, tag="agent_end"):
    """The prompt was answered, or ended."""

    turn_id: str
    usage: TokenUsage
    context_window: int | None
    stop_reason: str


class AgentAbort(Struct, frozen=True, kw_only=True, tag="agent_abort"):
    """The client took the prompt back."""

    turn_id: str


class AgentError(Struct, frozen=True, kw_only=True, tag="error"):
    """The prompt could not be answered."""

    turn_id: str
    code: int
    message: str


class TurnEnd(Struct, frozen=True, kw_only=True, tag="turn_end"):
    """A model's answer was taken in, or the request came to nothing. Follows each `turn_start`, and the
    client's own `turn/end`."""

    message: Raw
    """The answer; null if there is none."""
    usage: Usage | None
    context_usage: ContextUsage
    turn_id: str | None = None
    """The prompt that is being answered; null after the client's own `turn/end`."""
    entry_id: str | None = None
    """The entry of `message` in the session; null if that is null."""


class UsageUpdate(Struct, frozen=True, kw_only=True, tag="usage_update"):
    """The numbers of the gauge changed."""

    usage: TokenUsage
    context_window: int | None


class OverflowDetected(Struct, frozen=True, kw_only=True, tag="overflow_detected"):
    """A request was, or silently became, too large for the model."""

    source: str
    limit: int | None
    requested: int | None


class CompactionStart(Struct, frozen=True, kw_only=True, tag="compaction_start"):
    """A compaction began. Exactly one `compaction_end` with the same id follows."""

    compaction_id: str
    trigger: Trigger
    message_count: int
    tokens_before: int


class CompactionProgress(Struct, frozen=True, kw_only=True, tag="compaction_progress", omit_defaults=True):
    """How far a compaction is."""

    compaction_id: str
    phase: str
    fraction: float
    delta: str | None = None


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """An error as events carry it."""

    code: int
    message: str


class CompactionEnd(Struct, frozen=True, kw_only=True, tag="compaction_end", omit_defaults=True):
    """A compaction ended."""

    compaction_id: str
    status: Literal["completed", "failed", "cancelled", "skipped"]
    result: CompactionResult | None = None
    error: ErrorInfo | None = None


class PruneEnd(Struct, frozen=True, kw_only=True, tag="prune_end"):
    """Old tool output was replaced by stubs."""

    pruned: int
    tokens_saved: int


class ModelChanged(Struct, frozen=True, kw_only=True, tag="model_changed"):
    """The session's model is another one."""

    model: str
    context_window: int | None


class SessionClosed(Struct, frozen=True, kw_only=True, tag="session_closed"):
    """The session is no longer open here."""

    reason: str


class MessageAppended(Struct, frozen=True, kw_only=True, tag="message_appended"):
    """A message became part of the session, whoever appended it."""

    entry_id: str
    role: Role
    client: str | None = None
    """The name of the client whose request brought the message, as it gave it in `client.name`. Null if it
    gave none, if the daemon made the message, or if another process appended it."""
    turn_id: str | UnsetType = UNSET
    """In the daemon's own loop: the prompt that the message belongs to."""


class SessionChanged(Struct, frozen=True, kw_only=True, tag="session_changed"):
    """Something about the session changed that is no message: read it again to see what it is now."""

    what: Change
    """`pin`: which messages are pinned (`session/history`). `title`. `settings`: compaction settings, system
    prompt or snapshots. `tools`. `branch`: the context goes on from another entry (`session/context`)."""
    entry_ids: tuple[str, ...] = ()
    """The entries that were pinned or let go, or the one that the branch goes on from."""


class WriterChanged(Struct, frozen=True, kw_only=True, tag="writer_changed"):
    """Another process, or none, or this daemon writes the session from now on."""

    owner: Owner
    """`none`: nobody writes it; `session/start` takes it over. `other`: another process does. `this`: this
    daemon took it over."""


Event = (
    AgentStart
    | TurnStart
    | MessageStart
    | MessageDelta
    | ThinkingDelta
    | MessageEnd
    | MessageQueued
    | ToolExecutionStart
    | ToolExecutionEnd
    | Retry
    | AgentEnd
    | AgentAbort
    | AgentError
    | TurnEnd
    | UsageUpdate
    | OverflowDetected
    | CompactionStart
    | CompactionProgress
    | CompactionEnd
    | PruneEnd
    | ModelChanged
    | SessionClosed
    | MessageAppended
    | SessionChanged
    | WriterChanged
)

encode = msgspec.json.Encoder().encode
"""A value of this module as compact JSON."""

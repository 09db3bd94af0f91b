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
    """The text; may be empty."""
    meta: BlockMeta | None = None
    """What programs say about this block. Left out: what the message's `meta` says."""


class Thinking(Struct, frozen=True, kw_only=True, tag="thinking", omit_defaults=True):
    """A model's reasoning. Sent back verbatim with its signature, or not at all."""

    text: str = ""
    """The reasoning; empty if the provider hides it."""
    signature: str | None = None
    """The provider's signature of the text, sent back unchanged. Null: none, so that some providers refuse
    the block; then it is left out of the request."""
    redacted: str | None = None
    """The provider's opaque form, where the text is hidden."""


class Image(Struct, frozen=True, kw_only=True, tag="image", omit_defaults=True):
    """A picture, by its base64 `data` or its `url`. Counted by its pixels, never by its bytes."""

    media_type: str = "image/png"
    """MIME type, such as `image/png`."""
    data: str | None = None
    """The picture in base64. Give this or `url`."""
    url: str | None = None
    """Address of the picture."""
    width: int | None = None
    """Pixels; null if not known, then read from `data`, or assumed."""
    height: int | None = None
    """Pixels; as `width`."""


class Document(Struct, frozen=True, kw_only=True, tag="document", omit_defaults=True):
    """A file given to the model: text, base64 `data`, or a `url`."""

    media_type: str = "application/pdf"
    """MIME type, such as `application/pdf` or `text/plain`."""
    title: str | None = None
    """Name of the document, such as its file's."""
    text: str | None = None
    """The document's text. Give one of `text`, `data` and `url`."""
    data: str | None = None
    """The document in base64."""
    url: str | None = None
    """Address of the document."""
    pages: int | None = None
    """Number of pages; null if not known. The size in tokens is estimated from it."""
    meta: BlockMeta | None = None
    """What programs say about this block. Left out: what the message's `meta` says."""


class ToolCall(Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A call the model made. `arguments` is kept byte for byte."""

    call_id: str
    """The provider's id of the call; its result names it."""
    name: str
    """Name of the tool."""
    arguments: Raw = Raw(b"{}")
    """The JSON value as the client sent it: an object, or OpenAI's string."""


class ToolResult(Struct, frozen=True, kw_only=True, tag="tool_result", omit_defaults=True):
    """What a call gave back."""

    call_id: str
    """The call that this answers."""
    content: str | tuple[Block, ...] = ""
    """Text, or blocks. Any other JSON arrives here as its text, byte for byte."""
    name: str | None = None
    """Name of the tool. Null: the call's."""
    is_error: bool = False
    """True if the tool failed."""


class Opaque(Struct, frozen=True, kw_only=True, tag="opaque"):
    """Something only `provider` understands; given back to it untouched."""

    provider: str
    """The provider that understands it, such as `openai`."""
    raw: Raw
    """The value, byte for byte."""


class Unknown(Struct, frozen=True, kw_only=True):
    """A block of a type this version does not know, kept as it came."""

    type: str
    """The block's own type."""
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
    """Of a summary: the compaction that made it."""
    read_files: tuple[str, ...] = ()
    """Of a summary: the files that were read and not changed. A summary always has it."""
    modified_files: tuple[str, ...] = ()
    """Of a summary: the files that were changed. A summary always has it."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation."""

    role: Role
    """Who speaks. `tool` holds results of tool calls, which may also stand in a `user` message."""
    content: tuple[Block, ...]
    """Oldest first. A string on the wire is one text block."""
    id: str | None = None
    """The client's id, if it gave one."""
    created_at: float | None = None
    """When it was written, in Unix seconds. Null: not known."""
    usage: Raw | None = None
    """The provider's usage report as it came, if the message carries one."""
    stop_reason: str | None = None
    """Of an assistant's message: why the model stopped, in the provider's words. Null: not known."""
    meta: Meta | None = None
    """What programs say about this message. Null: nothing."""


class Tool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool offered to the model."""

    name: str
    """Name of the tool."""
    description: str | None = None
    """What the tool is for, as the model reads it."""
    input_schema: Raw = Raw(b"{}")
    """JSON Schema of its arguments."""


# --- usage ------------------------------------------------------------------------------------------


class Usage(Struct, frozen=True, kw_only=True):
    """A provider's report of one request, normalised. Tokens."""

    input_tokens: int = 0
    """Without what was read from or written to the cache."""
    output_tokens: int = 0
    """Reasoning included."""
    cache_read_tokens: int = 0
    """Input that was read from the provider's cache."""
    cache_write_tokens: int = 0
    """Input that was written to the provider's cache."""
    reasoning_tokens: int = 0
    """The part of `output_tokens` that was reasoning."""
    context_window: int | None = None
    """The model's window, where the report names it."""


class TokenUsage(Struct, frozen=True, kw_only=True):
    """Where a session stands: what was billed, and how full the context is. Tokens."""

    prompt_tokens: int = 0
    """Sum over all reports of input and cache. Billing; decides nothing."""
    completion_tokens: int = 0
    """Sum of the output of all reports, reasoning included. Billing; decides nothing."""
    total_tokens: int = 0
    """`prompt_tokens` + `completion_tokens`, cumulative. Billing; decides nothing."""
    cache_read_tokens: int = 0
    """Sum of the input read from a cache. Billing; decides nothing."""
    cache_write_tokens: int = 0
    """Sum of the input written to a cache. Billing; decides nothing."""
    reasoning_tokens: int = 0
    """Sum of the reasoning. Billing; decides nothing."""
    last_prompt_tokens: int = 0
    """Input of the last report, cache included. 0 until the first report of this model, and again after each
    compaction, prune, undo, redo, branch and redaction."""
    current_context_tokens: int | None = None
    """The size of the next request: the last report's input + an estimate of what came after it."""
    compared_tokens: int | None = None
    """The size that the profile compares with `threshold_tokens`: some compare the last report alone, or an
    estimate of everything."""
    current_context_source: Literal["measured", "estimated", "mixed"] = "estimated"
    """Where `current_context_tokens` comes from. `measured`: a report, and nothing came after it. `mixed`: a
    report and an estimate of what came after it. `estimated`: no report of this context."""
    context_window: int | None = None
    """The window in force; null if none is known."""
    context_window_confidence: Confidence = "guess"
    """How sure the window is. `override`: the user set it. `observed`: a server said it. `fact`: the
    registry's sources agree. `disputed`: they disagree. `guess`: nobody knows it."""
    threshold_tokens: int | None = None
    """Where a compaction becomes due; null if none ever does."""
    percent: float | None = None
    """100 × `current_context_tokens` ÷ `context_window`."""
    decision: Literal["fits", "due", "over"] = "fits"
    """What that size asks for: nothing, a compaction, or that the next request is not sent as it is."""
    epoch: int = 1
    """Number of the context, from 1. It rises when the context changes in another way than by an append; a
    report of an older epoch is billed only."""


# --- results ----------------------------------------------------------------------------------------


class Decision(Struct, frozen=True, kw_only=True):
    """Whether the conversation fits, a compaction is due, or the request is over the cap."""

    kind: Literal["fits", "due", "over"]
    """`fits`: send it. `due`: the next `turn/begin` compacts. `over`: the request is too large to be sent as
    it is."""
    used: int
    """The size that decided: the one that the profile compares with the threshold, or if `over`, the size of
    the whole next request. Tokens."""
    threshold: int | None
    """Where a compaction becomes due; null if none ever does."""
    window: int | None
    """The window in force; null if none is known."""


class Floor(Struct, frozen=True, kw_only=True):
    """What no compaction can remove. Tokens."""

    system: int
    """The system prompt."""
    tools: int
    """The definitions of the tools."""
    last_request: int
    """The newest request of the user, with what belongs to it."""
    summary: int
    """The smallest summary."""


class Retention(Struct, frozen=True, kw_only=True):
    """Facts of the removed text that were used more than once, looked up in the new context."""

    score: float
    """`kept` ÷ all, 0 to 1; 1 where there was none."""
    kept: int
    """Facts that the new context holds."""
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
    """The entry of the message."""
    reason: PinReason
    """`request`: the newest request, or the calls and results in one message with it. `pinned`:
    `session/pin` or the message's `meta` says so. `command`: the request before the newest shell command."""


class CompactionResult(Struct, frozen=True, kw_only=True):
    """What a compaction did, or why it did nothing. Tokens are of the whole request."""

    compacted: bool
    """True if the context changed, or with `dry_run` would change."""
    reason: str = ""
    """Why nothing was done, or why fewer messages were kept than asked for. Empty where all went as asked."""
    compaction_id: str | None = None
    """Id of the compaction; null if there was none, and of a dry run."""
    trigger: Trigger = "manual"
    """Why it was made. `manual`: a request. `threshold`: it was due. `overflow`: the provider refused a
    request. `silent_overflow`: a report showed that the window was full. `model_switch`: the new model's
    window is smaller."""
    strategy: Strategy = "extract"
    """How the summary was made: by a model, by code, or not at all."""
    messages_before: int = 0
    """Messages of the context before."""
    messages_after: int = 0
    """Messages of the context after, the summary included."""
    messages_removed: int = 0
    """Messages that the summary replaced."""
    tokens_before: int = 0
    """Size of the next request before."""
    tokens_after: int = 0
    """Size of the next request after; the same as before if nothing was done."""
    tokens_saved: int = 0
    """`tokens_before` - `tokens_after`."""
    first_kept_entry_id: str | None = None
    """The oldest message of the verbatim tail; null if there is none."""
    kept_messages: int = 0
    """The verbatim tail, without pinned messages and summary."""
    pinned_entry_ids: tuple[str, ...] = ()
    """Older messages that stay word for word, oldest first."""
    pinned: tuple[Pinned, ...] = ()
    """The same with the reason of each; empty for compactions of earlier versions."""
    split_turn: bool = False
    """True if the cut lies inside a turn: its first part is in the summary, its last part in the tail."""
    summary: str = ""
    """The text that replaces the removed messages. Empty with `truncate`, in `agent/state`, and if it was not
    made."""
    read_files: tuple[str, ...] = ()
    """Files that the replaced messages read and did not change."""
    modified_files: tuple[str, ...] = ()
    """Files that the replaced messages changed."""
    retention: Retention | None = None
    """How many repeated details of the removed messages are still there; null if nothing was replaced."""
    unfounded: tuple[str, ...] | UnsetType = UNSET
    """Paths, names, numbers and commands that a model's summary states and the conversation does not hold, at
    most 20; left out where there are none. The summary names them too."""
    remarks: tuple[str, ...] | UnsetType = UNSET
    """Lines that a model's summary put in the user's name and the user's words do not hold, as the model
    wrote them. They stand in it as the model's remarks, marked `(model)`. Left out if there are none."""
    files_to_reread: tuple[RereadAdvice, ...] | UnsetType = UNSET
    """Files that the last turns worked on, newest first; left out where none is known. Advice only."""
    pruned_tool_results: int = 0
    """Tool results in the tail that were shortened so that it fits."""
    created_at: float = 0.0
    """When it ended, in Unix seconds; 0 if there was none."""
    duration_ms: int = 0
    """How long it took, in milliseconds."""
    model: str | UnsetType = UNSET
    """The summariser, as `provider/id`. Left out if no model was asked."""
    usage: Usage | UnsetType = UNSET
    """The summariser's report, all its requests combined. Left out if there was none."""
    cost: float | UnsetType = UNSET
    """US dollars for the summariser; of a dry run, the most it may be. Left out if not known."""
    floor: Floor | UnsetType = UNSET
    """What takes the room, if the target could not be met. Otherwise left out."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """Parameters of this `session/compact` that were ignored because nobody knows them. Left out if there are
    none."""


# --- events -----------------------------------------------------------------------------------------
# Each goes out as `agent/event` with `session_id` and `seq` before its own fields.


class ContextUsage(Struct, frozen=True, kw_only=True):
    """The context after a turn. Tokens."""

    tokens: int
    """`usage_tokens` + `trailing_tokens`."""
    usage_tokens: int
    """What the provider's last report measured, its answer included; 0 without a report."""
    trailing_tokens: int
    """Estimated, since then."""


class AgentStart(Struct, frozen=True, kw_only=True, tag="agent_start"):
    """The daemon's own loop took a prompt up. Exactly one `agent_end` or `error` follows."""

    turn_id: str
    """The prompt, as `agent/prompt` answered it."""


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
    """Why it ended. Values so far: `stop`, `length` (output limit), `tool_use`, `refusal`, `content_filter`,
    `model_context_window_exceeded`, `pause`, `unknown`, `aborted`, `error`."""
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
    """The call's id, as in `tool/execute`."""
    name: str
    """The tool's."""
    turn_id: str
    """The prompt that is being answered."""
    entry_id: str | None = None
    """The message with the call."""


class ToolExecutionEnd(Struct, frozen=True, kw_only=True, tag="tool_execution_end"):
    """A tool ended."""

    call_id: str
    """The call's id, as in `tool/execute`."""
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
    """The prompt that ended."""
    usage: TokenUsage
    """The numbers at the end of it."""
    context_window: int | None
    """As `usage.context_window`."""
    stop_reason: str
    """Why the last answer ended, as in `message_end`; `aborted` after `agent/abort`; `steps` if the prompt
    reached its limit of model requests."""


class AgentAbort(Struct, frozen=True, kw_only=True, tag="agent_abort"):
    """The client took the prompt back."""

    turn_id: str
    """The prompt that was aborted; its `agent_end` follows."""


class AgentError(Struct, frozen=True, kw_only=True, tag="error"):
    """The prompt could not be answered."""

    turn_id: str
    """The prompt that failed."""
    code: int
    """As the code of an error of JSON-RPC."""
    message: str
    """What happened and what to do, for a person."""


class TurnEnd(Struct, frozen=True, kw_only=True, tag="turn_end"):
    """A model's answer was taken in, or the request came to nothing. Follows each `turn_start`, and the
    client's own `turn/end`."""

    message: Raw
    """The answer; null if there is none."""
    usage: Usage | None
    """The provider's report; null if it gave none."""
    context_usage: ContextUsage
    """How full the context is now."""
    turn_id: str | None = None
    """The prompt that is being answered; null after the client's own `turn/end`."""
    entry_id: str | None = None
    """The entry of `message` in the session; null if that is null."""


class UsageUpdate(Struct, frozen=True, kw_only=True, tag="usage_update"):
    """The numbers of the gauge changed."""

    usage: TokenUsage
    """The numbers now."""
    context_window: int | None
    """As `usage.context_window`."""


class OverflowDetected(Struct, frozen=True, kw_only=True, tag="overflow_detected"):
    """A request was, or silently became, too large for the model."""

    source: str
    """What showed it: `usage` for a report, otherwise the evidence in the error, for a person."""
    limit: int | None
    """The window that was named, in tokens; null if none was."""
    requested: int | None
    """The size that was compared with it, in tokens; null if it is not known."""


class CompactionStart(Struct, frozen=True, kw_only=True, tag="compaction_start"):
    """A compaction began. Exactly one `compaction_end` with the same id follows."""

    compaction_id: str
    """Names it in the events that follow, in its result, and in `session/expand`."""
    trigger: Trigger
    """Why it is made, as in `CompactionResult`."""
    message_count: int
    """Messages of the context."""
    tokens_before: int
    """Size of the next request."""


class CompactionProgress(Struct, frozen=True, kw_only=True, tag="compaction_progress", omit_defaults=True):
    """How far a compaction is."""

    compaction_id: str
    """The compaction that this is about."""
    phase: str
    """What it does. Values so far: `prepare`, `summarize`, `extract`, `truncate`, `check`, `done`."""
    fraction: float
    """How far it is, 0 to 1. Never falls."""
    delta: str | None = None
    """The next piece of the summary that a model writes. Left out otherwise."""


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """An error as events carry it."""

    code: int
    """As the code of an error of JSON-RPC."""
    message: str
    """What happened and what to do, for a person."""


class CompactionEnd(Struct, frozen=True, kw_only=True, tag="compaction_end", omit_defaults=True):
    """A compaction ended."""

    compaction_id: str
    """The compaction that ended."""
    status: Literal["completed", "failed", "cancelled", "skipped"]
    """`completed`: the context changed. `skipped`: there was nothing to do. `failed` and `cancelled`: nothing
    was changed."""
    result: CompactionResult | None = None
    """What it did, with its summary. Of `completed` and `skipped`."""
    error: ErrorInfo | None = None
    """Why it failed. Of `failed`."""


class PruneEnd(Struct, frozen=True, kw_only=True, tag="prune_end"):
    """Old tool output was replaced by stubs."""

    pruned: int
    """Tool results that were replaced."""
    tokens_saved: int
    """Tokens that the context is smaller by."""


class ModelChanged(Struct, frozen=True, kw_only=True, tag="model_changed"):
    """The session's model is another one."""

    model: str
    """The model in force now, as `provider/id`."""
    context_window: int | None
    """Its window in tokens; null if none is known."""


class SessionClosed(Struct, frozen=True, kw_only=True, tag="session_closed"):
    """The session is no longer open here."""

    reason: str
    """Why. Values so far: `closed` (`session/close`), `deleted`."""


class MessageAppended(Struct, frozen=True, kw_only=True, tag="message_appended"):
    """A message became part of the session, whoever appended it."""

    entry_id: str
    """The entry of the message in the session."""
    role: Role
    """Its role."""
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

"""The vocabulary of the protocol: messages, usage, results and events, as frozen values without behaviour.

The file is long on purpose: it is one vocabulary, read from top to bottom.

Field docstrings are the public documentation of each field. Token counts are integers, counted by the
session's estimator unless a field says otherwise. Times are Unix seconds (UTC); their names end in `_at`.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

NULL = Raw(b"null")
"""The JSON value null, undecoded: what an absent field of type `Raw` contains."""

Role = Literal["user", "assistant", "tool", "system"]
Trigger = Literal["manual", "threshold", "overflow", "silent_overflow", "model_switch"]
Strategy = Literal["summarize", "provider", "extract", "truncate"]
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
    """What programs say about a block. Unknown fields are kept in the message's own bytes."""

    author: str | None = None
    """Who wrote this block, if it is not the author of the message. The values are those of the message's
    `meta`."""


class Text(Struct, frozen=True, kw_only=True, tag="text", omit_defaults=True):
    """Plain text."""

    text: str
    """The text; may be empty."""
    meta: BlockMeta | None = None
    """What programs say about this block. Left out, the message's `meta` applies."""


class Thinking(Struct, frozen=True, kw_only=True, tag="thinking", omit_defaults=True):
    """A model's reasoning. Sent back verbatim with its signature, or not at all."""

    text: str = ""
    """The reasoning; empty if the provider hides it."""
    signature: str | None = None
    """The provider's signature of the text, sent back unchanged. Null: there is none. Some providers refuse
    such a block; it is then left out of the request."""
    redacted: str | None = None
    """The provider's opaque form of the reasoning, if the text is hidden."""


class Image(Struct, frozen=True, kw_only=True, tag="image", omit_defaults=True):
    """An image, as base64 `data` or as `url`. Tokens are counted by its pixels, never by its bytes."""

    media_type: str = "image/png"
    """MIME type, such as `image/png`."""
    data: str | None = None
    """The image in base64. Give this or `url`."""
    url: str | None = None
    """Address of the image."""
    width: int | None = None
    """Width in pixels. Null if not known; then it is read from `data` or assumed."""
    height: int | None = None
    """Height in pixels. Null if not known; then it is read from `data` or assumed."""


class Document(Struct, frozen=True, kw_only=True, tag="document", omit_defaults=True):
    """A file given to the model: text, base64 `data`, or a `url`."""

    media_type: str = "application/pdf"
    """MIME type, such as `application/pdf` or `text/plain`."""
    title: str | None = None
    """Name of the document, such as its file name."""
    text: str | None = None
    """The document's text. Give one of `text`, `data` and `url`."""
    data: str | None = None
    """The document in base64."""
    url: str | None = None
    """Address of the document."""
    pages: int | None = None
    """Number of pages; null if not known. The size in tokens is estimated from it."""
    meta: BlockMeta | None = None
    """What programs say about this block. Left out, the message's `meta` applies."""


class ToolCall(Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A call the model made. `arguments` is kept byte for byte."""

    call_id: str
    """The provider's id of the call; its result names it."""
    name: str
    """Name of the tool."""
    arguments: Raw = Raw(b"{}")
    """The JSON value as the client sent it: an object, or a string as in OpenAI's format."""


class ToolResult(Struct, frozen=True, kw_only=True, tag="tool_result", omit_defaults=True):
    """The result of a tool call."""

    call_id: str
    """The call that this is the result of."""
    content: str | tuple[Block, ...] = ""
    """Text, or blocks. Any other JSON is kept as its text, byte for byte."""
    name: str | None = None
    """Name of the tool. Null: the name in the call."""
    is_error: bool = False
    """True if the tool failed."""


class Opaque(Struct, frozen=True, kw_only=True, tag="opaque"):
    """A block that only `provider` understands. It is sent back to that provider unchanged."""

    provider: str
    """The provider that understands it, such as `openai`."""
    raw: Raw
    """The value, byte for byte."""


class Unknown(Struct, frozen=True, kw_only=True):
    """A block of a type that this version does not know, kept as it came."""

    type: str
    """The block's type."""
    raw: Raw


Block = Text | Thinking | Image | Document | ToolCall | ToolResult | Opaque | Unknown


class Meta(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What programs say about a message. Unknown fields are kept in the message's own bytes."""

    type: str | None = None
    """`compaction_summary` marks a summary that compactd wrote."""
    kind: str | None = None
    """`bash_execution` marks a user message that contains a shell command which the user ran, and its
    output."""
    author: str | None = None
    """Who wrote the message: `user` (a person typed it), `assistant`, `tool`, `file`, `subagent`, `skill`,
    `notification`, `reminder`, `hook`, `summary` or `unknown`; any other name counts as `unknown`. Left out,
    the role decides; fenced code, quotations and tagged blocks in a user's message are then not counted as
    written by the user. Only what the author `user` said can set a constraint, a goal or a request. `user`
    counts only in a message of role `user` that is not `synthetic`."""
    synthetic: bool = False
    """True if no person wrote the message."""
    pinned: bool = False
    """True if the message stays in every later context, unless the pinned messages exceed their limit."""
    compaction_id: str | None = None
    """For a summary: the compaction that made it."""
    read_files: tuple[str, ...] = ()
    """For a summary: the files that were read and not changed. A summary always has it."""
    modified_files: tuple[str, ...] = ()
    """For a summary: the files that were changed. A summary always has it."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation."""

    role: Role
    """Who speaks. `tool` contains results of tool calls, which may also be in a `user` message."""
    content: tuple[Block, ...]
    """The blocks, in order. A string on the wire is one text block."""
    id: str | None = None
    """The client's id, if it gave one."""
    created_at: float | None = None
    """When it was written, in Unix seconds. Null: not known."""
    usage: Raw | None = None
    """The provider's usage report as it came, if there is one."""
    stop_reason: str | None = None
    """For an assistant's message: why the model stopped, in the provider's words. Null: not known."""
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


class SummaryUsage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tokens of a summary that a provider wrote while it answered a request."""

    input_tokens: int = 0
    """Input tokens, not counting those read from or written to the cache."""
    output_tokens: int = 0
    """Output tokens: the summary."""
    cache_read_tokens: int = 0
    """Input that was read from the provider's cache."""
    cache_write_tokens: int = 0
    """Input that was written to the provider's cache."""
    cache_write_1h_tokens: int = 0
    """The part of `cache_write_tokens` that stays in the cache for an hour or longer."""


class Usage(Struct, frozen=True, kw_only=True):
    """A provider's usage report for one request, normalised. Tokens."""

    input_tokens: int = 0
    """Input tokens, not counting those read from or written to the cache."""
    output_tokens: int = 0
    """Output tokens, reasoning included."""
    cache_read_tokens: int = 0
    """Input that was read from the provider's cache."""
    cache_write_tokens: int = 0
    """Input that was written to the provider's cache."""
    cache_write_1h_tokens: int = 0
    """The part of `cache_write_tokens` that stays in the cache for an hour or longer. The rest stays for the
    provider's usual time (5 minutes at Anthropic)."""
    reasoning_tokens: int = 0
    """The part of `output_tokens` that was reasoning."""
    context_window: int | None = None
    """The model's window, if the report names it."""
    context_tokens: int | UnsetType = UNSET
    """The size of the context, if the input above is not that: if the provider asked the model several times
    for one answer, the input is the sum of all, and the context is that of the last. Otherwise left out."""
    cleared_tokens: int | UnsetType = UNSET
    """Input that the provider left out because the request told it to clear old tool results or thinking
    (Anthropic's context editing). It is not in the input above. Left out if the report names none."""
    summary: SummaryUsage | UnsetType = UNSET
    """What the provider's own compaction took, in addition to the tokens above. Left out without one."""


class UsageCost(Struct, frozen=True, kw_only=True):
    """What the usage reports of a session cost, in US dollars at list prices. `session/cost` has the bill."""

    billed: float | None
    """All requests and summaries so far; null if the price of some is not known."""
    last: float | None
    """The request that was answered last; null if its price is not known."""


class TokenUsage(Struct, frozen=True, kw_only=True):
    """The tokens of a session: what was billed, and how full the context is."""

    prompt_tokens: int = 0
    """Sum of input and cache over all reports. For billing only."""
    completion_tokens: int = 0
    """Sum of the output of all reports, reasoning included. For billing only."""
    total_tokens: int = 0
    """`prompt_tokens` + `completion_tokens`, over all reports. For billing only."""
    cache_read_tokens: int = 0
    """Sum of the input read from a cache. For billing only."""
    cache_write_tokens: int = 0
    """Sum of the input written to a cache. For billing only."""
    reasoning_tokens: int = 0
    """Sum of the reasoning. For billing only."""
    last_prompt_tokens: int = 0
    """Input of the last report, cache included. 0 until the first report of this model, and again after each
    compaction, prune, undo, redo, branch and redaction."""
    current_context_tokens: int | None = None
    """Size of the next request: the last report's input, plus an estimate of what came after it."""
    compared_tokens: int | None = None
    """The size that the profile compares with `threshold_tokens`. Some profiles compare only the last report,
    or an estimate of everything."""
    current_context_source: Literal["measured", "estimated", "mixed"] = "estimated"
    """Where `current_context_tokens` comes from. `measured`: a report, and nothing came after it. `mixed`: a
    report, and an estimate of what came after it. `estimated`: there is no report of this context."""
    context_window: int | None = None
    """The context window that compactd uses for the model, in tokens; null if none is known."""
    context_window_confidence: Confidence = "guess"
    """How certain the window is. `override`: the user set it. `observed`: a server said it. `fact`: the
    registry's sources agree. `disputed`: they disagree. `guess`: it is unknown, so a default is used."""
    threshold_tokens: int | None = None
    """The size from which a compaction is due; null if none ever is."""
    percent: float | None = None
    """100 × `current_context_tokens` ÷ `context_window`."""
    decision: Literal["fits", "due", "over"] = "fits"
    """`fits`: nothing needs to be done. `due`: a compaction is due. `over`: the next request is too large to
    be sent as it is."""
    epoch: int = 1
    """Number of the context, from 1. It rises when the context changes in another way than by an append. A
    usage report for an older epoch counts for billing only."""
    cost: UsageCost | UnsetType = UNSET
    """What the session cost. Left out before the first usage report."""


# --- results ----------------------------------------------------------------------------------------


class Decision(Struct, frozen=True, kw_only=True):
    """Whether the conversation fits, a compaction is due, or the request is over the cap."""

    kind: Literal["fits", "due", "over"]
    """`fits`: send the request. `due`: the next `turn/begin` compacts. `over`: the request is too large to be
    sent as it is."""
    used: int
    """The size that decided, in tokens: the size that the profile compares with the threshold, or for `over`
    the size of the whole next request."""
    threshold: int | None
    """The size from which a compaction is due; null if none ever is."""
    window: int | None
    """The context window that compactd uses for the model, in tokens; null if none is known."""
    reason: str | UnsetType = UNSET
    """Why the cost of the next requests says to compact now, or not: a sentence with numbers, or why the
    window decides alone. Left out with the setting `when: "window"`, as are the next two fields."""
    payback_turns: float | UnsetType | None = UNSET
    """After how many requests a compaction now has paid for itself; negative if it is cheaper at once. Null
    if that is not known."""
    cold: bool | UnsetType | None = UNSET
    """Whether the provider's prompt cache has expired since the last request; null if that is not known."""


class Floor(Struct, frozen=True, kw_only=True):
    """What no compaction can remove, in tokens."""

    system: int
    """The system prompt."""
    tools: int
    """The definitions of the tools."""
    last_request: int
    """The user's newest request, with what belongs to it; as it is condensed, if the target needs that."""
    summary: int
    """The smallest summary."""


class Retention(Struct, frozen=True, kw_only=True):
    """Facts of the removed text that were used more than once, and whether the new context still contains
    them."""

    score: float
    """`kept` ÷ all facts, 0 to 1; 1 if there are none."""
    kept: int
    """How many facts the new context contains."""
    lost: tuple[str, ...]
    """The facts that are missing, the most used first, at most 50."""
    before: float | UnsetType = UNSET
    """The score of the model's own summary, before anything was added. Left out if no model wrote it."""


class RereadAdvice(Struct, frozen=True, kw_only=True):
    """A file that the last turns worked on, and whether it is on disk as the session last saw it."""

    path: str
    """The path as the conversation names it."""
    state: FileState
    """Whether the file has changed since the session saw it. `missing`: it no longer exists. `unknown`: the
    session did not see the whole file, or the file could not be read."""
    size_bytes: int | UnsetType = UNSET
    """Size of the file on disk now, in bytes."""


class Pinned(Struct, frozen=True, kw_only=True):
    """A message that stays although messages around it were summarised: word for word, unless it is
    `condensed_request`."""

    entry_id: str
    """The entry of the message."""
    reason: PinReason
    """`request`: it is the newest request, or calls and results in one message with it. `pinned`:
    `session/pin` or the message's `meta` says so. `command`: it is the request before the newest shell
    command."""


class CompactionResult(Struct, frozen=True, kw_only=True):
    """What a compaction did, or why it did nothing. Token counts are for the whole request."""

    compacted: bool
    """True if the context changed, or with `dry_run` if it would change."""
    reason: str = ""
    """Why nothing was compacted, what was done differently from the request, such as fewer kept messages, or
    that the cost decided although the window has room. Empty if there is nothing to say."""
    compaction_id: str | None = None
    """Id of the compaction; null if there was none, or for a dry run."""
    trigger: Trigger = "manual"
    """Why it was made. `manual`: a client requested it. `threshold`: the context reached the threshold, or
    the cost decided; then `reason` says so. `overflow`: the provider refused a request. `silent_overflow`: a
    report showed that the window was full. `model_switch`: the new model's window is smaller."""
    strategy: Strategy = "extract"
    """How the summary was made: by a model (`summarize`), by code (`extract`), or not at all (`truncate`).
    `provider`: by the provider's own compaction; `summary` is by code then, for other models."""
    messages_before: int = 0
    """Number of messages in the context before."""
    messages_after: int = 0
    """Number of messages in the context after, the summary included."""
    messages_removed: int = 0
    """Number of messages that the summary replaced."""
    tokens_before: int = 0
    """Size of the next request before the compaction."""
    tokens_after: int = 0
    """Size of the next request after the compaction; the same as before if nothing was done."""
    tokens_saved: int = 0
    """`tokens_before` - `tokens_after`."""
    first_kept_entry_id: str | None = None
    """The oldest message of the tail, the newest messages, which stay word for word; null if there is no
    tail."""
    kept_messages: int = 0
    """Number of messages in the tail, the newest messages, which stay word for word; without pinned messages
    and the summary."""
    pinned_entry_ids: tuple[str, ...] = ()
    """Older messages that stay, oldest first. They stay word for word, except `condensed_request`."""
    pinned: tuple[Pinned, ...] = ()
    """The messages of `pinned_entry_ids`, each with the reason why it stays. Empty for compactions by earlier
    versions."""
    split_turn: bool = False
    """True if the cut is inside a turn: its first part is in the summary, its last part in the tail."""
    summary: str = ""
    """The text that replaces the removed messages. Empty with `truncate`, in `agent/state`, and if no summary
    was made."""
    read_files: tuple[str, ...] = ()
    """Files that the replaced messages read and did not change."""
    modified_files: tuple[str, ...] = ()
    """Files that the replaced messages changed."""
    retention: Retention | None = None
    """Which facts of the removed messages are still in the context; null if no message was removed, and
    with `truncate`, which does not look for them."""
    unfounded: tuple[str, ...] | UnsetType = UNSET
    """Paths, names, numbers and commands that a model's summary states but the conversation does not contain,
    at most 20. The summary names them too. Left out if there are none."""
    remarks: tuple[str, ...] | UnsetType = UNSET
    """Lines that a model's summary put in the user's name without support in the user's words, as the
    model wrote them. In the summary they are marked `(model)`, as the model's remarks. Left out if there
    are none."""
    files_to_reread: tuple[RereadAdvice, ...] | UnsetType = UNSET
    """Files that the last turns worked on, newest first. This is advice only. Left out if none is known."""
    pruned_tool_results: int = 0
    """Number of tool results in the tail that were shortened so that it fits."""
    condensed_request: str | UnsetType = UNSET
    """The entry of the user's newest request, if it is shown condensed because it takes more than a third of
    `target_tokens`. What the user typed stays word for word, if there is room; of what the user pasted, the
    beginning and the end stay. `session/expand` returns the whole. Left out if the request stays word for
    word."""
    created_at: float = 0.0
    """When the compaction ended, in Unix seconds; 0 if there was none."""
    duration_ms: int = 0
    """How long it took, in milliseconds; 0 if it was prepared."""
    prepared: bool | UnsetType = UNSET
    """True if the summary was prepared before the compaction was due (setting `prepare`). Messages that came
    after that stay word for word. Left out otherwise."""
    model: str | UnsetType = UNSET
    """The model that summarised, as `provider/id`. Left out if no model was asked. With `provider`, the
    session's model."""
    usage: Usage | UnsetType = UNSET
    """The usage of the model that summarised, all its requests combined. Left out if there was none."""
    cost: float | UnsetType = UNSET
    """Cost of the summary in US dollars; for a dry run, the most it may cost. Left out if not known."""
    floor: Floor | UnsetType = UNSET
    """The tokens that no compaction can remove, if the target size could not be reached. Otherwise left
    out."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """Parameters of this `session/compact` that were ignored because they are unknown. Left out if there are
    none."""
    decision: Decision | UnsetType = UNSET
    """What the next `turn/begin` would do, and why. Only in a dry run, and only if the setting `when` is not
    `window`."""


# --- events -----------------------------------------------------------------------------------------
# Each is sent as `agent/event`, with `session_id` and `seq` before its own fields.


class ContextUsage(Struct, frozen=True, kw_only=True):
    """The size of the context after a turn, in tokens."""

    tokens: int
    """`usage_tokens` + `trailing_tokens`."""
    usage_tokens: int
    """The size that the provider's last report measured, its answer included; 0 without a report."""
    trailing_tokens: int
    """The estimated size of what came after that report."""


class AgentStart(Struct, frozen=True, kw_only=True, tag="agent_start"):
    """The daemon's own loop started on a prompt. Exactly one `agent_end` or `error` follows."""

    turn_id: str
    """The prompt's id, as in the result of `agent/prompt`."""


class TurnStart(Struct, frozen=True, kw_only=True, tag="turn_start"):
    """A model request is about to be sent. Exactly one `turn_end` follows in any case."""

    turn_id: str
    """The prompt that is being answered; its id as in the result of `agent/prompt`."""


class MessageStart(Struct, frozen=True, kw_only=True, tag="message_start"):
    """The model was asked and will write an answer. Exactly one `message_end` follows. A request that is sent
    again starts a new message."""

    turn_id: str
    """The prompt that is being answered."""


class MessageDelta(Struct, frozen=True, kw_only=True, tag="message_delta"):
    """More text of the answer. Deltas may be left out while the client does not read."""

    delta: str
    """The text since the last delta."""
    turn_id: str
    """The prompt that is being answered."""


class ThinkingDelta(Struct, frozen=True, kw_only=True, tag="thinking_delta"):
    """More of the model's reasoning. Deltas may be left out while the client does not read."""

    delta: str
    """The reasoning since the last delta."""
    turn_id: str
    """The prompt that is being answered."""


class MessageEnd(Struct, frozen=True, kw_only=True, tag="message_end"):
    """The end of an answer, with the whole message."""

    message: Raw
    """The whole message; null if nothing came or the request failed."""
    stop_reason: str | None = None
    """Why it ended. Values so far: `stop`, `length` (output limit), `tool_use`, `refusal`, `content_filter`,
    `model_context_window_exceeded`, `pause`, `unknown`, `aborted`, `error`."""
    turn_id: str
    """The prompt that is being answered."""
    entry_id: str | None = None
    """The entry of the message in the session; null if `message` is null."""


class MessageQueued(Struct, frozen=True, kw_only=True, tag="message_queued"):
    """A prompt waits until earlier ones are answered. It is already durable."""

    turn_id: str
    """The prompt's id; `prompt/drop` takes it back."""


class ToolExecutionStart(Struct, frozen=True, kw_only=True, tag="tool_execution_start"):
    """The client is asked to run a tool. There is no such event for calls that are answered without the
    client."""

    call_id: str
    """The call's id, as in `tool/execute`."""
    name: str
    """Name of the tool."""
    turn_id: str
    """The prompt that is being answered."""
    entry_id: str | None = None
    """The entry of the message with the call."""


class ToolExecutionEnd(Struct, frozen=True, kw_only=True, tag="tool_execution_end"):
    """A tool finished."""

    call_id: str
    """The call's id, as in `tool/execute`."""
    name: str
    """Name of the tool."""
    is_error: bool
    """True if the tool failed or gave no result in time."""
    turn_id: str
    """The prompt that is being answered."""
    entry_id: str | None = None
    """The entry of the message with the result; null if there is none, because the prompt was aborted."""


class Retry(Struct, frozen=True, kw_only=True, tag="retry"):
    """A request failed and will be sent again."""

    attempt: int
    """Number of the next attempt; 2 for the first repetition."""
    delay_s: float
    """Seconds until the request is sent again."""
    reason: str
    """Why the request failed, in one sentence."""
    turn_id: str | None = None
    """The prompt that is being answered; null for a request for a summary."""


class AgentEnd(Struct, frozen=True, kw_only=True, tag="agent_end"):
    """The prompt was answered, or was ended early."""

    turn_id: str
    """The prompt that ended."""
    usage: TokenUsage
    """The token usage at the end of the prompt."""
    context_window: int | None
    """The same as `usage.context_window`."""
    stop_reason: str
    """Why the last answer ended, as in `message_end`; `aborted` after `agent/abort`; `steps` if the prompt
    reached its limit of model requests."""


class AgentAbort(Struct, frozen=True, kw_only=True, tag="agent_abort"):
    """A client aborted the prompt, or the prompt's client left and no other one answers for it."""

    turn_id: str
    """The prompt that was aborted; its `agent_end` follows."""


class AgentError(Struct, frozen=True, kw_only=True, tag="error"):
    """The prompt could not be answered."""

    turn_id: str
    """The prompt that failed."""
    code: int
    """The code that a JSON-RPC error would have."""
    message: str
    """What happened and what to do, for a person."""


class TurnEnd(Struct, frozen=True, kw_only=True, tag="turn_end"):
    """A model request ended, with or without an answer. Follows each `turn_start`, and the client's own
    `turn/end`."""

    message: Raw
    """The answer; null if there is none."""
    usage: Usage | None
    """The provider's report; null if it gave none."""
    context_usage: ContextUsage
    """How full the context is now."""
    turn_id: str | None = None
    """The prompt that is being answered; null after the client's own `turn/end`."""
    entry_id: str | None = None
    """The entry of `message` in the session; null if `message` is null."""


class UsageUpdate(Struct, frozen=True, kw_only=True, tag="usage_update"):
    """The token usage changed."""

    usage: TokenUsage
    """The token usage now."""
    context_window: int | None
    """The same as `usage.context_window`."""


class OverflowDetected(Struct, frozen=True, kw_only=True, tag="overflow_detected"):
    """A request was too large for the model, with an error or without one."""

    source: str
    """How it was recognised: `usage` if by a usage report, otherwise the decisive part of the error, for a
    person."""
    limit: int | None
    """The window that the error or report names, in tokens; null if it names none."""
    requested: int | None
    """The size that was compared with the window, in tokens; null if it is not known."""


class CompactionStart(Struct, frozen=True, kw_only=True, tag="compaction_start"):
    """A compaction began. Exactly one `compaction_end` with the same id follows."""

    compaction_id: str
    """Id of the compaction, used in the events that follow, in its result, and in `session/expand`."""
    trigger: Trigger
    """Why it is made, as in `CompactionResult`."""
    message_count: int
    """Number of messages in the context."""
    tokens_before: int
    """Size of the next request."""


class CompactionProgress(Struct, frozen=True, kw_only=True, tag="compaction_progress", omit_defaults=True):
    """The progress of a compaction."""

    compaction_id: str
    """The compaction that this is about."""
    phase: str
    """The current phase. Values so far: `prepare`, `summarize`, `provider`, `extract`, `truncate`, `check`,
    `done`."""
    fraction: float
    """The share that is done, 0 to 1. It never decreases."""
    delta: str | None = None
    """The next piece of the summary that a model is writing. Left out otherwise."""


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """An error inside an event."""

    code: int
    """The code that a JSON-RPC error would have."""
    message: str
    """What happened and what to do, for a person."""


class CompactionEnd(Struct, frozen=True, kw_only=True, tag="compaction_end", omit_defaults=True):
    """A compaction ended."""

    compaction_id: str
    """The compaction that ended."""
    status: Literal["completed", "failed", "cancelled", "skipped"]
    """`completed`: the context changed. `skipped`: there was nothing to do. `failed` and `cancelled`: nothing
    changed."""
    result: CompactionResult | None = None
    """What the compaction did, with its summary. Only if the status is `completed` or `skipped`."""
    error: ErrorInfo | None = None
    """Why it failed. Only if the status is `failed`."""


class PruneEnd(Struct, frozen=True, kw_only=True, tag="prune_end"):
    """Old tool output was replaced by stubs."""

    pruned: int
    """Number of tool results that were replaced."""
    tokens_saved: int
    """How many tokens smaller the context is."""


class ModelChanged(Struct, frozen=True, kw_only=True, tag="model_changed"):
    """The session's model changed."""

    model: str
    """The session's model from now on, as `provider/id`."""
    context_window: int | None
    """The new model's window in tokens; null if none is known."""


class SessionClosed(Struct, frozen=True, kw_only=True, tag="session_closed"):
    """The session is no longer open here."""

    reason: str
    """Why it was closed. Values so far: `closed` (`session/close`), `deleted`."""


class MessageAppended(Struct, frozen=True, kw_only=True, tag="message_appended"):
    """A message was appended to the session by any client, the daemon or another process."""

    entry_id: str
    """The entry of the message in the session."""
    role: Role
    """Role of the message."""
    client: str | None = None
    """Name of the client whose request brought the message, as given in `client.name`. Null if the client
    gave none, if the daemon made the message, or if another process appended it."""
    turn_id: str | UnsetType = UNSET
    """In the daemon's own loop: the prompt that the message belongs to."""


class SessionChanged(Struct, frozen=True, kw_only=True, tag="session_changed"):
    """Something about the session other than its messages changed. Read it again to see the new value."""

    what: Change
    """What changed. `pin`: which messages are pinned (`session/history`). `title`. `settings`: compaction
    settings, system prompt or snapshots. `tools`. `branch`: the context continues from another entry
    (`session/context`)."""
    entry_ids: tuple[str, ...] = ()
    """The entries that were pinned or unpinned, or the entry from which the branch continues."""


class WriterChanged(Struct, frozen=True, kw_only=True, tag="writer_changed"):
    """The process that writes the session changed."""

    owner: Owner
    """`none`: no process writes it; `session/start` takes it over. `other`: another process writes it.
    `this`: this daemon took it over."""


class EventsDropped(Struct, frozen=True, kw_only=True, tag="events_dropped"):
    """This client reads too slowly: it gets no more events of the session. Only a shared daemon sends this
    (docs/sharing.md). Call `session/subscribe` to get events again."""

    resume_after: int
    """Number of the last event that was sent: `since_seq` for `session/subscribe`."""


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
    | EventsDropped
)

encode = msgspec.json.Encoder().encode
"""The encoder of any value of the protocol as compact JSON."""

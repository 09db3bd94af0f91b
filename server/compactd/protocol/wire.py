"""Params and results of all methods, as they are on the wire.

The file is long on purpose: it is one vocabulary, read from top to bottom.

Names are in snake_case, ids are strings, times are Unix seconds.

The docstrings of these structs and fields are the public documentation of the protocol.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from compactd.protocol.messages import (
    NULL,
    CompactionResult,
    Confidence,
    Decision,
    Floor,
    Role,
    Status,
    TokenUsage,
)
from compactd.protocol.settings import GivenReduce, GivenSettings, IgnoredSetting, ReduceLevel
from compactd.protocol.work import Work

SessionId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        description="Id of the session. It must be open here: `session/start` opens it.",
    ),
]
"""1 to 256 code points without control characters. A field of this type without a docstring gets the
description above."""
Positive = Annotated[int, Meta(gt=0, le=2**53)]
Format = Annotated[
    str,
    Meta(extra_json_schema={"enum": ["neutral", "openai", "openai_responses", "anthropic", "gemini"]}),
]
"""Any other value is answered with error 1010, which lists the supported ones."""


class Wire(Struct, frozen=True, kw_only=True):
    """Base of all params and results."""


class Nothing(Wire, frozen=True, kw_only=True):
    """No params, or an empty result."""


class ModelRef(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A model as an object, instead of the string `provider/id`."""

    id: Annotated[str, Meta(min_length=1)]
    """The model's name, as its provider spells it; `provider/id` if `provider` is null."""
    provider: str | None = None
    """Who serves the model, such as `anthropic`. Null: `id` names the provider, or it is derived from the
    model."""
    base_url: str | None = None
    """The endpoint (scheme, host, port, path), if it is not the provider's own. A user, password or query in
    it is dropped, with a warning."""


class ClientInfo(Wire, frozen=True, kw_only=True):
    """Who the client is."""

    name: str | None = None
    """Name of the client. Events name the client by it (`client`)."""
    version: str | None = None
    """Version of the client's program. It has no effect."""
    compaction_hook: bool = False
    """True if the client answers `session/compacting`."""
    answers: bool = False
    """True if the client also answers `tool/execute` for prompts of other clients that have left. Only a
    shared daemon has several clients (docs/sharing.md)."""


class Files(Wire, frozen=True, kw_only=True):
    """Files that tools touched, as the client knows them."""

    read: tuple[str, ...] = ()
    """Paths of files that were read."""
    modified: tuple[str, ...] = ()
    """Paths of files that were created, changed or deleted."""


# --- sessions ---------------------------------------------------------------------------------------


class StartParams(Wire, frozen=True, kw_only=True):
    """Params of `session/start`."""

    model: str | ModelRef | None = None
    """The model, as `"provider/id"` or as an object. If it is left out, a resumed session keeps its model."""
    session_id: SessionId | None = None
    """The session to resume, or the id to use for a new one."""
    system_prompt: str | None = None
    """The system prompt. Replaces an earlier one; an empty text removes it; null keeps it."""
    tools: tuple[Raw, ...] | None = None
    """The tools that the model may call, in compactd's, OpenAI's, Anthropic's or Gemini's format."""
    working_dir: str | None = None
    """Absolute path of the folder that the conversation is about. Its `.compactd.toml` sets settings, and
    paths in summaries are shown relative to it. Only for a new session; a resumed one keeps its own."""
    title: str | None = None
    """Title of the session. Null: the first words of its first prompt that is more than a greeting."""
    compaction: GivenSettings | None = None
    """Settings of this session. In an existing session, each given setting replaces the previous value."""
    reduce: GivenReduce | None = None
    """Settings about reduced tool outputs. They take precedence over those in `compaction`."""
    context_window: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """The model's window in tokens, if you know it better than the registry."""
    parent_session_id: SessionId | None = None
    """The session that started this one as a sub-agent. In a profile whose sub-agents do not compact
    (`klaude`), this session skips the threshold check."""
    snapshots: bool | None = None
    """True: keep the files of the git work tree around `working_dir` at the start and end of each turn, for
    `session/diff`. A resumed session keeps its value. Default false."""
    persist: bool | None = None
    """False: keep the session in memory only. Default true."""
    durability: Literal["disk", "os"] | None = None
    """`disk` (the default): what was acknowledged survives a power cut. `os`: it survives a killed daemon."""
    read_only: bool | None = None
    """True: read and follow a stored session without locking it, so that other processes can write it.
    Settings in this call are not applied. A later `session/start` without `read_only` opens the session for
    writing."""
    client: ClientInfo | None = None
    """Who the client is, and whether it answers `session/compacting`."""


class StartResult(Wire, frozen=True, kw_only=True):
    """Result of `session/start`."""

    session_id: str
    """Id of the session, which every other method takes."""
    resumed: bool
    """True if the session already existed, stored or open."""
    read_only: bool
    """True if the session can be read and followed but not changed, because another process has it open or
    you asked for `read_only`."""
    model: str | None
    """The session's model as `provider/id`; null if the session has none."""
    title: str | None = None
    """The title that was given, otherwise the first words of the first prompt; null if there is neither."""
    context_window: int | None
    """The model's context window in tokens; the same as `token_usage.context_window`."""
    token_usage: TokenUsage
    """How full the context is, and what was billed."""
    message_count: int
    """Number of messages in the context."""
    seq: int
    """Number of the last event sent for this session; 0 when it was just opened."""
    warnings: tuple[str, ...]
    """What a person should know, in sentences; empty if there is nothing."""
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """Settings in the folder's `.compactd.toml` that are ignored, because the folder is not trusted."""


class AppendParams(Wire, frozen=True, kw_only=True):
    """Params of `session/append`."""

    session_id: SessionId
    messages: tuple[Raw, ...]
    """The messages, oldest first."""
    usage: Raw = NULL
    """The provider's usage report for the last assistant message of this call, in compactd's or any
    provider's format."""
    epoch: int | None = None
    """Epoch of the context that the report is about. Default: the epoch of the context that was returned
    last."""
    format: Format | None = None
    """The format of `messages`: `neutral` (compactd's own, the default), `openai`, `openai_responses` (input
    items, or whole responses), `anthropic`, `gemini`. If it is left out, a message in a provider's format
    that would lose tool calls, images or reasoning is refused with error -32602 (InvalidParams);
    `data.format` of the error is the value to give here."""
    files: Files | None = None
    """Files that tools read or changed, if the tool calls do not show it. Summaries list them."""
    reduce: bool | None = None
    """True: reduce the tool results in `messages` before they are appended, as `session/reduce` does. The
    originals are kept, and `reductions` lists them."""


class AppendedReduction(Wire, frozen=True, kw_only=True):
    """A tool result that an append reduced, or that is shown as it was reduced before."""

    message_entry_id: str
    """The entry of the message that shows the reduced text."""
    call_id: str
    """The call that the result answers."""
    entry_id: str
    """The entry with the original."""
    tokens_before: int
    """Tokens of the original text."""
    tokens_after: int
    """Tokens of the text that is shown."""
    rules: tuple[str, ...]
    """The rules that acted, as in `session/reduce`."""


class AppendResult(Wire, frozen=True, kw_only=True):
    """Result of `session/append`. Once the client has it, the messages are durable."""

    entry_ids: tuple[str, ...]
    """The entry id of each message in `messages`. A duplicate has its old id."""
    duplicates: tuple[str, ...]
    """Client ids of messages that the session already had, with the same content."""
    pending_calls: tuple[str, ...]
    """Tool calls that have no result yet."""
    token_usage: TokenUsage
    """The token usage after this append."""
    decision: Decision
    """Whether the next request fits. Nothing is compacted before `turn/begin` or `session/compact`."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """Which parts of the usage reports are ignored, and why. Left out if there are none."""
    reductions: tuple[AppendedReduction, ...] | UnsetType = UNSET
    """With `reduce`: the tool results in these messages that are shown reduced, in their order."""


class ReduceParams(Wire, frozen=True, kw_only=True):
    """Params of `session/reduce`: a tool's output with its call."""

    session_id: SessionId
    name: str
    """Name of the tool, as the agent calls it."""
    arguments: Raw = Raw(b"{}")
    """The arguments of the call: an object."""
    content: str
    """The output's text. If an output has several texts, reduce each by itself."""
    call_id: str | None = None
    """Id of the call. The later tool result with this id is then linked to the original, and a repeated
    request with the same id and content gets the same answer."""
    is_error: bool = False
    """True if the tool failed."""
    level: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(ReduceLevel))})] | None = None
    """How much is left out. `light`: only what is shown elsewhere or has no meaning. `strong`: also what is
    seldom used later. Null: the setting `reduce_level`, which is `default` unless it was set."""
    observe: bool = False
    """True: change nothing, and store only how many tokens would have been saved, by which rules."""
    compare: bool = True
    """False: leave nothing out only because the session shows it elsewhere. For a client that does not know
    what its model still sees, such as a filter in a shell."""


class ReduceResult(Wire, frozen=True, kw_only=True):
    """Result of `session/reduce`. Once the client has it, the original is durable."""

    content: str
    """The text to show to the model. It is equal to the given text if there is nothing worth leaving out, and
    with `observe`."""
    reduced: bool
    """True if `content` is a shorter text than the output. With `observe`: true if it would be."""
    tokens_before: int
    """Tokens of the output's text."""
    tokens_after: int
    """Tokens of the text to show. With `observe`: of the text that would have been shown."""
    entry_id: str | None
    """The entry with the original: `session/expand` returns it. Null if nothing was reduced, and with
    `observe`."""
    rules: tuple[str, ...]
    """Names of the rules that acted, in the order of their first mark in the text."""


class SessionParams(Wire, frozen=True, kw_only=True):
    """Params of a method that takes only a session."""

    session_id: SessionId
    """Id of the session. It must be open here, except for `session/delete`."""


class ContextParams(Wire, frozen=True, kw_only=True):
    """Params of `session/context`."""

    session_id: SessionId
    format: Format | None = None
    """The format in which the result is returned. `neutral` (the default): compactd's own format. `openai`:
    the system prompt is the first message. `openai_responses`: send `system` as `instructions` and `messages`
    as `input`. `anthropic`: send `system` as `system`. `gemini`: send `system` as `systemInstruction` and
    `messages` as `contents`. `tools` are in the same provider's format."""


class RepairInfo(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A repair that was made so that a provider accepts the request."""

    kind: str
    """What was done. Values so far: `missing_result` (an error result was added for a call without one),
    `orphan_result` (a result without its call was left out), `duplicate_result` (a second result of one call
    was left out), `moved_result` (a late result was moved to its call), `renamed_call` (a `call_id` that was
    in use got a suffix), `empty_message` (a message without content was left out)."""
    entry_id: str | None = None
    """The entry that was repaired; for `missing_result` and `renamed_call`, the entry of the call."""
    call_id: str | None = None
    """The call's id as the client gave it. Left out if the repair is about a whole message."""


class CacheBreakpoint(Wire, frozen=True, kw_only=True):
    """A place up to which the provider may cache the request."""

    at: Literal["tools", "system", "summary", "messages"]
    """What ends there: the tools, the system prompt, the summary of a compaction, or a message."""
    ttl: Literal["5m", "30m", "1h"]
    """How long the provider keeps it after it was last read: 30 minutes at OpenAI, another time at
    Anthropic."""


class CostByKind(Wire, frozen=True, kw_only=True):
    """What each kind of tokens cost, in US dollars; null if the price of some is not known."""

    input: float | None
    """Input that was neither read from the provider's cache nor written to it."""
    cache_read: float | None
    """Input that was read from the cache."""
    cache_write_5m: float | None
    """Input that was written to the cache for the provider's usual time, which is 5 minutes at Anthropic."""
    cache_write_1h: float | None
    """Input that was written to the cache for an hour or longer."""
    output: float | None
    """Output, reasoning included."""
    summary: float | None
    """Requests for summaries, by a model that compactd asked or by the provider itself. Input and output."""


class TokensByKind(Wire, frozen=True, kw_only=True):
    """Tokens of each kind, as in `by_kind`."""

    input: int
    """Input that was neither read from the provider's cache nor written to it."""
    cache_read: int
    """Input that was read from the cache."""
    cache_write_5m: int
    """Input that was written to the cache for the provider's usual time."""
    cache_write_1h: int
    """Input that was written to the cache for an hour or longer."""
    output: int
    """Output, reasoning included."""
    summary: int
    """Input and output of requests for summaries."""


class CacheRebuild(Wire, frozen=True, kw_only=True):
    """A request that paid again for tokens which the provider's cache had held."""

    entry_id: str | None
    """The answer to the request; null if it was not appended."""
    cause: Literal["compaction", "prune", "model", "system", "tools", "messages", "expired", "unknown"]
    """What changed since the request before: the context by a `compaction` or a `prune`, the `model`, the
    `system` prompt, the `tools`, or the `messages` (by an undo, a redo, a branch or a redaction). `expired`:
    nothing, but the cache was not used for longer than it lasts. `unknown`: nothing that compactd knows."""
    tokens: int
    """The tokens that were paid for again."""
    cost: float | None
    """What they cost more than a read from the cache, in US dollars; null if the price is not known."""


class NextCost(Wire, frozen=True, kw_only=True):
    """What the next request will cost, in US dollars. The size of its answer is that of the last ones."""

    now: float | None
    """As the context is; null if the model's price is not known."""
    compacted: float | None
    """After a compaction, without the cost of its summary. The compaction leaves as much as `session/compact`
    with `plan_only` expects or, if the cost decides (`when`), as much as a compaction by cost. Null if the
    price is not known, or if a compaction would not make the request smaller."""


class CostResult(Wire, frozen=True, kw_only=True):
    """Result of `session/cost`: what the session cost, at list prices, by the usage reports of its requests.
    A number that is not known is null; it is never guessed."""

    currency: Literal["USD"] = "USD"
    """The currency of all amounts."""
    billed: float | None
    """All requests and summaries; null if the price of some is not known. For requests of an imported file
    whose model has no known price, it is the cost that the file reports."""
    predicted: float | None
    """What the requests were predicted to cost before they were answered, all those together that have a
    prediction; null if none has."""
    requests: int
    """How many requests of the conversation have a usage report."""
    by_kind: CostByKind
    """The parts of `billed`, without the costs that an imported file reports."""
    tokens: TokensByKind
    """The tokens that were billed."""
    rebuilds: tuple[CacheRebuild, ...]
    """The requests that built the provider's cache again, oldest first. Fewer than 1,000 tokens do not
    count."""
    next: NextCost
    """What the next request will cost."""
    prices: str
    """Where the prices are from, and the day on which they were read."""
    unknown: tuple[str, ...]
    """Sentences about what is not known, for a person; empty if everything is."""


class ContextCache(Wire, frozen=True, kw_only=True):
    """What the provider can read from its prompt cache."""

    stable_tokens: int
    """The estimated tokens at the beginning of the request that are the same as in the request before it in
    this format. 0 if this process of the daemon has handed out none before."""
    stable_bytes: int
    """The bytes of that beginning: system prompt, tools and whole messages, without marks."""
    breakpoints: tuple[CacheBreakpoint, ...]
    """The marks in `messages` and `tools`, in their order: Anthropic's `cache_control`, and OpenAI's
    `prompt_cache_breakpoint` in `openai_responses` from GPT-5.6 on. OpenAI adds one of its own at the newest
    message. Empty in other formats, for other models, and if the setting `cache` is `off`."""


class ContextResult(Wire, frozen=True, kw_only=True):
    """Result of `session/context`: what the next model request must contain."""

    messages: tuple[Raw, ...]
    """The messages, oldest first, in the format `format`. In `neutral`, `id` is the client's id of the
    message and `entry_id` is compactd's."""
    tokens: int
    """The estimated size of the whole request: system prompt, tools and messages, repairs included."""
    epoch: int
    """The epoch of this context. Pass it back with the usage report of the request."""
    repairs: tuple[RepairInfo, ...]
    """How the messages were changed, compared with the appended ones, so that the provider accepts them."""
    system: str | UnsetType = UNSET
    """The system prompt. Left out if there is none, and in `openai`, where it is the first message."""
    tools: tuple[Raw, ...] | UnsetType = UNSET
    """The tools, in the format `format`. Left out if there are none."""
    cache: ContextCache | UnsetType = UNSET
    """What the provider can read from its prompt cache. Left out in `neutral`, which goes to no provider."""
    headers: dict[str, str] | UnsetType = UNSET
    """HTTP headers that the provider requires for this request: `anthropic-beta`, if it contains a block of
    Anthropic's own compaction. Left out if there are none."""

    def plain_messages(self) -> list[Any]:
        """Return the messages as dicts, as a provider's SDK takes them. O(length of the messages)."""
        return [msgspec.json.decode(message) for message in self.messages]

    def plain_tools(self) -> list[Any]:
        """Return the tools as dicts; an empty list if there are none. O(length of the tools)."""
        return [msgspec.json.decode(tool) for tool in self.tools or ()]


class CompactParams(Wire, frozen=True, kw_only=True):
    """Params of `session/compact`. At most one of `keep_recent`, `keep_messages` and `target_tokens` may be
    given."""

    session_id: SessionId
    keep_recent: Positive | None = None
    """How many tokens of the newest messages stay word for word."""
    keep_messages: Positive | None = None
    """How many of the newest messages stay word for word."""
    preserve_count: Positive | None = None
    """Another name of `keep_messages`."""
    target_tokens: Positive | None = None
    """The most tokens of the whole new request, system prompt and tools included. If the user's newest
    request takes more than a third of it, the request is shown condensed, and the result has
    `condensed_request`. A target that is too small gives error 1008 (CannotFit) with `least_target`."""
    instructions: str | None = None
    """What the summary should pay special attention to."""
    strategy: Literal["auto", "summarize", "provider", "extract", "truncate"] | None = None
    """`summarize`: a model writes the summary; error 1007 (NoProvider) if no model is named, or if the named
    one cannot be asked. `auto` (the default): the same if a summariser is named or the daemon runs this
    session's loop. Otherwise no model is asked, not even the session's own. `provider`: the provider of the
    session's model compacts, if it can (Anthropic, OpenAI's Responses API), and if the daemon runs this
    session's loop or `model` names the session's model. If a model fails, `extract` or `truncate` is used
    instead, and `reason` says so."""
    model: str | None = None
    """The model that summarises, as `provider/id`. Error 1007 (NoProvider) if it cannot be asked."""
    force: bool | None = None
    """True: if no valid cut exists, compact all but the last two messages."""
    dry_run: bool | None = None
    """True: say what would happen, and change nothing."""
    plan_only: bool | None = None
    """A dry run in a tenth of the time, whatever `dry_run` says. No summary is made; it is counted at its
    largest size. The real compaction saves at least what the result says."""


class HistoryParams(Wire, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Params of `session/history`."""

    session_id: SessionId
    from_: str | None = None
    """The entry id to start from, inclusive."""
    limit: Positive | None = None
    """The most entries to return. Null: all."""
    in_context: bool | None = None
    """True: return only the entries that are in the context now, in the order of the context: the summary,
    older messages that were kept word for word, the newest messages."""


class HistoryEntry(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a session's history."""

    entry_id: str
    """Id of the entry; for a compaction, its `compaction_id`."""
    kind: str
    """The kind of entry. Values so far: `message`, `compaction`, `prune`, `compaction_failed`."""
    at: float
    """When it was appended, in Unix seconds."""
    in_context: bool
    """True if the next model request contains this message. For a compaction: true if it contains the
    summary."""
    message: Raw | UnsetType = UNSET
    """For a `message`: the message, byte for byte as it was appended."""
    compaction: CompactionResult | None = None
    """For a `compaction`: what it did, with its summary. For a `compaction_failed`: why it failed."""
    title: str | None = None
    """For a user's message: its first meaningful line, at most 60 code points. Left out if no person wrote
    it."""
    pruned_at: float | None = None
    """When the message was shortened in the context, in Unix seconds: its tool output was replaced by stubs,
    or the user's request was condensed. Left out if the context contains the message in full."""
    tokens: int | None = None
    """The estimated tokens of the message in the context; if it is not in the context, those of the original
    message. For a compaction: those of its summary. Left out if nothing is counted."""
    pinned: bool = False
    """True if `session/pin` or the message's own `meta` keeps the message in every later context."""
    carried: bool = False
    """True if a compaction in force kept the message although it is older than the cut point, before which
    other messages were summarised. It stays word for word, unless `pruned_at` is given."""


class HistoryResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/history`, oldest first; with `in_context`, in the context's order."""

    entries: tuple[HistoryEntry, ...]
    """The history entries; empty if there are none."""
    next: str | None = None
    """The entry id to continue from, if `limit` cut the list."""
    total: int | None = None
    """With `in_context`: number of entries in the context, including those that are not on this page."""
    summarised: int | None = None
    """With `in_context`: number of messages of the conversation that are not in the context because summaries
    replace them."""


class SearchParams(Wire, frozen=True, kw_only=True):
    """Params of `session/search`."""

    query: Annotated[str, Meta(min_length=1)]
    """Plain text; case is ignored. Without `session_id`: words, all of which a message must contain."""
    session_id: SessionId | None = None
    """The session to search. Left out: every stored session is searched, and the best hits come first."""
    limit: Positive | None = None
    """The most hits to return. Default 20."""


class Hit(Wire, frozen=True, kw_only=True):
    """A message, or the original of a reduced tool output, that matches a search."""

    entry_id: str
    """The entry that contains the text. If a message shows a reduced tool output, it is the entry with the
    original."""
    role: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(Role))})]
    """Role of the message."""
    snippet: str
    """The text around the match, on one line."""
    at: float
    """When the message was appended, in Unix seconds."""
    in_context: bool | UnsetType = UNSET
    """False if a compaction removed the message from the context, or if a reduction left the text out of the
    tool output. Only when one session is searched."""
    session_id: str | UnsetType = UNSET
    """The session of the message. Only when every session is searched."""


class SearchResult(Wire, frozen=True, kw_only=True):
    """Result of `session/search`: newest first in one session, otherwise best first."""

    hits: tuple[Hit, ...]
    """The matches; empty if there are none."""
    complete: bool = True
    """False if some sessions could not be searched in time. Search again to include them."""


class ExpandParams(Wire, frozen=True, kw_only=True):
    """Params of `session/expand`: a compaction, or entries."""

    session_id: SessionId
    compaction_id: str | None = None
    """The compaction whose replaced messages you want. Give this, `entry_ids` or `entry_id`."""
    entry_ids: tuple[str, ...] | None = None
    """The entries of the messages that you want, or of the originals of reduced tool outputs."""
    entry_id: str | None = None
    """The same as `entry_ids` with one entry."""
    quoted: bool = False
    """True: also return each message as text for a model, in `quoted`."""


class Original(Wire, frozen=True, kw_only=True):
    """A message as it was appended, or the original of a reduced tool output."""

    entry_id: str
    """Id of the entry, as in `session/history`."""
    message: Raw
    """The message, byte for byte as it was appended. If it is the summary with which an imported file began,
    the message that the context contains. If it is the original of a reduced tool output, a tool message with
    the whole text."""
    tokens: int | None = None
    """The estimated tokens that it would take in the context."""
    quoted: str | UnsetType = UNSET
    """The text of the message, for a model to read. Each line that neither the user nor the assistant wrote
    begins with `(tool) `. An inserted sign marks anything that looks like a heading, a speaker, a reference
    or a tag, so that it does not work as one. Only if it was asked for."""
    originals: tuple[str, ...] | UnsetType = UNSET
    """If the message shows reduced tool outputs: the entries with their originals. Otherwise left out."""
    shown_in: tuple[str, ...] | UnsetType = UNSET
    """If this is the original of a reduced tool output: the messages that show the reduced text; empty if it
    was not appended. Otherwise left out."""


class ExpandResult(Wire, frozen=True, kw_only=True):
    """Result of `session/expand`: the originals, oldest first."""

    entries: tuple[Original, ...]
    """The messages, oldest first."""


class UndoParams(Wire, frozen=True, kw_only=True):
    """Params of `session/undo`."""

    session_id: SessionId
    force: bool | None = None
    """True: undo even if the context then exceeds the window, which is otherwise refused with error 1008
    (CannotFit). The next `turn/begin` then compacts again, or fails with error 1008 (CannotFit)."""


class UndoResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/undo` and `session/redo`."""

    message_count: int
    """Number of messages in the context after the undo or redo."""
    token_usage: TokenUsage
    """The token usage after the undo or redo."""
    compaction_id: str | None = None
    """The compaction that was undone or redone. Left out if it was a prune."""
    entry_ids: tuple[str, ...] | None = None
    """If it was a prune: the messages whose tool output it replaces by stubs."""


class SessionInfo(Wire, frozen=True, kw_only=True):
    """One session of `session/list`."""

    session_id: str
    """Id of the session, which `session/start` takes to open it."""
    title: str | None
    """The title it was given, otherwise the first words of its first prompt that is more than a
    greeting; null if there is neither."""
    model: str | None
    """The session's model as `provider/id`; null if none was named."""
    message_count: int
    """Number of messages in the context."""
    compactions: int
    """Number of compactions that are in force, that is, not undone and on the current branch."""
    bytes: int
    """Size of the session's file in bytes; 0 for a session that is only in memory."""
    updated_at: float
    """When it was last written, in Unix seconds. For an imported session that nothing was added to, the time
    of its last message."""
    open: bool
    """True if it is open in this daemon or another process."""
    working_dir: str | None = None
    """The session's working folder, as its client gave it."""


class ListResult(Wire, frozen=True, kw_only=True):
    """Result of `session/list`, newest first."""

    sessions: tuple[SessionInfo, ...]
    """Stored sessions, and open sessions that are only in memory."""


class ConfigureParams(Wire, frozen=True, kw_only=True):
    """Params of `session/configure`. What is left out or null stays unchanged."""

    session_id: SessionId
    unset: tuple[str, ...] | None = None
    """Names of settings to remove from this session, so that the value from the environment, a settings file
    or the profile applies again. Only settings that `session/start` or `session/configure` gave can be
    removed, and `system_prompt`, `tools` and `title`. Values in the same call are set afterwards."""
    compaction: GivenSettings | None = None
    """Settings to change. A null in it leaves that setting unchanged."""
    reduce: GivenReduce | None = None
    """Settings about reduced tool outputs to change, as in `session/start`."""
    system_prompt: str | None = None
    """The new system prompt; an empty text removes it."""
    tools: tuple[Raw, ...] | None = None
    """All tools from now on, as in `session/start`. An empty list removes them."""
    title: str | None = None
    """The new title."""


class Setting(Wire, frozen=True, kw_only=True):
    """A setting's value and where it came from."""

    value: Raw
    """The value that compactd uses; null if the profile's own rule decides."""
    source: str
    """Where it comes from, for a person: `configure`, `start`, a file's name, an environment variable,
    `profile NAME`. Other values may be added later."""


class ConfigureResult(Wire, frozen=True, kw_only=True):
    """Result of `session/configure`: the value that compactd uses for every setting."""

    settings: dict[str, Setting]
    """The settings by name, as in `compaction`, without alternative names."""
    warnings: tuple[str, ...]
    """Settings that cannot apply as given, in sentences."""
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """Settings that are ignored because their source is not trusted, as in `session/start`."""


class PinParams(Wire, frozen=True, kw_only=True):
    """Params of `session/pin`."""

    session_id: SessionId
    entry_ids: tuple[str, ...]
    """The messages to pin or unpin. An id that is not a message of this session is refused."""
    pinned: bool = True
    """True pins the messages, false unpins them. Null: true."""


class PinResult(Wire, frozen=True, kw_only=True):
    """Result of `session/pin`: all messages that are pinned now."""

    pinned_entry_ids: tuple[str, ...]
    """All pinned messages of the session, oldest first, not only those of this call."""


class RedactParams(Wire, frozen=True, kw_only=True):
    """Params of `session/redact`."""

    session_id: SessionId
    entry_ids: tuple[str, ...]
    """The messages to redact, or originals of reduced tool outputs. At least one. A message and the originals
    of the outputs that it shows are redacted together."""


class Cleaned(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A file, store or part of the session from which a redaction removed text."""

    where: str
    """What was cleaned: `messages`, `summary`, `provider summary` (dropped as a whole), `stubs`, `title`,
    `file lists`, `reduced outputs`, `waiting prompts`, `compaction result`, `error text`, `index`, `hook`,
    `snapshots`. Other values may be added later."""
    entry_ids: tuple[str, ...] = ()
    """The messages, compactions, prunes or reduced outputs that were changed."""


class Left(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A file, store or part of the session that may still contain text of the session or of redacted
    messages."""

    where: str
    """What was not cleaned: `messages`, `settings`, `names`, `export`, `transcript`, `mirror`. Other values
    may be added later."""
    why: str
    """Why it was not cleaned, in one sentence that contains none of the text."""
    entry_ids: tuple[str, ...] = ()
    """The messages that may contain the text."""
    path: str | None = None
    """The file that may contain the text."""


class RedactResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/redact`. The redacted text is no longer on disk, except where `left` says so."""

    redacted: int
    """Number of messages, and of originals of reduced tool outputs, whose contents were replaced by
    `[redacted]`."""
    cleaned: tuple[Cleaned, ...] = ()
    """What contained the redacted text, or may have contained it, and no longer does."""
    left: tuple[Left, ...] = ()
    """What was not cleaned and may still contain the redacted text, with the reason. Left out if nothing is
    known to contain it."""


class DeleteResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/delete`. Once the client has it, every file that compactd kept for the session is
    gone."""

    left: tuple[Left, ...] = ()
    """Files with text of the session that were not deleted, because they are outside compactd's data folder,
    such as exports. Left out if none is known."""


class DiffParams(Wire, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Params of `session/diff`. Without `from` and `to`: the whole session."""

    session_id: SessionId
    from_: str | None = None
    """The user message whose turn is the first to be compared."""
    to: str | None = None
    """The user message whose turn is the last to be compared, inclusive."""


class FileDiff(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A file that changed."""

    file: str
    """Path of the file in the work tree, with `/`."""
    status: Literal["added", "modified", "deleted"]
    """What happened to the file between the two snapshots."""
    additions: int
    """Number of lines added; 0 if the file is not text."""
    deletions: int
    """Number of lines removed; 0 if the file is not text."""
    before: str | UnsetType = UNSET
    """The file's content in the earlier snapshot; empty if the file did not exist. Left out if it is not text
    or larger than 256 KiB."""
    after: str | UnsetType = UNSET
    """The file's content in the later snapshot; empty if the file was deleted. Left out if it is not text or
    larger than 256 KiB."""


class DiffResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/diff`."""

    files: tuple[FileDiff, ...]
    """The files that changed, sorted by path."""
    root: str | None = None
    """The work tree that the paths are relative to."""
    reason: str | None = None
    """Why there are no files, or why contents are missing."""
    hidden: tuple[str, ...] = ()
    """Paths that git ignores and that were created or changed since the start of the compared turns. Folders
    end in `/`. Snapshots do not contain these files. At most 1,000."""


class ImportParams(Wire, frozen=True, kw_only=True):
    """Params of `session/import`: `path`, or `content`."""

    path: str | None = None
    """Absolute path of a file of at most 256 MiB."""
    content: Raw = NULL
    """The content of such a file: a text, or the JSON itself."""
    format: str | None = None
    """`auto` (the default) detects it by content. Otherwise a name from the table of docs/formats.md, for
    example `claude-code`. The error for another name lists all names (`supported`)."""
    session_id: SessionId | None = None
    """The id that the session gets. If it is the id of a session that was imported from an earlier state of
    the same file, that session is brought up to date: it gets the messages that are new in the file, and
    keeps what was added to it since. Null: a new id."""


class ImportResult(Wire, frozen=True, kw_only=True):
    """Result of `session/import`. Once the client has it, the whole session is durable, and it is open."""

    session_id: str
    """Id of the session that was created or brought up to date."""
    format: str
    """The format that was read; with `auto`, the one that was detected."""
    message_count: int
    """Number of messages in the context."""
    warnings: tuple[str, ...]
    """What could not be read, or was left out on purpose."""
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """Settings in the file that are ignored: an imported file may only set sizes."""


class ExportParams(Wire, frozen=True, kw_only=True):
    """Params of `session/export`."""

    session_id: SessionId
    format: str
    """`compactd`: the whole session, from which `session/import` can restore it. `neutral`, `openai`,
    `openai_responses`, `anthropic`, `gemini`: the messages of the current branch, compacted or not, without
    compactd's summaries. The name of another program, as in `session/import`: a session file of that program,
    with the compactions in force. What a format cannot represent is listed in `warnings`, by entry."""
    path: str | None = None
    """Absolute path to write to, readable only by the user (0600). The file must not exist yet."""


class ExportResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/export`."""

    format: str
    """The format that was written."""
    warnings: tuple[str, ...]
    """What the format cannot represent, by entry."""
    content: str | UnsetType = UNSET
    """The content, if no `path` was given; at most 32 MiB."""
    path: str | UnsetType = UNSET
    """The file that was written. It is durable."""


# --- the loop ---------------------------------------------------------------------------------------


class Term(Wire, frozen=True, kw_only=True):
    """A number of the token budget, and where it comes from."""

    value: int | float | bool | None
    """The number, in tokens (`over`: true or false; `keep`: messages if `source` is about messages); null if
    it is not known or does not apply."""
    source: str
    """Where the value comes from, for a person."""


class CompactionState(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """The compactions of a session, and its settings."""

    enabled: bool
    """False: only `session/compact` compacts."""
    running: bool
    """True while a compaction runs."""
    count: int
    """Number of compactions that are in force. Those that were undone do not count."""
    tokens_saved: int
    """Sum of the tokens saved by the compactions in force."""
    history: tuple[CompactionResult, ...]
    """Completed compactions, oldest first, without their summaries."""
    settings: dict[str, Setting]
    """The value that compactd uses for every setting, as in `session/configure`."""
    last: CompactionResult | None = None
    """The newest of `history`. Left out if there was no compaction."""
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """Settings that are ignored because their source is not trusted, as in `session/start`."""


class PromptInfo(Wire, frozen=True, kw_only=True):
    """A prompt that waits."""

    prompt_id: str
    """Id of the prompt: the `turn_id` in the result of `agent/prompt`."""
    client: str | None
    """Name of the client that sent it, as given in `client.name`; null if it is not known."""
    text_preview: str
    """The beginning of its text on one line, at most 80 characters."""


class ReductionTotals(Wire, frozen=True, kw_only=True):
    """Tool outputs that were reduced, or would have been, and their sizes."""

    count: int
    """How many outputs."""
    tokens_before: int
    """Tokens of their texts before."""
    tokens_after: int
    """Tokens of the texts to show."""


class Reductions(Wire, frozen=True, kw_only=True):
    """Tool outputs of the session that `session/reduce`, `session/append` or the daemon's loop reduced."""

    count: int
    """How many outputs were reduced."""
    tokens_before: int
    """Tokens of their originals."""
    tokens_after: int
    """Tokens of the texts that are shown instead."""
    observed: ReductionTotals
    """Outputs of requests with `observe` that would have been reduced."""
    by_rule: dict[str, ReductionTotals]
    """Outputs by the rules that acted, reduced and observed ones. An output counts for each of its rules."""


class StateParams(Wire, frozen=True, kw_only=True):
    """Params of `agent/state`."""

    session_id: SessionId
    """Id of the session. It must be open here."""
    work: bool = False
    """True: the result contains the state of the work."""


class StateResult(Wire, frozen=True, kw_only=True):
    """Result of `agent/state`."""

    session_id: str
    """The session that was asked about."""
    status: Status
    """`idle`: nothing is running. `running`: the daemon's loop works on a prompt. `streaming`: a model is
    answering it. `executing_tools`: the client is running its tools. `compacting`: a compaction is
    running."""
    title: str | None = None
    """Title of the session, as in `session/list`."""
    model: str | None
    """The session's model as `provider/id`; null if none was named."""
    message_count: int
    """Number of messages in the context."""
    tools: tuple[str, ...]
    """Names of the session's tools."""
    token_usage: TokenUsage
    """How full the context is, and what was billed."""
    budget: dict[str, Term]
    """The numbers that decide when to compact: `window`, `input_limit`, `observed` (the window that a
    provider's rejection named), `cap` (the smallest of these), `reserve`, `threshold`, `keep`, `base` (the
    size that the last usage report measured), `trailing` (the estimated size of what came after it), `used`,
    `max_output`, `over`."""
    decision: Decision | UnsetType = UNSET
    """Whether the next request fits, and why. Left out by earlier versions."""
    compaction: CompactionState
    """The compactions so far, and the settings that decide about the next one."""
    queued: int
    """Number of prompts that wait."""
    prompts: tuple[PromptInfo, ...] = ()
    """The prompts that wait, in the order in which they are answered."""
    reductions: Reductions | UnsetType = UNSET
    """What reductions of tool outputs saved, or would have saved. Left out if there were none."""
    work: Work | UnsetType = UNSET
    """The state of the work, derived by code from the messages. Only present if the params ask for it."""


class PromptParams(Wire, frozen=True, kw_only=True):
    """Params of `agent/prompt`: `text`, or `content`."""

    session_id: SessionId
    text: str | None = None
    """What the user says. Give this or `content`."""
    content: Raw = NULL
    """A user message's `content` in compactd's own format: text, or blocks."""


class PromptResult(Wire, frozen=True, kw_only=True):
    """Result of `agent/prompt`. Once the client has it, the prompt is durable. Everything that happens
    afterwards is reported by events."""

    turn_id: str
    """Id of the prompt. The events about the prompt contain it."""
    queued: bool
    """True if other prompts are answered first."""


class AbortResult(Wire, frozen=True, kw_only=True):
    """Result of `agent/abort`."""

    aborted: bool
    """True if a prompt was stopped; false if none was being answered."""


class DropParams(Wire, frozen=True, kw_only=True):
    """Params of `prompt/drop`."""

    session_id: SessionId
    prompt_id: str
    """Id of the prompt, as in `prompts` of `agent/state`."""


class DropResult(Wire, frozen=True, kw_only=True):
    """Result of `prompt/drop`. Once the client has it, the prompt is gone for good."""

    dropped: bool
    """False if the prompt does not wait: it is being answered, was answered, or never existed."""


class BeginResult(Wire, frozen=True, kw_only=True):
    """Result of `turn/begin`."""

    compaction: CompactionResult | None
    """What was compacted, or why a due compaction did nothing; null if none was due."""
    pruned: int
    """Number of tool results that were replaced by stubs."""
    token_usage: TokenUsage
    """The token usage after pruning and compacting."""
    decision: Decision | UnsetType = UNSET
    """Whether the request fitted before pruning and compacting, and why. Left out by earlier versions."""
    max_output_tokens: int | UnsetType = UNSET
    """The most output tokens that the request may ask for: the tokens that are free in the window, but at
    most the model's output limit. Left out if neither is known."""


class EndParams(Wire, frozen=True, kw_only=True):
    """Params of `turn/end`."""

    session_id: SessionId
    messages: tuple[Raw, ...]
    """The model's answer, and the results of its tools if they are already available. Oldest first."""
    usage: Raw = NULL
    """The provider's usage report, in compactd's or any provider's format. Null: there is none."""
    epoch: int | None = None
    """Epoch of the context that the request was made from. Null: the last one that was returned."""
    format: Format | None = None
    """The format of `messages`, as in `session/append`."""
    stop_reason: str | None = None
    """Why the model stopped, as the provider names it. `length` and similar values help compactd to recognise
    a full context window."""
    files: Files | None = None
    """Files that tools used, as in `session/append`."""


class EndResult(Wire, frozen=True, kw_only=True):
    """Result of `turn/end`."""

    entry_ids: tuple[str, ...]
    """The entry id of each message in `messages`, as in `session/append`."""
    duplicates: tuple[str, ...]
    """Client ids of messages that the session already had, as in `session/append`."""
    pending_calls: tuple[str, ...]
    """Tool calls that have no result yet: run them, then append the results."""
    token_usage: TokenUsage
    """The token usage after this turn."""
    decision: Decision
    """Whether the next request fits."""
    silent_overflow: bool
    """True if the usage report shows that the window was full, although the request did not fail. The next
    `turn/begin` then compacts."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """Which parts of the usage reports are ignored, and why. Left out if there are none."""


FailureKind = Literal[
    "overflow",
    "output_limit",
    "rate_limit",
    "payload_too_large",
    "auth",
    "quota",
    "content_filter",
    "invalid_request",
    "server",
    "other",
]
"""The kinds of failed model requests."""


class RequestError(Wire, frozen=True, kw_only=True):
    """A failed model request, as the provider's answer describes it. Pass the body as it came."""

    status: int | None = None
    """HTTP status."""
    code: str | int | None = None
    """The provider's error code, such as `context_length_exceeded`."""
    message: str | None = None
    """The text of the error, if there is no `body`."""
    body: Raw = NULL
    """The body as it came: a string, or JSON. It takes precedence over `message`."""
    provider: str | None = None
    """The provider that answered. Null: the session's provider."""


class ErrorParams(Wire, frozen=True, kw_only=True):
    """Params of `turn/error`."""

    session_id: SessionId
    error: RequestError
    """The failed request, as far as it is known."""
    usage: Raw = NULL
    """The provider's usage report, if the failed request has one. It is added to the billed tokens, but does
    not change the current size of the context."""
    epoch: int | None = None
    """Epoch of the context that the request was made from. Null: the last one that was returned."""


class ErrorResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `turn/error`."""

    overflow: bool
    """True if the request was too large for the model's window."""
    kind: FailureKind
    """The kind of failure, as in `overflow/classify`."""
    retry: bool
    """True: send the turn again now, with a fresh `session/context`."""
    reason: str
    """What was done and what to do, in a sentence for a person."""
    max_output_tokens: int | None = None
    """The most output tokens that the next attempt may ask for. Left out if the limit need not change."""
    compaction: CompactionResult | None = None
    """The compaction that made the conversation smaller, or why it could not. Left out if none was tried."""
    floor: Floor | None = None
    """What no compaction can remove, if nothing makes the request fit. Otherwise left out."""


class ModelSetParams(Wire, frozen=True, kw_only=True):
    """Params of `model/set`."""

    session_id: SessionId
    model: str | ModelRef
    """The new model: `"provider/id"`, or its parts."""


class ModelSetResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `model/set`."""

    model: str | None
    """The session's model from now on, as `provider/id`; null if none is named."""
    token_usage: TokenUsage
    """The token usage with the new model."""
    compaction: CompactionResult | None = None
    """The compaction that made the conversation fit. Left out if none was needed."""
    warnings: tuple[str, ...] = ()
    """What is unusual about the model or its `base_url`, as in `session/start`. Left out if there is
    nothing."""


class BranchParams(Wire, frozen=True, kw_only=True):
    """Params of `session/branch`."""

    session_id: SessionId
    entry_id: str
    """The entry after which the session continues."""


class BranchResult(Wire, frozen=True, kw_only=True):
    """Result of `session/branch`."""

    session_id: str
    """Id of the session, which stays the same."""
    message_count: int
    """Number of messages in the context."""


class PruneParams(Wire, frozen=True, kw_only=True):
    """Params of `session/prune`."""

    session_id: SessionId
    dry_run: bool | None = None
    """True: say what would be pruned, and change nothing."""


class PruneResult(Wire, frozen=True, kw_only=True):
    """Result of `session/prune`."""

    pruned: int
    """Number of tool results that were pruned."""
    tokens_saved: int
    """How many tokens smaller the context is."""
    entry_ids: tuple[str, ...]
    """The messages whose tool output is now a stub in the context."""


# --- without a session ------------------------------------------------------------------------------


class LookupParams(Wire, frozen=True, kw_only=True):
    """Params of `models/lookup`."""

    model: Annotated[str, Meta(min_length=1, max_length=4096)]
    """The model: `provider/id`, or an id alone in any provider's spelling."""
    provider: str | None = None
    """Who serves the model. Null: `model` names the provider, or it is derived from the model."""
    base_url: str | None = None
    """The endpoint, if it is not the provider's own. Windows learned from its server count."""
    explain: bool | None = None
    """True: also return each step of the lookup and what it found."""


class LadderStep(Wire, frozen=True, kw_only=True):
    """One step of a lookup."""

    step: str
    """Name of the step. Values so far: `observed`, `name`, `exact`, `provider's variants`, `own machine`,
    `maker`, `consensus`, `open weights`, `family`, `fallback`, `models.toml`."""
    key: str
    """What was looked up."""
    found: str
    """What this step found, for a person; empty if it found nothing."""


class LookupResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `models/lookup`. Sizes are in tokens."""

    model: str
    """The model as the provider spells it, or as asked for if it was not found."""
    provider: str | None
    """Who serves it; null if that is not known."""
    context_window: int
    """The context window: input and output combined. 128000 (`guess`) for an unknown model."""
    input_limit: int | None
    """The most input tokens, if that is less than the window; otherwise null."""
    output_limit: int | None
    """The most output tokens; null if it is not known."""
    upper_bound: bool
    """True if a local server may have loaded the model with a smaller window."""
    confidence: Confidence
    """How certain the window is. `override`: the user set it. `observed`: a server said it. `fact`: the
    registry's sources agree. `disputed`: they disagree. `guess`: derived from the name, or the default."""
    source: str
    """Where the number comes from, for a person."""
    how: str
    """The step of the lookup that found it, for a person."""
    tokenizer: str | None
    """Name of the tokenizer, such as `o200k_base`; null if none is known."""
    pricing: Raw
    """US dollars per million tokens: `{input, output, cache_read?, cache_write?, cache_write_1h?, steps?}`.
    `cache_write_1h` is the price of a write to the cache that stays for an hour, `cache_write` that of one
    for the provider's usual time. `steps` are the prices above an input size (`above`, in tokens). Null if
    unknown."""
    retired: bool
    """True if the provider no longer offers it."""
    pricing_source: str | UnsetType = UNSET
    """The lists that the prices are from, and the day on which they were read. Left out without prices."""
    steps: tuple[LadderStep, ...] | UnsetType = UNSET
    """With `explain`: every step that was tried, in order, up to the one that found the answer."""


class ListModelsParams(Wire, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Params of `models/list`. Without `limit`, the answer has everything and takes megabytes."""

    provider: str | None = None
    """Only this provider's models. Null: all."""
    from_: str | None = None
    """`provider/id` of the first model to list: the value of `next` of the previous page."""
    limit: Positive | None = None
    """The most models in one answer."""


class ModelInfo(Wire, frozen=True, kw_only=True):
    """One model of one provider. Sizes are in tokens."""

    provider: str
    """Who serves it."""
    model: str
    """The model as the provider spells it."""
    context_window: int
    """The context window: input and output combined."""
    input_limit: int | None
    """The most input tokens, if that is less than the window; otherwise null."""
    output_limit: int | None
    """The most output tokens; null if it is not known."""
    confidence: Confidence
    """`fact` if the sources agree on the window, `disputed` if they do not."""
    source: str
    """Names of the sources, separated by commas."""
    tokenizer: str | None
    """Name of the tokenizer, as in `models/lookup`; null if none is known."""
    pricing: Raw
    """US dollars per million tokens, as in `models/lookup`; null if unknown."""
    retired: bool
    """True if the provider no longer offers it."""


class ObservedInfo(Wire, frozen=True, kw_only=True):
    """A context window that compactd learned from a server."""

    model: str
    """The model, as its provider spells it."""
    provider: str | None
    """Who serves it; null if that is not known."""
    base_url: str | None
    """The endpoint; null for the provider's own."""
    window: int
    """The size of the window in tokens."""
    by: Literal["rejection", "server"]
    """How it was learned. `rejection`: the error of a request that was too large named it. `server`: compactd
    asked a model server for it."""
    at: float
    """When it was learned, in Unix seconds."""
    source: str
    """Where the number comes from, for a person."""
    until: float
    """When it expires, in Unix seconds, unless it is learned again."""
    confirmed: bool
    """False: the rejection is doubtful. The window is used only in the session whose request was rejected,
    until the rejection of a request of another size names the same window."""
    doubt: str
    """Why the rejection is doubtful; empty if it is not."""


class ListModelsResult(Wire, frozen=True, kw_only=True):
    """Result of `models/list`: the registry's rows sorted by provider and id, and what was learned from
    servers."""

    models: tuple[ModelInfo, ...]
    """The models of the built-in registry."""
    observed: tuple[ObservedInfo, ...]
    """Windows that were learned on this machine, including doubtful ones. Empty on a page that begins with
    `from`: the first page has them all."""
    next: str | UnsetType = UNSET
    """The value of `from` for the next page. Left out if there is none."""


class ForgetParams(Wire, frozen=True, kw_only=True):
    """Params of `models/forget`: which learned context windows to forget. Those that match all given fields
    are forgotten. To forget all of them, give only `all: true`."""

    model: str | None = None
    """The model: `provider/id`, or an id alone. Null: any model."""
    provider: str | None = None
    """Who serves the model. Null: any provider."""
    base_url: str | None = None
    """The endpoint. Null: any endpoint."""
    all: bool | None = None
    """True: forget every learned window of all models. It cannot be combined with the others."""


class ForgetResult(Wire, frozen=True, kw_only=True):
    """Result of `models/forget`."""

    forgotten: int
    """Number of learned windows that were forgotten."""


class TrustParams(Wire, frozen=True, kw_only=True):
    """Params of `trust/set`."""

    path: str
    """Absolute path of a folder."""
    trusted: bool
    """True trusts the folder, false revokes the trust."""


class TrustResult(Wire, frozen=True, kw_only=True):
    """Result of `trust/set`. The change applies at once to open sessions of this daemon, and to sessions in
    other processes when they are started next."""

    path: str
    """The folder, with symbolic links resolved."""
    trusted: bool
    """True if the folder is trusted now."""
    changed: bool
    """False if nothing changed, because the folder was already in this state."""
    sha256: str | None = None
    """Hash of the bytes of `.compactd.toml` that are trusted now."""
    settings: tuple[TrustedSetting, ...] = ()
    """What the trusted file sets."""
    warnings: tuple[str, ...] = ()
    """Parts of the file that are not settings."""


class TrustedSetting(Wire, frozen=True, kw_only=True):
    """One setting of a trusted file."""

    name: str
    """The setting, as in `compaction`."""
    value: Raw
    """What the file sets it to."""
    allows: str | None = None
    """What trusting this setting allows, for a person; null if an untrusted file may set it too."""


class TrustedFolder(Wire, frozen=True, kw_only=True):
    """A folder whose `.compactd.toml` the user trusted."""

    path: str
    """The folder, with symbolic links resolved."""
    sha256: str
    """Hash of the bytes of `.compactd.toml` that were trusted."""
    trusted_at: float
    """When the user trusted it, in Unix seconds."""
    state: Literal["trusted", "changed", "missing"]
    """`trusted`: the file is unchanged. `changed`: the file has changed, so it is no longer trusted.
    `missing`: there is no file."""


class TrustList(Wire, frozen=True, kw_only=True):
    """Result of `trust/list`."""

    folders: tuple[TrustedFolder, ...]
    """The folders, sorted by path."""
    problem: str | None = None
    """Why the list of trusted folders cannot be used; then no folder is trusted."""


class ClassifyParams(Wire, frozen=True, kw_only=True):
    """Params of `overflow/classify`."""

    status: int | None = None
    """HTTP status."""
    code: str | int | None = None
    """The provider's error code, such as `context_length_exceeded`."""
    body: Raw = NULL
    """The body as it came: a string, or JSON. It takes precedence over `message`."""
    message: str | None = None
    """The text of the error, if there is no `body`."""
    provider: str | None = None
    """The provider that answered. Null: only the text decides."""
    usage: Raw = NULL
    """The provider's usage report for that request."""
    window: Positive | None = None
    """The model's window in tokens, if you know it."""
    stop_reason: str | None = None
    """Why the answer ended, for an overflow without an error."""
    profile: str | None = None
    """The profile whose rule for an error without a body applies. Null: the session's, otherwise
    `default`."""
    session_id: SessionId | None = None
    """A session whose size and window help to decide. Optional."""


class ClassifyResult(Wire, frozen=True, kw_only=True):
    """Result of `overflow/classify`."""

    overflow: bool
    """True if the request was too large for the model's window, also if `fix` is `lower_output`."""
    kind: FailureKind
    """What the failure was. `overflow`: the request is larger than the window. `output_limit`: too much
    output was asked for. `payload_too_large`: the HTTP body or one item is too large. `other`: not known."""
    limit: int | None
    """The limit that the error's text names, in tokens; null if it names none."""
    requested: int | None
    """The size of the request that the error compares with the limit, in tokens; null if it is not known."""
    fix: Literal["compact", "lower_output", "truncate_item", "retry_later", "none"]
    """What fixes it. `compact`: a smaller conversation. `lower_output`: a smaller `max_tokens`.
    `truncate_item`: a smaller item in the request. `retry_later`: the same request later. `none`: no change
    of size helps."""
    evidence: str
    """What the classification is based on, in a few words."""


class CountParams(Wire, frozen=True, kw_only=True):
    """Params of `tokens/count`: a text, or messages."""

    model: str | None = None
    """The model whose tokenizer counts, as `provider/id` or an id. Null: a general estimate."""
    text: str | None = None
    """The text. Give this or `messages`."""
    messages: tuple[Raw, ...] | None = None
    """The messages, in the format `format`."""
    format: Format | None = None
    """The format of `messages`, as in `session/append`."""


class CountResult(Wire, frozen=True, kw_only=True):
    """Result of `tokens/count`."""

    tokens: int
    """Tokens of the text, or of the messages including what the provider's format adds to each."""
    exact: bool
    """True if the model's own tokenizer counted."""
    method: str
    """Name of the tokenizer or the estimator, such as `o200k_base` or `chars4`."""


class SubscribeParams(Wire, frozen=True, kw_only=True):
    """Params of `session/subscribe`."""

    session_id: SessionId
    """The session. It must be open in this daemon."""
    since_seq: int | None = None
    """Number of the last event that the client has: those after it are sent again. Left out: none are."""


class SubscribeResult(Wire, frozen=True, kw_only=True):
    """Result of `session/subscribe`."""

    seq: int
    """Number of the newest event. Later events follow."""
    missed: int | None
    """How many events after `since_seq` cannot be sent again: read `session/history` and `agent/state`. Null
    if `since_seq` is larger than `seq`: it is of a daemon that has ended."""


class RetireResult(Wire, frozen=True, kw_only=True):
    """Result of `daemon/retire`."""

    clients: int = 1
    """Number of clients that are still connected. The daemon ends when they have left."""


class InfoResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `daemon/info`."""

    version: str
    """Version of the program."""
    protocol_version: str
    """Version of this protocol, `MAJOR.MINOR` (docs/versions.md)."""
    pid: int
    """The daemon's process id."""
    uptime_s: float
    """Seconds since the daemon started."""
    sessions: int
    """Number of sessions that are open in this daemon."""
    clients: int = 1
    """Number of clients that are connected to this daemon. Left out if it is one."""
    paths: dict[str, str]
    """Folders on this machine: `data` holds the sessions, `config` the user's settings and keys."""
    encodings: tuple[str, ...]
    """Tokenizers that can count exactly."""
    platform: Literal["tested", "untested"]
    """`tested` on Linux and macOS, otherwise `untested`."""
    warnings: tuple[str, ...] = ()
    """What is unsafe about the daemon's environment, for a person, such as a data folder to which other users
    may write."""
    socket: str | None = None
    """Path of the socket at which further clients can connect. Left out if the daemon serves only this
    client."""

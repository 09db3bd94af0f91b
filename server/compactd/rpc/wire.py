"""Params and results of our methods, as they stand on the wire.

Longer than other files on purpose: it is one vocabulary, read from top to bottom.

snake_case; ids are strings; times are Unix seconds.

The docstrings of these structs and fields are the public document of the protocol.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from compactd.core.settings import GivenSettings, IgnoredSetting
from compactd.messages import CompactionResult, Confidence, Decision, Floor, Status, TokenUsage

SessionId = Annotated[
    str,
    Meta(min_length=1, max_length=256, pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]+$"),
]
"""1 to 256 code points without control characters."""
Positive = Annotated[int, Meta(gt=0, le=2**53)]
Format = str
"""`neutral`, `openai`, `openai_responses`, `anthropic` or `gemini`."""


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
    """The endpoint, where it is not the provider's own: scheme, host, port, path. A user, password or query
    in it is left out, with a warning."""


class ClientInfo(Wire, frozen=True, kw_only=True):
    """Who is speaking."""

    name: str | None = None
    """Events name the client by it (`client`)."""
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
    context_window: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """The model's window in tokens, if you know it better than the registry."""
    parent_session_id: SessionId | None = None
    snapshots: bool | None = None
    """Keep the files of the git work tree around `working_dir` at each turn's begin and end, for
    `session/diff`. A resume keeps it. Default false."""
    persist: bool | None = None
    """False keeps the session in memory alone. Default true."""
    durability: Literal["disk", "os"] | None = None
    """`disk` (the default) survives a power cut when answered; `os` survives a killed daemon."""
    read_only: bool | None = None
    """True: read and follow a stored session without its lock, so that other processes can write it. Settings
    that are given are not applied. A later `session/start` without it takes the session over."""
    client: ClientInfo | None = None


class StartResult(Wire, frozen=True, kw_only=True):
    """Result of `session/start`."""

    session_id: str
    resumed: bool
    read_only: bool
    """The session can be read and followed, not changed: another process has it, or you asked for that."""
    model: str | None
    title: str | None = None
    """The one it was given, else the first words of its first prompt; null before there are any."""
    context_window: int | None
    """Tokens; the same as `token_usage.context_window`."""
    token_usage: TokenUsage
    message_count: int
    """Messages of the view."""
    seq: int
    """The number of the last event sent for this session; 0 at opening."""
    warnings: tuple[str, ...]
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """What the folder's `.compactd.toml` sets and is not in force, because the folder is not trusted."""


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
    """The shape of `messages`: `neutral` (the default), `openai`, `openai_responses` (input items, or whole
    responses), `anthropic`, `gemini`. If it is left out, a message in a provider's shape that would lose tool
    calls, pictures or reasoning is refused (-32602); the error's `data.format` names the shape to give."""
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
    warnings: tuple[str, ...] | UnsetType = UNSET
    """What of the usage reports counts nothing, and why. Left out if there is nothing to say."""


class SessionParams(Wire, frozen=True, kw_only=True):
    """Params of a method that needs a session and nothing else."""

    session_id: SessionId


class ContextParams(Wire, frozen=True, kw_only=True):
    """Params of `session/context`."""

    session_id: SessionId
    format: Format | None = None
    """The provider that the request is for; `neutral` (the default) is our own shape. `openai`: the system
    prompt is the first message. `openai_responses`: `system` is `instructions`, `messages` are the `input`
    items. `anthropic`: `system` is `system`. `gemini`: `system` is `systemInstruction`, `messages` are the
    `contents`. `tools` are in that provider's shape."""


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
    """`summarize`: a model writes the summary; 1007 if none is named, or the named one cannot be asked.
    `auto` (the default): the same if a summariser is named or the daemon runs this session's loop; otherwise
    no model is asked, not even the session's own. A model that fails gives way to `extract` or `truncate`,
    and `reason` says so."""
    model: str | None = None
    """The summariser, `provider/id`. 1007 if it cannot be asked."""
    force: bool | None = None
    """Where no valid cut exists, compact all but the last two messages."""
    dry_run: bool | None = None
    """Tell what would happen, change nothing."""
    plan_only: bool | None = None
    """A dry run in a tenth of the time, whatever `dry_run` says: no summary is made, it counts as the most
    that it may take. The real compaction saves at least what the result says."""


class HistoryParams(Wire, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Params of `session/history`."""

    session_id: SessionId
    from_: str | None = None
    """An entry id, inclusive."""
    limit: Positive | None = None
    in_context: bool | None = None
    """True: only what is in the context now, in its order: a summary, what it kept, the newest messages."""


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
    tokens: int | None = None
    """Estimate of what it takes as it stands in the context; out of it, of the original. A compaction's: its
    summary's. Left out where nothing is counted."""
    pinned: bool = False
    """`session/pin` or its own `meta` keeps it in every view."""
    carried: bool = False
    """A compaction in force took it over word for word, though it is older than the messages it kept."""


class HistoryResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/history`, oldest first; with `in_context`, in the context's order."""

    entries: tuple[HistoryEntry, ...]
    next: str | None = None
    """The entry id to go on from, where `limit` cut the list."""
    total: int | None = None
    """With `in_context`: entries of the context, however many of them are in this page."""
    summarised: int | None = None
    """With `in_context`: messages of the conversation that are not in it, for summaries stand for them."""


class SearchParams(Wire, frozen=True, kw_only=True):
    """Params of `session/search`."""

    query: Annotated[str, Meta(min_length=1)]
    """Plain text; case is ignored. Without `session_id`: words, all of which a message must hold."""
    session_id: SessionId | None = None
    """Left out: every stored session is searched, the best hits first."""
    limit: Positive | None = None
    """Default 20."""


class Hit(Wire, frozen=True, kw_only=True):
    """A place where a search found its text."""

    entry_id: str
    role: str
    snippet: str
    at: float
    in_context: bool | UnsetType = UNSET
    """False where a compaction took it out of the context. In one session only."""
    session_id: str | UnsetType = UNSET
    """Where every session was searched."""


class SearchResult(Wire, frozen=True, kw_only=True):
    """Result of `session/search`: newest first in one session, else best first."""

    hits: tuple[Hit, ...]
    complete: bool = True
    """False where some sessions could not be looked at in time: search once more."""


class ExpandParams(Wire, frozen=True, kw_only=True):
    """Params of `session/expand`: a compaction, or entries."""

    session_id: SessionId
    compaction_id: str | None = None
    entry_ids: tuple[str, ...] | None = None
    quoted: bool = False
    """Each message also as text for a model, in `quoted`."""


class Original(Wire, frozen=True, kw_only=True):
    """A message as it was appended."""

    entry_id: str
    message: Raw
    tokens: int | None = None
    """Estimate of what it would take in the context."""
    quoted: str | UnsetType = UNSET
    """What the message says, for a model to read: each line that neither the user nor the assistant wrote
    begins with `(tool) `, and what could pass for a heading, a speaker, a reference or a tag is broken by a
    sign. Only if it was asked for."""


class ExpandResult(Wire, frozen=True, kw_only=True):
    """Result of `session/expand`: the originals, oldest first."""

    entries: tuple[Original, ...]


class UndoParams(Wire, frozen=True, kw_only=True):
    """Params of `session/undo`."""

    session_id: SessionId
    force: bool | None = None
    """Undo also if the whole would exceed the window, which is 1008 otherwise. The next `turn/begin` then
    compacts again, or answers 1008."""


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
    working_dir: str | None = None
    """The folder that it works in, as its client gave it."""


class ListResult(Wire, frozen=True, kw_only=True):
    """Result of `session/list`, newest first."""

    sessions: tuple[SessionInfo, ...]


class ConfigureParams(Wire, frozen=True, kw_only=True):
    """Params of `session/configure`. What is left out, or null, stays."""

    session_id: SessionId
    unset: tuple[str, ...] | None = None
    """Names of settings to forget that `session/start` and `session/configure` gave this session: the next
    lower layer counts for them again. Also `system_prompt`, `tools` and `title`. A value in the same call is
    set afterwards."""
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
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """As in `session/start`."""


class PinParams(Wire, frozen=True, kw_only=True):
    """Params of `session/pin`."""

    session_id: SessionId
    entry_ids: tuple[str, ...]
    pinned: bool = True


class PinResult(Wire, frozen=True, kw_only=True):
    """Result of `session/pin`: all messages that are pinned now, oldest first."""

    pinned_entry_ids: tuple[str, ...]


class RedactParams(Wire, frozen=True, kw_only=True):
    """Params of `session/redact`."""

    session_id: SessionId
    entry_ids: tuple[str, ...]
    """Of messages. At least one."""


class Cleaned(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A place that a redaction cleaned."""

    where: str
    """`messages`, `summary`, `stubs`, `title`, `file lists`, `waiting prompts`, `compaction result`,
    `error text`, `index`, `hook`, `snapshots`; there may be others later."""
    entry_ids: tuple[str, ...] = ()
    """Of the messages, compactions or prunes that were changed."""


class Left(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A place that may hold the words still."""

    where: str
    """`messages`, `settings`, `names`, `export`, `transcript`, `mirror`; there may be others later."""
    why: str
    """One sentence; holds none of the words."""
    entry_ids: tuple[str, ...] = ()
    """Of messages."""
    path: str | None = None
    """Of a file."""


class RedactResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/redact`. The words have left the disk, but for what `left` names."""

    redacted: int
    """Messages whose contents are the mark `[redacted]` now."""
    cleaned: tuple[Cleaned, ...] = ()
    """Where the words were, or may have been, and are no more."""
    left: tuple[Left, ...] = ()
    """What was not cleaned, with the reason; left out where nothing is known to be left."""


class DeleteResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/delete`. When it is there, every file that compactd kept of the session is gone."""

    left: tuple[Left, ...] = ()
    """Files with its words that are not compactd's; left out where none is known."""


class DiffParams(Wire, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Params of `session/diff`. Without `from` and `to`: the whole session."""

    session_id: SessionId
    from_: str | None = None
    """The user message with whose turn the changes begin."""
    to: str | None = None
    """The user message with whose turn they end, inclusive."""


class FileDiff(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A file that changed."""

    file: str
    """Its path in the work tree, with `/`."""
    status: Literal["added", "modified", "deleted"]
    additions: int
    """Lines; 0 of a file that is no text."""
    deletions: int
    before: str | UnsetType = UNSET
    """The whole file before, empty where there was none; left out where it is no text or above 256 KiB."""
    after: str | UnsetType = UNSET
    """The whole file after, in the same way."""


class DiffResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/diff`."""

    files: tuple[FileDiff, ...]
    """By their paths."""
    root: str | None = None
    """The work tree that the paths are in."""
    reason: str | None = None
    """Why there are no files, or not all of their contents."""
    hidden: tuple[str, ...] = ()
    """Paths that git ignores and that were made or changed since the begin of the span; folders end in `/`.
    No snapshot holds what they say. At most 1,000."""


class ImportParams(Wire, frozen=True, kw_only=True):
    """Params of `session/import`: `path`, or `content`."""

    path: str | None = None
    """An absolute path of a file of at most 256 MiB."""
    content: Raw = NULL
    """What would stand in the file: a text, or the JSON itself."""
    format: str | None = None
    """`auto` (the default) finds it out by content; else `compactd`, `claude-code`, `pi`, `codex`,
    `gemini-cli`, `cline`, `opencode`, `swe-agent`, `mini-swe-agent`, `openhands`, `aider`, `klaude`, `opal`,
    `openai`, `anthropic`, `gemini`, `openai_responses` or `neutral`."""


class ImportResult(Wire, frozen=True, kw_only=True):
    """Result of `session/import`. When it is there, the whole session is durable, and open."""

    session_id: str
    """Of the new session."""
    format: str
    message_count: int
    """Messages of the view."""
    warnings: tuple[str, ...]
    """What could not be read, or was left out on purpose."""
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """What the file sets and is not in force: an imported file brings sizes alone."""


class ExportParams(Wire, frozen=True, kw_only=True):
    """Params of `session/export`."""

    session_id: SessionId
    format: str
    """`compactd`: everything, to be imported again. `neutral`, `openai`, `openai_responses`, `anthropic`,
    `gemini`: the messages of the branch the session stands at, compacted or not, without our summaries. A
    name of another program, as in `session/import`: a session file of its own, with the compactions in force.
    What a format cannot hold is in `warnings`, by entry."""
    path: str | None = None
    """An absolute path to write to, for the user alone (0600). Nothing may be there."""


class ExportResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/export`."""

    format: str
    warnings: tuple[str, ...]
    content: str | UnsetType = UNSET
    """Where no `path` was given; at most 32 MiB."""
    path: str | UnsetType = UNSET
    """The file that was written; durable."""


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
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """As in `session/start`."""


class PromptInfo(Wire, frozen=True, kw_only=True):
    """A prompt that waits."""

    prompt_id: str
    """The `turn_id` that `agent/prompt` answered."""
    client: str | None
    """The name of the client that sent it, as it gave it in `client.name`; null if it is not known."""
    text_preview: str
    """How it begins: its text in one line, at most 80 characters."""


class StateResult(Wire, frozen=True, kw_only=True):
    """Result of `agent/state`."""

    session_id: str
    status: Status
    title: str | None = None
    """As in `session/list`."""
    model: str | None
    message_count: int
    tools: tuple[str, ...]
    """Names."""
    token_usage: TokenUsage
    budget: dict[str, Term]
    compaction: CompactionState
    queued: int
    """Prompts that wait."""
    prompts: tuple[PromptInfo, ...] = ()
    """The prompts that wait, in the order in which they are answered."""


class PromptParams(Wire, frozen=True, kw_only=True):
    """Params of `agent/prompt`: `text`, or `content`."""

    session_id: SessionId
    text: str | None = None
    content: Raw = NULL
    """As a user message's `content` in compactd's own shape: text, or blocks."""


class PromptResult(Wire, frozen=True, kw_only=True):
    """Result of `agent/prompt`. When it is there, the prompt is durable; what comes of it are events."""

    turn_id: str
    queued: bool
    """Others are answered before it."""


class AbortResult(Wire, frozen=True, kw_only=True):
    """Result of `agent/abort`."""

    aborted: bool
    """False where nothing ran."""


class DropParams(Wire, frozen=True, kw_only=True):
    """Params of `prompt/drop`."""

    session_id: SessionId
    prompt_id: str
    """As `agent/state` lists it in `prompts`."""


class DropResult(Wire, frozen=True, kw_only=True):
    """Result of `prompt/drop`. When it is there, the prompt is gone for good."""

    dropped: bool
    """False if the prompt does not wait: it is being answered, was answered, or never was."""


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
    """As in `session/append`."""
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
    warnings: tuple[str, ...] | UnsetType = UNSET
    """What of the usage reports counts nothing, and why. Left out if there is nothing to say."""


class RequestError(Wire, frozen=True, kw_only=True):
    """A model request that failed, as the provider's answer says it. Give the body as it came."""

    status: int | None = None
    """HTTP status."""
    code: str | int | None = None
    message: str | None = None
    body: Raw = NULL
    """A string, or the JSON as it came. Beats `message`."""
    provider: str | None = None


class ErrorParams(Wire, frozen=True, kw_only=True):
    """Params of `turn/error`."""

    session_id: SessionId
    error: RequestError
    usage: Raw = NULL
    """The provider's report, if the failed request has one: billed, never the current size."""
    epoch: int | None = None


class ErrorResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `turn/error`."""

    overflow: bool
    kind: str
    """As in `overflow/classify`."""
    retry: bool
    """Send the turn again now, with a fresh `session/context`."""
    reason: str
    max_output_tokens: int | None = None
    """Most that the request may ask for when it is sent again."""
    compaction: CompactionResult | None = None
    floor: Floor | None = None
    """Where nothing makes the request fit: what no compaction can remove."""


class ModelSetParams(Wire, frozen=True, kw_only=True):
    """Params of `model/set`."""

    session_id: SessionId
    model: str | ModelRef


class ModelSetResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `model/set`."""

    model: str | None
    token_usage: TokenUsage
    compaction: CompactionResult | None = None
    """The one that made the conversation fit."""
    warnings: tuple[str, ...] = ()
    """What is odd about the model or its `base_url`, as in `session/start`. Left out if there is nothing."""


class BranchParams(Wire, frozen=True, kw_only=True):
    """Params of `session/branch`."""

    session_id: SessionId
    entry_id: str
    """The entry that the next one follows."""


class BranchResult(Wire, frozen=True, kw_only=True):
    """Result of `session/branch`."""

    session_id: str
    message_count: int
    """Messages of the view."""


class PruneParams(Wire, frozen=True, kw_only=True):
    """Params of `session/prune`."""

    session_id: SessionId
    dry_run: bool | None = None


class PruneResult(Wire, frozen=True, kw_only=True):
    """Result of `session/prune`."""

    pruned: int
    """Tool results."""
    tokens_saved: int
    entry_ids: tuple[str, ...]


# --- without a session ------------------------------------------------------------------------------


class LookupParams(Wire, frozen=True, kw_only=True):
    """Params of `models/lookup`."""

    model: Annotated[str, Meta(min_length=1, max_length=4096)]
    provider: str | None = None
    base_url: str | None = None
    explain: bool | None = None
    """Tell every step of the ladder and what it found."""


class LadderStep(Wire, frozen=True, kw_only=True):
    """One step of a lookup."""

    step: str
    key: str
    """What was looked for."""
    found: str
    """What came of it, in words; empty where nothing."""


class LookupResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
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
    steps: tuple[LadderStep, ...] | UnsetType = UNSET


class ListModelsParams(Wire, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Params of `models/list`. Without `limit` everything comes in one answer, megabytes of it."""

    provider: str | None = None
    """Only the models of this one."""
    from_: str | None = None
    """`provider/id` of the first model to list, as `next` of the page before has it."""
    limit: Positive | None = None
    """Models in one answer."""


class ModelInfo(Wire, frozen=True, kw_only=True):
    """One model of one provider. Tokens."""

    provider: str
    model: str
    context_window: int
    input_limit: int | None
    output_limit: int | None
    confidence: Confidence
    source: str
    tokenizer: str | None
    pricing: Raw
    retired: bool


class ObservedInfo(Wire, frozen=True, kw_only=True):
    """A window that a server told this machine of."""

    model: str
    provider: str | None
    base_url: str | None
    window: int
    by: Literal["rejection", "server"]
    at: float
    source: str
    until: float
    """Unix seconds: no longer in force then, unless it is met again."""
    confirmed: bool
    """False: a doubtful rejection, in force only in the session that saw it, until another one of a request
    of another size names the same window."""
    doubt: str
    """Why it is doubtful; empty where it is not."""


class ListModelsResult(Wire, frozen=True, kw_only=True):
    """Result of `models/list`: the registry's rows by provider and id, and what servers taught."""

    models: tuple[ModelInfo, ...]
    observed: tuple[ObservedInfo, ...]
    """Empty in a page that begins with `from`: the first page has them all."""
    next: str | UnsetType = UNSET
    """`from` of the next page. Left out if there is none."""


class ForgetParams(Wire, frozen=True, kw_only=True):
    """Params of `models/forget`: what is given must match. To forget every window, say `all`."""

    model: str | None = None
    provider: str | None = None
    base_url: str | None = None
    all: bool | None = None
    """True forgets every window that was learned, of all models. Not beside the others."""


class ForgetResult(Wire, frozen=True, kw_only=True):
    """Result of `models/forget`."""

    forgotten: int


class TrustParams(Wire, frozen=True, kw_only=True):
    """Params of `trust/set`."""

    path: str
    """The absolute path of a folder."""
    trusted: bool
    """False takes the trust back."""


class TrustResult(Wire, frozen=True, kw_only=True):
    """Result of `trust/set`. This daemon's open sessions see it at once, others when they start."""

    path: str
    """The folder, with symbolic links resolved."""
    trusted: bool
    changed: bool
    """False where it was so already."""
    sha256: str | None = None
    """Of the bytes of `.compactd.toml` that are trusted now."""
    settings: tuple[TrustedSetting, ...] = ()
    """What the trusted file sets."""
    warnings: tuple[str, ...] = ()
    """What of the file is no setting."""


class TrustedSetting(Wire, frozen=True, kw_only=True):
    """One setting of a trusted file."""

    name: str
    value: Raw
    allows: str | None = None
    """What the trust allows, in words; null where an untrusted file may set it, too."""


class TrustedFolder(Wire, frozen=True, kw_only=True):
    """A folder whose `.compactd.toml` the user trusted."""

    path: str
    sha256: str
    trusted_at: float
    state: Literal["trusted", "changed", "missing"]
    """`changed`: the file is another one now, so it is not trusted. `missing`: there is none."""


class TrustList(Wire, frozen=True, kw_only=True):
    """Result of `trust/list`."""

    folders: tuple[TrustedFolder, ...]
    """By path."""
    problem: str | None = None
    """Why the list of trusted folders cannot be used; then no folder is trusted."""


class ClassifyParams(Wire, frozen=True, kw_only=True):
    """Params of `overflow/classify`."""

    status: int | None = None
    """HTTP status."""
    code: str | int | None = None
    body: Raw = NULL
    """A string, or the JSON as it came. Beats `message`."""
    message: str | None = None
    provider: str | None = None
    usage: Raw = NULL
    """The provider's report of that request."""
    window: Positive | None = None
    """The model's window, if you know it."""
    stop_reason: str | None = None
    profile: str | None = None
    """Whose rule for an error without a body holds; the session's, else `default`."""
    session_id: SessionId | None = None
    """A session that knows its size and window."""


class ClassifyResult(Wire, frozen=True, kw_only=True):
    """Result of `overflow/classify`."""

    overflow: bool
    """The request was too large for the model's window, also where `fix` is `lower_output`."""
    kind: Literal[
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
    limit: int | None
    """The limit that the text names, in tokens."""
    requested: int | None
    """What was compared with it, in tokens."""
    fix: Literal["compact", "lower_output", "truncate_item", "retry_later", "none"]
    evidence: str
    """What decided, in a few words."""


class CountParams(Wire, frozen=True, kw_only=True):
    """Params of `tokens/count`: a text, or messages."""

    model: str | None = None
    text: str | None = None
    messages: tuple[Raw, ...] | None = None
    format: Format | None = None
    """As in `session/append`."""


class CountResult(Wire, frozen=True, kw_only=True):
    """Result of `tokens/count`."""

    tokens: int
    exact: bool
    """The model's own tokenizer counted."""
    method: str


class InfoResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
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
    warnings: tuple[str, ...] = ()
    """What is unsafe about where the daemon works, such as a data folder that other users may write to."""

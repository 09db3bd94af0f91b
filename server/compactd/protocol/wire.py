"""Params and results of our methods, as they stand on the wire.

Longer than other files on purpose: it is one vocabulary, read from top to bottom.

snake_case; ids are strings; times are Unix seconds.

The docstrings of these structs and fields are the public document of the protocol.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from compactd.protocol.messages import CompactionResult, Confidence, Decision, Floor, Role, Status, TokenUsage
from compactd.protocol.settings import GivenSettings, IgnoredSetting

SessionId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        description="Id of the session. It must be open here: `session/start` opens it.",
    ),
]
"""1 to 256 code points without control characters. A field without words of its own has those above."""
Positive = Annotated[int, Meta(gt=0, le=2**53)]
Format = Annotated[
    str,
    Meta(extra_json_schema={"enum": ["neutral", "openai", "openai_responses", "anthropic", "gemini"]}),
]
"""Another one is answered with 1010, which lists those that there are."""


NULL = Raw(b"null")
"""A raw field that was left out: `Raw | None` would refuse objects (msgspec 0.22)."""


class Wire(Struct, frozen=True, kw_only=True):
    """What goes over the wire."""


class Nothing(Wire, frozen=True, kw_only=True):
    """No params, or an empty result."""


class ModelRef(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """A model by its parts."""

    id: Annotated[str, Meta(min_length=1)]
    """The model's name, as its provider spells it; `provider/id` if `provider` is null."""
    provider: str | None = None
    """Who serves the model, such as `anthropic`. Null: `id` names it, or it is found by the model."""
    base_url: str | None = None
    """The endpoint, where it is not the provider's own: scheme, host, port, path. A user, password or query
    in it is left out, with a warning."""


class ClientInfo(Wire, frozen=True, kw_only=True):
    """Who is speaking."""

    name: str | None = None
    """Events name the client by it (`client`)."""
    version: str | None = None
    """Version of the client's program. Nothing depends on it."""
    compaction_hook: bool = False
    """The client answers `session/compacting`."""


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
    """`"provider/id"`, or its parts. Left out on a resume: the session's own."""
    session_id: SessionId | None = None
    """The session to resume, or the id to use for a new one."""
    system_prompt: str | None = None
    """The system prompt. Replaces an earlier one; an empty text removes it; null keeps it."""
    tools: tuple[Raw, ...] | None = None
    """In our shape, or OpenAI's, Anthropic's or Gemini's."""
    working_dir: str | None = None
    """Absolute path of the folder that the conversation is about. Its `.compactd.toml` sets settings, and
    paths in summaries are shortened by it. Of a new session; a resume keeps its own."""
    title: str | None = None
    """Title of the session. Null: the first words of its first prompt."""
    compaction: GivenSettings | None = None
    """Settings of this session. On a session that exists, each one given replaces the one it had."""
    context_window: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """The model's window in tokens, if you know it better than the registry."""
    parent_session_id: SessionId | None = None
    """The session that started this one as a sub-agent. Under a profile whose sub-agents do not compact
    (`klaude`), it skips the threshold check."""
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
    """Who is asking, and whether it answers `session/compacting`."""


class StartResult(Wire, frozen=True, kw_only=True):
    """Result of `session/start`."""

    session_id: str
    """The id that every other method takes."""
    resumed: bool
    """True if the session was there before, stored or open."""
    read_only: bool
    """The session can be read and followed, not changed: another process has it, or you asked for that."""
    model: str | None
    """The model in force as `provider/id`; null if none was ever named."""
    title: str | None = None
    """The one it was given, else the first words of its first prompt; null before there are any."""
    context_window: int | None
    """Tokens; the same as `token_usage.context_window`."""
    token_usage: TokenUsage
    """How full the context is, and what was billed."""
    message_count: int
    """Messages of the view."""
    seq: int
    """The number of the last event sent for this session; 0 at opening."""
    warnings: tuple[str, ...]
    """What a person should know, in sentences; empty if nothing."""
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
    """Files that tools touched, if the tool calls do not say so themselves. Summaries list them."""


class AppendResult(Wire, frozen=True, kw_only=True):
    """Result of `session/append`. When it is there, the messages are durable."""

    entry_ids: tuple[str, ...]
    """As long as `messages`; a duplicate has its old id."""
    duplicates: tuple[str, ...]
    """Client ids that were here already, with the same content."""
    pending_calls: tuple[str, ...]
    """Tool calls that have no result yet."""
    token_usage: TokenUsage
    """The numbers after this append."""
    decision: Decision
    """Whether the next request fits. Nothing is compacted before `turn/begin` or `session/compact`."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """What of the usage reports counts nothing, and why. Left out if there is nothing to say."""


class SessionParams(Wire, frozen=True, kw_only=True):
    """Params of a method that needs a session and nothing else."""

    session_id: SessionId
    """Id of the session. It must be open here, except for `session/delete`."""


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
    """What was done. Values so far: `missing_result` (an error result was written for a call without one),
    `orphan_result` (a result without its call was left out), `duplicate_result` (a second result of one call
    was left out), `moved_result` (a late result was put next to its call), `renamed_call` (a `call_id` that
    was in use got a suffix), `empty_message` (a message without content was left out)."""
    entry_id: str | None = None
    """The entry that it was done to; of `missing_result` and `renamed_call`, the entry of the call."""
    call_id: str | None = None
    """The call's id as the client gave it. Left out if it is about a whole message."""


class ContextResult(Wire, frozen=True, kw_only=True):
    """Result of `session/context`: what the next model request must contain."""

    messages: tuple[Raw, ...]
    """Oldest first, in the shape of `format`. In `neutral`, `id` is the client's id and `entry_id` is
    compactd's."""
    tokens: int
    """Estimate of the whole request: system prompt, tools and messages, repairs included."""
    epoch: int
    """The epoch of this context. Give it back with the usage report of the request."""
    repairs: tuple[RepairInfo, ...]
    """What differs from the messages as they were appended, so that the provider accepts them."""
    system: str | UnsetType = UNSET
    """The system prompt. Left out if there is none, and in `openai`, where it is the first message."""
    tools: tuple[Raw, ...] | UnsetType = UNSET
    """The tools, in the shape of `format`. Left out if there are none."""


class CompactParams(Wire, frozen=True, kw_only=True):
    """Params of `session/compact`. At most one of the budgets."""

    session_id: SessionId
    keep_recent: Positive | None = None
    """Tokens of the verbatim tail."""
    keep_messages: Positive | None = None
    """Messages of the verbatim tail."""
    preserve_count: Positive | None = None
    """Another name of `keep_messages`."""
    target_tokens: Positive | None = None
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
    """Most entries of the answer. Null: all."""
    in_context: bool | None = None
    """True: only what is in the context now, in its order: a summary, what it kept, the newest messages."""


class HistoryEntry(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a session's history."""

    entry_id: str
    """Id of the entry; a compaction's is its `compaction_id`."""
    kind: str
    """Values so far: `message`, `compaction`, `prune`, `compaction_failed`."""
    at: float
    """When it was appended, in Unix seconds."""
    in_context: bool
    """True if the next request contains it. Of a compaction: its summary."""
    message: Raw | UnsetType = UNSET
    """Of a `message`: the message, byte for byte as it was appended."""
    compaction: CompactionResult | None = None
    """Of a `compaction`: what it did, with its summary. Of a `compaction_failed`: why it failed."""
    title: str | None = None
    """Of a user's message: its first meaningful line, at most 60 code points. Left out if no person wrote
    it."""
    pruned_at: float | None = None
    """When its tool output was replaced by a stub, in Unix seconds. Left out if the context shows it
    whole."""
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
    """The entries; empty if there are none."""
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
    """The entry of the message that holds the text."""
    role: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(Role))})]
    """Who speaks in the message."""
    snippet: str
    """The text around the place, in one line."""
    at: float
    """When the message was appended, in Unix seconds."""
    in_context: bool | UnsetType = UNSET
    """False where a compaction took it out of the context. In one session only."""
    session_id: str | UnsetType = UNSET
    """Where every session was searched."""


class SearchResult(Wire, frozen=True, kw_only=True):
    """Result of `session/search`: newest first in one session, else best first."""

    hits: tuple[Hit, ...]
    """The places that were found; empty if none."""
    complete: bool = True
    """False where some sessions could not be looked at in time: search once more."""


class ExpandParams(Wire, frozen=True, kw_only=True):
    """Params of `session/expand`: a compaction, or entries."""

    session_id: SessionId
    compaction_id: str | None = None
    """The compaction whose replaced messages are wanted. Give this or `entry_ids`."""
    entry_ids: tuple[str, ...] | None = None
    """The messages that are wanted."""
    quoted: bool = False
    """Each message also as text for a model, in `quoted`."""


class Original(Wire, frozen=True, kw_only=True):
    """A message as it was appended."""

    entry_id: str
    """Id of the entry, as in `session/history`."""
    message: Raw
    """The message, byte for byte as it was appended."""
    tokens: int | None = None
    """Estimate of what it would take in the context."""
    quoted: str | UnsetType = UNSET
    """What the message says, for a model to read: each line that neither the user nor the assistant wrote
    begins with `(tool) `, and what could pass for a heading, a speaker, a reference or a tag is broken by a
    sign. Only if it was asked for."""


class ExpandResult(Wire, frozen=True, kw_only=True):
    """Result of `session/expand`: the originals, oldest first."""

    entries: tuple[Original, ...]
    """The messages."""


class UndoParams(Wire, frozen=True, kw_only=True):
    """Params of `session/undo`."""

    session_id: SessionId
    force: bool | None = None
    """Undo also if the whole would exceed the window, which is 1008 otherwise. The next `turn/begin` then
    compacts again, or answers 1008."""


class UndoResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `session/undo` and `session/redo`."""

    message_count: int
    """Messages of the context after it."""
    token_usage: TokenUsage
    """The numbers after it."""
    compaction_id: str | None = None
    """The compaction that was taken back or put in force again. Left out if it was a prune."""
    entry_ids: tuple[str, ...] | None = None
    """Of a prune: the messages that it shortened."""


class SessionInfo(Wire, frozen=True, kw_only=True):
    """One session of `session/list`."""

    session_id: str
    """What `session/start` takes to open it."""
    title: str | None
    """The title it was given, otherwise the first words of its first prompt; null if there is neither."""
    model: str | None
    """The model in force as `provider/id`; null if none was named."""
    message_count: int
    """Messages of the context."""
    compactions: int
    """Compactions in force."""
    bytes: int
    """Size of the session's file; 0 of a session in memory alone."""
    updated_at: float
    """When it was last written, in Unix seconds."""
    open: bool
    """Open in this daemon or another one."""
    working_dir: str | None = None
    """The folder that it works in, as its client gave it."""


class ListResult(Wire, frozen=True, kw_only=True):
    """Result of `session/list`, newest first."""

    sessions: tuple[SessionInfo, ...]
    """Stored sessions, and those that are open in memory alone."""


class ConfigureParams(Wire, frozen=True, kw_only=True):
    """Params of `session/configure`. What is left out, or null, stays."""

    session_id: SessionId
    unset: tuple[str, ...] | None = None
    """Names of settings to forget that `session/start` and `session/configure` gave this session: the next
    lower layer counts for them again. Also `system_prompt`, `tools` and `title`. A value in the same call is
    set afterwards."""
    compaction: GivenSettings | None = None
    """Settings to change. Null in it leaves a setting as it is."""
    system_prompt: str | None = None
    """The new system prompt; an empty text removes it."""
    tools: tuple[Raw, ...] | None = None
    """All tools from now on, as in `session/start`; an empty list removes them."""
    title: str | None = None
    """The new title."""


class Setting(Wire, frozen=True, kw_only=True):
    """A value and where it came from."""

    value: Raw
    """The value in force; null if the profile's own rule decides."""
    source: str
    """Where it comes from, for a person: `configure`, `start`, a file's name, an environment variable,
    `profile NAME`. There may be others later."""


class ConfigureResult(Wire, frozen=True, kw_only=True):
    """Result of `session/configure`: every setting in force."""

    settings: dict[str, Setting]
    """By the names of `GivenSettings`, without the aliases."""
    warnings: tuple[str, ...]
    """Settings that cannot apply as they were given, in sentences."""
    ignored_settings: tuple[IgnoredSetting, ...] = ()
    """As in `session/start`."""


class PinParams(Wire, frozen=True, kw_only=True):
    """Params of `session/pin`."""

    session_id: SessionId
    entry_ids: tuple[str, ...]
    """The messages. An id that is no message of this session is refused."""
    pinned: bool = True
    """False lets them go. Null: true."""


class PinResult(Wire, frozen=True, kw_only=True):
    """Result of `session/pin`: all messages that are pinned now, oldest first."""

    pinned_entry_ids: tuple[str, ...]
    """Of the whole session, not only of this call."""


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
    """What happened to the file between the two snapshots."""
    additions: int
    """Lines; 0 of a file that is no text."""
    deletions: int
    """Lines; 0 of a file that is no text."""
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
    """The format that was read; the one that was found if `auto` was asked for."""
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
    """The format that was written."""
    warnings: tuple[str, ...]
    """What the format cannot hold, by entry."""
    content: str | UnsetType = UNSET
    """Where no `path` was given; at most 32 MiB."""
    path: str | UnsetType = UNSET
    """The file that was written; durable."""


# --- the loop ---------------------------------------------------------------------------------------


class Term(Wire, frozen=True, kw_only=True):
    """A term of the budget equation and where it came from."""

    value: int | float | bool | None
    """The number, in tokens (`over`: true or false; `keep`: messages if `source` is about messages); null if
    it is not known or does not apply."""
    source: str
    """Where the value comes from, for a person."""


class CompactionState(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Compactions of a session."""

    enabled: bool
    """False: only `session/compact` compacts."""
    running: bool
    """True while a compaction runs."""
    count: int
    """Compactions in force: those that were undone do not count."""
    tokens_saved: int
    """Sum over the compactions in force, in tokens."""
    history: tuple[CompactionResult, ...]
    """Completed ones, oldest first, without their summaries."""
    settings: dict[str, Setting]
    """Every setting in force, as in `session/configure`."""
    last: CompactionResult | None = None
    """The newest of `history`. Left out if there was no compaction."""
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
    """The session that was asked about."""
    status: Status
    """`idle`: nothing runs. `running`: the daemon's loop works on a prompt. `streaming`: a model is answering
    it. `executing_tools`: the client runs its tools. `compacting`: a compaction runs."""
    title: str | None = None
    """As in `session/list`."""
    model: str | None
    """The model in force as `provider/id`; null if none was named."""
    message_count: int
    """Messages of the context."""
    tools: tuple[str, ...]
    """Names."""
    token_usage: TokenUsage
    """How full the context is, and what was billed."""
    budget: dict[str, Term]
    """The terms of the budget equation: `window`, `input_limit`, `observed` (the window that a rejection
    named), `cap` (the smallest of these), `reserve`, `threshold`, `keep`, `base` (the last report),
    `trailing` (estimated since then), `used`, `max_output`, `over`."""
    compaction: CompactionState
    """Compactions that were made, and the settings that decide about the next one."""
    queued: int
    """Prompts that wait."""
    prompts: tuple[PromptInfo, ...] = ()
    """The prompts that wait, in the order in which they are answered."""


class PromptParams(Wire, frozen=True, kw_only=True):
    """Params of `agent/prompt`: `text`, or `content`."""

    session_id: SessionId
    text: str | None = None
    """What the user says. Give this or `content`."""
    content: Raw = NULL
    """As a user message's `content` in compactd's own shape: text, or blocks."""


class PromptResult(Wire, frozen=True, kw_only=True):
    """Result of `agent/prompt`. When it is there, the prompt is durable; what comes of it are events."""

    turn_id: str
    """Id of the prompt; the events about it carry it."""
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
    """What was compacted, or why a due compaction did nothing; null if none was due."""
    pruned: int
    """Tool results that were replaced by stubs."""
    token_usage: TokenUsage
    """The numbers after it."""
    max_output_tokens: int | UnsetType = UNSET
    """Most output tokens that the request may ask for: the room that is left, at most the model's limit. Left
    out if neither is known."""


class EndParams(Wire, frozen=True, kw_only=True):
    """Params of `turn/end`."""

    session_id: SessionId
    messages: tuple[Raw, ...]
    """The model's answer, and the results of its tools if they are there already. Oldest first."""
    usage: Raw = NULL
    """The provider's usage report, in ours or any provider's shape. Null: none."""
    epoch: int | None = None
    """Of the context that the request was made from. Null: the last one handed out."""
    format: Format | None = None
    """As in `session/append`."""
    stop_reason: str | None = None
    """Why the model stopped, in the provider's own words. With `length` and its like, a full window is
    recognised."""
    files: Files | None = None
    """As in `session/append`."""


class EndResult(Wire, frozen=True, kw_only=True):
    """Result of `turn/end`."""

    entry_ids: tuple[str, ...]
    """As in `session/append`."""
    duplicates: tuple[str, ...]
    """As in `session/append`."""
    pending_calls: tuple[str, ...]
    """Tool calls that have no result yet: run them, then append the results."""
    token_usage: TokenUsage
    """The numbers after it."""
    decision: Decision
    """Whether the next request fits."""
    silent_overflow: bool
    """The report says that the request was larger than the window: the next `turn/begin` compacts."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """What of the usage reports counts nothing, and why. Left out if there is nothing to say."""


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
"""What a failed model request was."""


class RequestError(Wire, frozen=True, kw_only=True):
    """A model request that failed, as the provider's answer says it. Give the body as it came."""

    status: int | None = None
    """HTTP status."""
    code: str | int | None = None
    """The provider's code of the error, such as `context_length_exceeded`."""
    message: str | None = None
    """The text of the error, if there is no `body`."""
    body: Raw = NULL
    """A string, or the JSON as it came. Beats `message`."""
    provider: str | None = None
    """Who answered. Null: the session's provider."""


class ErrorParams(Wire, frozen=True, kw_only=True):
    """Params of `turn/error`."""

    session_id: SessionId
    error: RequestError
    """What is known of the failure."""
    usage: Raw = NULL
    """The provider's report, if the failed request has one: billed, never the current size."""
    epoch: int | None = None
    """Of the context that the request was made from. Null: the last one handed out."""


class ErrorResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `turn/error`."""

    overflow: bool
    """True if the request was too large for the model's window."""
    kind: FailureKind
    """As in `overflow/classify`."""
    retry: bool
    """Send the turn again now, with a fresh `session/context`."""
    reason: str
    """What was done and what to do, in a sentence for a person."""
    max_output_tokens: int | None = None
    """Most that the request may ask for when it is sent again."""
    compaction: CompactionResult | None = None
    """The compaction that made the conversation smaller, or why it could not. Left out if none was tried."""
    floor: Floor | None = None
    """Where nothing makes the request fit: what no compaction can remove."""


class ModelSetParams(Wire, frozen=True, kw_only=True):
    """Params of `model/set`."""

    session_id: SessionId
    model: str | ModelRef
    """`"provider/id"`, or its parts."""


class ModelSetResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `model/set`."""

    model: str | None
    """The model in force now."""
    token_usage: TokenUsage
    """The numbers under the new model."""
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
    """The same session."""
    message_count: int
    """Messages of the view."""


class PruneParams(Wire, frozen=True, kw_only=True):
    """Params of `session/prune`."""

    session_id: SessionId
    dry_run: bool | None = None
    """True: says what would be pruned and changes nothing."""


class PruneResult(Wire, frozen=True, kw_only=True):
    """Result of `session/prune`."""

    pruned: int
    """Tool results."""
    tokens_saved: int
    """Tokens that the context is smaller by."""
    entry_ids: tuple[str, ...]
    """The messages that are shown shortened."""


# --- without a session ------------------------------------------------------------------------------


class LookupParams(Wire, frozen=True, kw_only=True):
    """Params of `models/lookup`."""

    model: Annotated[str, Meta(min_length=1, max_length=4096)]
    """`provider/id`, or an id alone in any provider's spelling."""
    provider: str | None = None
    """Who serves it. Null: `model` names it, or it is found by the model."""
    base_url: str | None = None
    """The endpoint, if it is not the provider's own. What its server taught counts."""
    explain: bool | None = None
    """Tell every step of the ladder and what it found."""


class LadderStep(Wire, frozen=True, kw_only=True):
    """One step of a lookup."""

    step: str
    """Name of the step. Values so far: `observed`, `name`, `exact`, `provider's variants`, `own machine`,
    `maker`, `consensus`, `open weights`, `family`, `fallback`, `models.toml`."""
    key: str
    """What was looked for."""
    found: str
    """What came of it, in words; empty where nothing."""


class LookupResult(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `models/lookup`. Tokens."""

    model: str
    """As the provider spells it; as it was asked for if no row was found."""
    provider: str | None
    """Who serves it; null if that is not known."""
    context_window: int
    """The context window: input and output combined. 128000 (`guess`) for a model that nobody knows."""
    input_limit: int | None
    """Most input, if that is less than the window; otherwise null."""
    output_limit: int | None
    """Most output; null if it is not known."""
    upper_bound: bool
    """A local server may have loaded the model with less."""
    confidence: Confidence
    """How sure the window is. `override`: the user set it. `observed`: a server said it. `fact`: the
    registry's sources agree. `disputed`: they disagree. `guess`: derived from the name, or the fallback."""
    source: str
    """Where the number comes from, for a person."""
    how: str
    """By which step it was found, for a person."""
    tokenizer: str | None
    """Name of the tokenizer, such as `o200k_base`; null if none is known."""
    pricing: Raw
    """US dollars per million tokens: `{input, output, cache_read?, cache_write?, steps?}`. `steps` are the
    prices above an input size (`above`, tokens). Null if unknown."""
    retired: bool
    """True if the provider no longer offers it."""
    steps: tuple[LadderStep, ...] | UnsetType = UNSET
    """With `explain`: every step that was tried, in order, up to the one that answered."""


class ListModelsParams(Wire, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Params of `models/list`. Without `limit` everything comes in one answer, megabytes of it."""

    provider: str | None = None
    """Only this provider's models. Null: all."""
    from_: str | None = None
    """`provider/id` of the first model to list, as `next` of the page before has it."""
    limit: Positive | None = None
    """Models in one answer."""


class ModelInfo(Wire, frozen=True, kw_only=True):
    """One model of one provider. Tokens."""

    provider: str
    """Who serves it."""
    model: str
    """As the provider spells it."""
    context_window: int
    """The context window: input and output combined."""
    input_limit: int | None
    """Most input, if that is less than the window; otherwise null."""
    output_limit: int | None
    """Most output; null if it is not known."""
    confidence: Confidence
    """`fact` if the sources agree on the window, `disputed` if they do not."""
    source: str
    """Names of the sources, separated by commas."""
    tokenizer: str | None
    """As in `models/lookup`."""
    pricing: Raw
    """As in `models/lookup`."""
    retired: bool
    """True if the provider no longer offers it."""


class ObservedInfo(Wire, frozen=True, kw_only=True):
    """A window that a server told this machine of."""

    model: str
    """The model, as its provider spells it."""
    provider: str | None
    """Who serves it; null if that is not known."""
    base_url: str | None
    """The endpoint; null for the provider's own."""
    window: int
    """The window that was named, in tokens."""
    by: Literal["rejection", "server"]
    """`rejection`: the error of a request that was too large. `server`: a server that was asked for its
    window."""
    at: float
    """When it was learned, in Unix seconds."""
    source: str
    """Where the number comes from, for a person."""
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
    """Of the registry that is built in."""
    observed: tuple[ObservedInfo, ...]
    """Windows that were learned on this machine, also those that are in doubt. Empty in a page that begins
    with `from`: the first page has them all."""
    next: str | UnsetType = UNSET
    """`from` of the next page. Left out if there is none."""


class ForgetParams(Wire, frozen=True, kw_only=True):
    """Params of `models/forget`: what is given must match. To forget every window, say `all`."""

    model: str | None = None
    """`provider/id`, or an id alone. Null: any model."""
    provider: str | None = None
    """Null: any provider."""
    base_url: str | None = None
    """The endpoint. Null: any."""
    all: bool | None = None
    """True forgets every window that was learned, of all models. Not beside the others."""


class ForgetResult(Wire, frozen=True, kw_only=True):
    """Result of `models/forget`."""

    forgotten: int
    """How many learned windows were forgotten."""


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
    """Whether the folder is trusted now."""
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
    """The setting, as in `compaction`."""
    value: Raw
    """What the file sets it to."""
    allows: str | None = None
    """What the trust allows, in words; null where an untrusted file may set it, too."""


class TrustedFolder(Wire, frozen=True, kw_only=True):
    """A folder whose `.compactd.toml` the user trusted."""

    path: str
    """The folder, with symbolic links resolved."""
    sha256: str
    """Of the bytes of `.compactd.toml` that were trusted."""
    trusted_at: float
    """When the user trusted it, in Unix seconds."""
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
    """The provider's code of the error, such as `context_length_exceeded`."""
    body: Raw = NULL
    """A string, or the JSON as it came. Beats `message`."""
    message: str | None = None
    """The text of the error, if there is no `body`."""
    provider: str | None = None
    """Who answered. Null: judged by the text alone."""
    usage: Raw = NULL
    """The provider's report of that request."""
    window: Positive | None = None
    """The model's window, if you know it."""
    stop_reason: str | None = None
    """Why the answer ended, for an overflow that is no error."""
    profile: str | None = None
    """Whose rule for an error without a body holds; the session's, else `default`."""
    session_id: SessionId | None = None
    """A session that knows its size and window."""


class ClassifyResult(Wire, frozen=True, kw_only=True):
    """Result of `overflow/classify`."""

    overflow: bool
    """The request was too large for the model's window, also where `fix` is `lower_output`."""
    kind: FailureKind
    """What the failure was. `overflow`: larger than the window. `output_limit`: the output asked for is too
    much. `payload_too_large`: the HTTP body or one item. `other`: nothing is known of it."""
    limit: int | None
    """The limit that the text names, in tokens."""
    requested: int | None
    """What was compared with it, in tokens."""
    fix: Literal["compact", "lower_output", "truncate_item", "retry_later", "none"]
    """What mends it. `compact`: a smaller conversation. `lower_output`: a smaller `max_tokens`.
    `truncate_item`: a smaller item of the request. `retry_later`: the same request later. `none`: no change
    of size."""
    evidence: str
    """What decided, in a few words."""


class CountParams(Wire, frozen=True, kw_only=True):
    """Params of `tokens/count`: a text, or messages."""

    model: str | None = None
    """The model whose tokenizer counts, as `provider/id` or an id. Null: a general estimate."""
    text: str | None = None
    """The text. Give this or `messages`."""
    messages: tuple[Raw, ...] | None = None
    """The messages, in the shape of `format`."""
    format: Format | None = None
    """As in `session/append`."""


class CountResult(Wire, frozen=True, kw_only=True):
    """Result of `tokens/count`."""

    tokens: int
    """Tokens of the text, or of the messages with what a request needs around them."""
    exact: bool
    """The model's own tokenizer counted."""
    method: str
    """Name of the tokenizer or of the estimator, such as `o200k_base` or `chars4`."""


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
    """Sessions that are open in this daemon."""
    paths: dict[str, str]
    """Folders on this machine: `data` holds the sessions, `config` the user's settings and keys."""
    encodings: tuple[str, ...]
    """Tokenizers that can count exactly."""
    platform: Literal["tested", "untested"]
    """`tested` on Linux and macOS, otherwise `untested`."""
    warnings: tuple[str, ...] = ()
    """What is unsafe about where the daemon works, such as a data folder that other users may write to."""

"""The fields of results that the checks read. Results may have more."""

from __future__ import annotations

from msgspec import Raw, Struct


class Usage(Struct, frozen=True):
    """The value `TokenUsage`."""

    total_tokens: int
    last_prompt_tokens: int
    current_context_tokens: int | None
    current_context_source: str
    context_window: int | None
    epoch: int


class Started(Struct, frozen=True):
    """The result of `session/start`."""

    session_id: str
    resumed: bool
    read_only: bool
    message_count: int
    seq: int
    token_usage: Usage
    warnings: tuple[str, ...]


class Decided(Struct, frozen=True):
    """The value `decision`."""

    kind: str
    used: int


class Reduction(Struct, frozen=True):
    """One of the `reductions` of `session/append`."""

    message_entry_id: str
    entry_id: str


class Reduced(Struct, frozen=True):
    """The result of `session/reduce`."""

    content: str
    reduced: bool
    tokens_before: int
    tokens_after: int
    entry_id: str | None
    rules: tuple[str, ...]


class Appended(Struct, frozen=True):
    """The result of `session/append`."""

    entry_ids: tuple[str, ...]
    duplicates: tuple[str, ...]
    pending_calls: tuple[str, ...]
    token_usage: Usage
    decision: Decided
    reductions: tuple[Reduction, ...] = ()


class Context(Struct, frozen=True):
    """The result of `session/context`."""

    messages: tuple[Raw, ...]
    tokens: int
    epoch: int
    repairs: tuple[Raw, ...]
    system: str | None = None


class CannotFit(Struct, frozen=True):
    """The data of error 1008."""

    least_target: int


class Compaction(Struct, frozen=True):
    """The result of `session/compact`."""

    compacted: bool
    reason: str
    compaction_id: str | None
    strategy: str
    messages_before: int
    messages_after: int
    messages_removed: int
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    first_kept_entry_id: str | None
    kept_messages: int
    pinned_entry_ids: tuple[str, ...]
    summary: str
    read_files: tuple[str, ...]
    modified_files: tuple[str, ...]


class HistoryEntry(Struct, frozen=True):
    """One entry of `session/history`."""

    entry_id: str
    kind: str
    in_context: bool
    message: Raw = Raw(b"null")
    title: str | None = None


class History(Struct, frozen=True):
    """The result of `session/history`."""

    entries: tuple[HistoryEntry, ...]


class Hit(Struct, frozen=True):
    """One hit of `session/search`."""

    entry_id: str
    snippet: str
    in_context: bool


class Hits(Struct, frozen=True):
    """The result of `session/search`."""

    hits: tuple[Hit, ...]


class Original(Struct, frozen=True):
    """One entry of `session/expand`."""

    entry_id: str
    message: Raw


class Originals(Struct, frozen=True):
    """The result of `session/expand`."""

    entries: tuple[Original, ...]


class Rewound(Struct, frozen=True):
    """The result of `session/undo` and `session/redo`."""

    message_count: int
    token_usage: Usage
    compaction_id: str | None = None


class Compactions(Struct, frozen=True):
    """The field `compaction` of `agent/state`."""

    running: bool
    count: int


class Prompt(Struct, frozen=True):
    """One of the `prompts` of `agent/state`."""

    prompt_id: str


class State(Struct, frozen=True):
    """The result of `agent/state`."""

    session_id: str
    status: str
    message_count: int
    token_usage: Usage
    compaction: Compactions
    prompts: tuple[Prompt, ...] = ()


class Row(Struct, frozen=True):
    """One session of `session/list`."""

    session_id: str
    message_count: int


class Rows(Struct, frozen=True):
    """The result of `session/list`."""

    sessions: tuple[Row, ...]


class Begun(Struct, frozen=True):
    """The result of `turn/begin`."""

    compaction: Compaction | None
    token_usage: Usage


class Failed(Struct, frozen=True):
    """The result of `turn/error`."""

    overflow: bool
    kind: str
    retry: bool
    compaction: Compaction | None = None


class Class(Struct, frozen=True):
    """The result of `overflow/classify`."""

    overflow: bool
    kind: str
    limit: int | None
    fix: str


class Known(Struct, frozen=True):
    """The result of `models/lookup`."""

    context_window: int | None
    confidence: str


class Nothing(Struct, frozen=True):
    """Any result of which the checks read no field."""


class Path(Struct, frozen=True):
    """The `data` of error -32602."""

    path: str


class Exists(Struct, frozen=True):
    """The `data` of error 1001."""

    exists: bool = False


class Initialized(Struct, frozen=True):
    """The result of `initialize`."""

    capabilities: Capabilities


class Capabilities(Struct, frozen=True):
    """The server's capabilities in the result of `initialize`."""

    experimental: Experimental


class Experimental(Struct, frozen=True):
    """The capabilities that are not part of LSP."""

    compactd: Spoken


class Spoken(Struct, frozen=True):
    """The protocol's version and methods."""

    protocol_version: str
    methods: tuple[str, ...]


class Counted(Struct, frozen=True):
    """The result of `tokens/count`."""

    tokens: int
    exact: bool


class Queued(Struct, frozen=True):
    """The result of `agent/prompt`."""

    turn_id: str
    queued: bool


class Exported(Struct, frozen=True):
    """The result of `session/export`."""

    format: str
    content: Raw = Raw(b"null")


class Imported(Struct, frozen=True):
    """The result of `session/import`."""

    session_id: str
    message_count: int


class Format(Struct, frozen=True):
    """The `data` of error -32602 for a message in a provider's format."""

    format: str


class Reported(Struct, frozen=True):
    """The result of `turn/end`."""

    token_usage: Usage
    warnings: tuple[str, ...] = ()


class Setting(Struct, frozen=True):
    """One of the `settings` of `session/configure`."""

    value: object


class Configured(Struct, frozen=True):
    """The result of `session/configure`."""

    settings: dict[str, Setting]


class Shown(Struct, frozen=True):
    """The field `value` of `$/progress`."""

    message: str = ""


class Progress(Struct, frozen=True):
    """The params of `$/progress`."""

    token: str | int
    value: Shown


class Changed(Struct, frozen=True):
    """The params of the event `session_changed`."""

    what: str


class Closed(Struct, frozen=True):
    """The params of the event `session_closed`."""

    reason: str

"""`compaction`: the settings as clients and files give them."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

Profile = Literal["default", "opal", "go-agent", "klaude", "evmts", "opencode"]
StrategyChoice = Literal["auto", "summarize", "extract", "truncate"]
Estimator = Literal["auto", "chars4", "tokenizer"]

MAX_TOKENS = 2**53
"""Beyond it JSON numbers are no longer exact everywhere."""

MAX_DEADLINE_S = 86_400

FromOne = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MAX_TOKENS})]
FromZero = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MAX_TOKENS})]
"""Bounds that the schema shows. `validate` checks them: a journal that breaks one can still be read."""

SettingValue = str | int | float | bool | None | tuple[str, ...]


class GivenSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`compaction` in `session/start` and `session/configure`: what is left out, or null, is not set here."""

    profile: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(Profile))})] | None = None
    """`default`, `opal`, `go-agent`, `klaude`, `evmts` or `opencode`."""
    enabled: bool | None = None
    """False: no compaction but `session/compact`; a provider's overflow reaches the caller."""
    auto: bool | None = None
    """Another name of `enabled`."""
    context_window: FromZero | None = None
    """The model's window in tokens; replaces the registry's window and input limit. 0: there is no limit, so
    nothing is compacted until the provider refuses."""
    model_auto_compact_token_limit: FromOne | None = None
    """A compaction is due at this many tokens; above 0, exact up to the cap."""
    threshold_ratio: (
        Annotated[float, Meta(extra_json_schema={"exclusiveMinimum": 0, "maximum": 1})] | None
    ) = None
    """The same as a share of the window, above 0 and at most 1."""
    reserve_tokens: FromZero | None = None
    """The same as what stays free of the window, in tokens; 0 or more."""
    keep_recent_tokens: FromOne | None = None
    """Budget of the verbatim tail in tokens, above 0."""
    keep_messages: FromOne | None = None
    """Size of the verbatim tail in messages, above 0."""
    preserve_count: FromOne | None = None
    """Another name of `keep_messages`."""
    split_min_messages: FromOne | None = None
    """A cut turn's prefix of at least this many messages gets its own summary; above 0."""
    prune: bool | None = None
    """Replace old tool output by stubs before each turn."""
    prune_minimum: FromZero | None = None
    """A prune that saves no more tokens than this is not done; 0 or more."""
    prune_protect: FromZero | None = None
    """Newest tool output in tokens that is never pruned; 0 or more."""
    protected_tools: tuple[str, ...] | None = None
    """Tools whose output is never pruned."""
    strategy: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(StrategyChoice))})] | None = None
    """`auto`, `summarize`, `extract` or `truncate`."""
    model: str | None = None
    """The summariser, `provider/id`."""
    compact_prompt: str | None = None
    """Replaces the summary prompt. `{messages}` marks where the transcript goes; absent, it is appended."""
    estimator: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(Estimator))})] | None = None
    """`auto`, `chars4` or `tokenizer`."""
    auto_continue: bool | None = None
    """After an automatic compaction, append "Continue if you have next steps"."""
    tool_output_chars: FromOne | None = None
    """Most of one tool result that a summariser sees, in code points; above 0."""
    summary_tokens: FromOne | None = None
    """Most that a summary may take, in tokens; above 0."""
    summary_deadline_s: (
        Annotated[float, Meta(extra_json_schema={"exclusiveMinimum": 0, "maximum": MAX_DEADLINE_S})] | None
    ) = None
    """Most seconds that a summariser may take, above 0; then the next strategy takes over."""
    max_cost: Annotated[float, Meta(extra_json_schema={"minimum": 0})] | None = None
    """Most US dollars that a session may spend on summaries; 0 or more. Beyond it no model is asked."""
    constraint_tokens: FromZero | None = None
    """Most tokens of a summary for the user's constraints ("must", "never", "at most 3" …), which every later
    view holds word for word, the newest first where not all have room; 0 or more. By default an eighth of
    `target_tokens`, else a quarter of the summary's budget."""
    retention_floor: Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})] | None = None
    """A model's summary with a smaller `retention.score` is repaired by `extract`'s record, or where that is
    not enough gives way to the next strategy, and `reason` says so; 0 (never) to 1."""


class IgnoredSetting(Struct, frozen=True, kw_only=True):
    """A setting that was given and is not in force, because its source is not trusted with it."""

    name: str
    """As in `compaction`."""
    source: str
    """`.compactd.toml`, or `session/import` for what an imported file holds."""
    reason: str
    """Why it is ignored, and what would apply it, in a sentence."""

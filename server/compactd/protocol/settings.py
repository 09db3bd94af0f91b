"""`compaction`: the settings as clients and files give them."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

Profile = Literal["default", "opal", "go-agent", "klaude", "evmts", "opencode"]
StrategyChoice = Literal["auto", "summarize", "provider", "extract", "truncate"]
CacheChoice = Literal["auto", "5m", "1h", "off"]
PrepareChoice = Literal["auto", "off"]
WhenChoice = Literal["window", "cost", "auto"]
Estimator = Literal["auto", "chars4", "tokenizer"]
ReduceLevel = Literal["light", "default", "strong"]

MAX_TOKENS = 2**53
"""The largest number that JSON can represent exactly everywhere."""

MAX_DEADLINE_S = 86_400

FromOne = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MAX_TOKENS})]
FromZero = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MAX_TOKENS})]
"""Integers from 1 or from 0, with these bounds in the JSON schema. `validate` (`core/budget/settings.py`)
checks the bounds, not the decoder, so that a journal with a value out of bounds can still be read."""

SettingValue = str | int | float | bool | None | tuple[str, ...]


class GivenSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`compaction` in `session/start` and `session/configure`. A setting that is left out or null is not
    set."""

    profile: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(Profile))})] | None = None
    """The profile: `default`, `opal`, `go-agent`, `klaude`, `evmts` or `opencode`."""
    enabled: bool | None = None
    """False: only `session/compact` compacts, and a provider's overflow error reaches the caller."""
    auto: bool | None = None
    """Another name of `enabled`."""
    context_window: FromZero | None = None
    """The model's window in tokens. Replaces the registry's window and input limit. 0: there is no limit, so
    nothing is compacted until the provider refuses a request."""
    model_auto_compact_token_limit: FromOne | None = None
    """A compaction is due at this many tokens, or at the most tokens that a request may have if that is less;
    above 0."""
    threshold_ratio: (
        Annotated[float, Meta(extra_json_schema={"exclusiveMinimum": 0, "maximum": 1})] | None
    ) = None
    """A compaction is due at this share of the window; above 0 and at most 1."""
    reserve_tokens: FromZero | None = None
    """A compaction is due when fewer than this many tokens of the window are free; 0 or more."""
    keep_recent_tokens: FromOne | None = None
    """How many tokens of the newest messages stay word for word; above 0."""
    keep_messages: FromOne | None = None
    """How many of the newest messages stay word for word; above 0."""
    preserve_count: FromOne | None = None
    """Another name of `keep_messages`."""
    split_min_messages: FromOne | None = None
    """If a compaction cuts a turn in two and removes at least this many of its messages, these get a summary
    of their own; above 0."""
    prune: bool | None = None
    """True: before each turn, old tool output is replaced by stubs."""
    prune_minimum: FromZero | None = None
    """A prune that saves no more tokens than this is not done; 0 or more."""
    prune_protect: FromZero | None = None
    """The newest tool output of this many tokens is never pruned; 0 or more."""
    protected_tools: tuple[str, ...] | None = None
    """Tools whose output is never pruned."""
    strategy: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(StrategyChoice))})] | None = None
    """How summaries are made. `summarize`: a model writes them. `provider`: by the provider's own compaction,
    next to a summary by rules. `extract`: by rules, without a model. `truncate`: there is no summary, old
    messages are left out. `auto`: `summarize` if a model may be asked, otherwise without a model. If one way
    fails, the next simpler one is used."""
    model: str | None = None
    """The model that summarises, as `provider/id`."""
    compact_prompt: str | None = None
    """Replaces the summary prompt. `{messages}` marks where the transcript goes. Without it, the transcript
    is appended."""
    estimator: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(Estimator))})] | None = None
    """How tokens are counted: `auto`, `chars4` or `tokenizer`."""
    auto_continue: bool | None = None
    """True: after an automatic compaction, "Continue if you have next steps" is appended."""
    tool_output_chars: FromOne | None = None
    """The most code points of one tool result that a summariser sees; above 0."""
    summary_tokens: FromOne | None = None
    """The most tokens that a summary may take; above 0."""
    summary_deadline_s: (
        Annotated[float, Meta(extra_json_schema={"exclusiveMinimum": 0, "maximum": MAX_DEADLINE_S})] | None
    ) = None
    """The most seconds that a summariser may take, above 0. After that, the next strategy is used."""
    max_cost: Annotated[float, Meta(extra_json_schema={"minimum": 0})] | None = None
    """The most US dollars that a session may spend on summaries; 0 or more. Beyond that, no model is
    asked."""
    constraint_tokens: FromZero | None = None
    """The most tokens of a summary for the user's constraints ("must", "never", "at most 3" …), which every
    later view contains word for word; 0 or more. If not all fit, the newest are kept. The default is
    1,000 or half of `target_tokens`, whichever is more, or without a target half of the summary's budget."""
    cache: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(CacheChoice))})] | None = None
    """Whether requests are marked for the provider's prompt cache. `auto`: yes, if the provider wants marks
    (`cache_control` for Anthropic; for OpenAI's Responses API `prompt_cache_key`, and from GPT-5.6 on
    `prompt_cache_breakpoint`). Anthropic keeps what it cached for 5 minutes or, at a higher price, for an
    hour: `auto` chooses what costs less with the pauses that the session has made so far. `5m` or `1h`: the
    same, always with this lifetime. `off`: no marks; for clients that set their own."""
    prepare: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(PrepareChoice))})] | None = None
    """Whether a compaction is prepared while the daemon is idle, some time before it is due, so that the turn
    that needs it does not wait. `auto`: yes. If a model writes the summaries, it is asked once before each
    compaction, and the session's usage includes an answer that is not used. `off`: no."""
    when: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(WhenChoice))})] | None = None
    """What decides when `turn/begin` compacts. `window`: the threshold. `cost`: the threshold, and the prices
    of the model and of its prompt cache; a compaction is also due if it lowers the bill. If a price that it
    needs is not known, the threshold decides alone, and `decision.reason` says so. `auto`: at present the
    same as `cost`."""
    retention_floor: Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})] | None = None
    """A model's summary with a smaller `retention.score` is repaired: what it lacks of the state of the work
    is added. If there is no room for that, the next strategy is used, and `reason` says so. 0 (never) to
    1."""
    reduce_level: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(ReduceLevel))})] | None = None
    """How much of a tool's output is left out when it is reduced (`session/reduce`). `light`: only what is
    shown elsewhere or has no meaning. `strong`: also what is seldom used later. `default`: between them."""
    reduce_min_tokens: FromZero | None = None
    """Tool outputs with fewer tokens are never reduced; 0 or more."""
    reduce_loop: bool | None = None
    """True: the daemon's own loop (`agent/prompt`) reduces tool results as they come in. The model can only
    get back what was left out if the client offers it a tool for that."""


class GivenReduce(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`reduce` in `session/start` and `session/configure`: another way to give the settings whose names begin
    with `reduce_`. What is left out or null is not set."""

    level: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(ReduceLevel))})] | None = None
    """The setting `reduce_level`."""
    min_tokens: FromZero | None = None
    """The setting `reduce_min_tokens`; 0 or more."""
    loop: bool | None = None
    """The setting `reduce_loop`."""


class IgnoredSetting(Struct, frozen=True, kw_only=True):
    """A setting that was given but is ignored, because its source is not trusted to set it."""

    name: str
    """Name of the setting, as in `compaction`."""
    source: str
    """`.compactd.toml`, or `session/import` for settings in an imported file."""
    reason: str
    """Why it is ignored, and how to apply it, in a sentence."""

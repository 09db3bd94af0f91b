"""From what was given, in layers, to the settings in force and where each came from.

A layer is what one place says: the request, `session/configure`, the environment, a file. A higher layer
beats a lower one setting by setting; what no layer names is the profile's. The caller brings the layers in
their order (behaviour.md, "Settings").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, get_args

import msgspec
from msgspec import Meta, Struct

from compactd.core.profiles import PROFILES
from compactd.core.rules import Estimator, StrategyChoice
from compactd.core.rules import Settings as Settings
from compactd.errors import InvalidParams

DEFAULT_PROFILE = "default"

MAX_TOKENS = 2**53
"""Beyond it JSON numbers are no longer exact everywhere."""

MAX_DEADLINE_S = 86_400

THRESHOLD = ("model_auto_compact_token_limit", "threshold_ratio", "reserve_tokens")
KEEP = ("keep_recent_tokens", "keep_messages")
EXCLUSIVE = (THRESHOLD, KEEP)
"""Ways to say one thing: the highest layer that names any of a group decides for the whole group; where one
layer names several, the first of the group counts."""

FromOne = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MAX_TOKENS})]
FromZero = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MAX_TOKENS})]
"""Bounds that the schema shows. `validate` checks them: a journal that breaks one can still be read."""

SettingValue = str | int | float | bool | None | tuple[str, ...]


class GivenSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`compaction` in `session/start` and `session/configure`: what is left out, or null, is not set here."""

    profile: Annotated[str, Meta(extra_json_schema={"enum": list(PROFILES)})] | None = None
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


class Resolved(Struct, frozen=True, kw_only=True):
    """The settings in force."""

    settings: Settings
    sources: Mapping[str, str]
    """Name of the setting to the layer it came from, `profile NAME` where none named it."""
    without: Resolved | None = None
    """The same without the untrusted layer, where there is one."""

    def source(self, name: str) -> str:
        """Where a setting came from."""
        return self.sources[name]


ALIASES = {"auto": "enabled", "preserve_count": "keep_messages"}
"""Another name to the setting it means. Where both are given, the setting's own name counts."""

NAMES = tuple(name for name in GivenSettings.__struct_fields__ if name not in ALIASES)
"""Every setting, in the contract's order."""

_AT_LEAST = {
    "context_window": 0,
    "model_auto_compact_token_limit": 1,
    "reserve_tokens": 0,
    "keep_recent_tokens": 1,
    "keep_messages": 1,
    "preserve_count": 1,
    "split_min_messages": 1,
    "prune_minimum": 0,
    "prune_protect": 0,
    "tool_output_chars": 1,
    "summary_tokens": 1,
    "constraint_tokens": 0,
}
_ONE_OF = {
    "profile": tuple(PROFILES),
    "strategy": get_args(StrategyChoice),
    "estimator": get_args(Estimator),
}


def validate(given: GivenSettings, path: str = "$.compaction") -> GivenSettings:
    """`given`, if each value is in its range; else `InvalidParams` with the field's path below `path`."""
    for name, least in _AT_LEAST.items():
        value: int | None = getattr(given, name)
        if value is not None and not least <= value <= MAX_TOKENS:
            raise InvalidParams(
                f"{name} is {value}; it must be {least} or more, below 2^53", f"{path}.{name}"
            )
    for name, names in _ONE_OF.items():
        chosen: str | None = getattr(given, name)
        if chosen is not None and chosen not in names:
            raise InvalidParams(f"{name} must be one of {', '.join(names)}", f"{path}.{name}")
    ratio = given.threshold_ratio
    if ratio is not None and not 0 < ratio <= 1:
        raise InvalidParams(
            f"threshold_ratio is {ratio}; it must be above 0, at most 1", f"{path}.threshold_ratio"
        )
    if given.summary_deadline_s is not None and not 0 < given.summary_deadline_s <= MAX_DEADLINE_S:
        raise InvalidParams(
            f"summary_deadline_s must be above 0, at most {MAX_DEADLINE_S}", f"{path}.summary_deadline_s"
        )
    if given.max_cost is not None and not 0 <= given.max_cost < float("inf"):
        raise InvalidParams("max_cost must be 0 or more", f"{path}.max_cost")
    floor = given.retention_floor
    if floor is not None and not 0 <= floor <= 1:
        raise InvalidParams(f"retention_floor is {floor}; it must be 0 to 1", f"{path}.retention_floor")
    if given.model is not None and not given.model.strip():
        raise InvalidParams("model is empty", f"{path}.model")
    return given


def merge(layers: Sequence[tuple[str, GivenSettings]]) -> Resolved:
    """The settings in force, from layers of (source, what it says), the highest first.

    The layers are valid (`validate`). O(layers).
    """
    chosen: dict[str, SettingValue] = {}
    sources: dict[str, str] = {}
    for source, given in layers:
        for name, value in _values(given).items():
            group = next((group for group in EXCLUSIVE if name in group), (name,))
            if chosen.keys().isdisjoint(group):
                chosen[name] = value
                sources[name] = source
    profile = PROFILES[str(chosen.get("profile", DEFAULT_PROFILE))]
    for name in NAMES:
        sources.setdefault(name, f"profile {profile.profile}")
    return Resolved(settings=msgspec.structs.replace(profile, **chosen), sources=sources)


def values_of(settings: Settings) -> dict[str, SettingValue]:
    """Each setting by name, in the contract's order."""
    return {name: getattr(settings, name) for name in NAMES}


def _values(given: GivenSettings) -> dict[str, SettingValue]:
    """What `given` names, aliases resolved, exclusive ones in the order in which they count."""
    values: dict[str, SettingValue] = {name: getattr(given, name) for name in NAMES}
    for alias, name in ALIASES.items():
        if values[name] is None:
            values[name] = getattr(given, alias)
    return {name: value for name, value in values.items() if value is not None}

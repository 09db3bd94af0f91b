"""Merge layers of settings into the settings that compactd uses, and record where each came from.

A layer is what one source says: the request, `session/configure`, the environment, a file. A higher layer
beats a lower one, setting by setting. What no layer names comes from the profile. The caller passes the
layers in order (docs/dev/behaviour.md, "Settings").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec
from msgspec import Struct

from compactd.core.budget.profiles import PROFILES
from compactd.core.budget.rules import Settings as Settings
from compactd.protocol.errors import InvalidParams
from compactd.protocol.settings import (
    MAX_DEADLINE_S,
    MAX_TOKENS,
    CacheChoice,
    Estimator,
    GivenSettings,
    PrepareChoice,
    ReduceLevel,
    SettingValue,
    StrategyChoice,
    WhenChoice,
)

DEFAULT_PROFILE = "default"

THRESHOLD = ("model_auto_compact_token_limit", "threshold_ratio", "reserve_tokens")
KEEP = ("keep_recent_tokens", "keep_messages")
EXCLUSIVE = (THRESHOLD, KEEP)
"""Groups of settings that express the same thing. The highest layer that names any of a group decides for the
whole group. If one layer names several, the first of the group counts."""


class Resolved(Struct, frozen=True, kw_only=True):
    """The settings that compactd uses, merged from all layers, and the source of each."""

    settings: Settings
    sources: Mapping[str, str]
    """For each setting, the name of the layer that it came from, or `profile NAME` if no layer named it."""
    without: Resolved | None = None
    """The settings without the untrusted layer; None if there is no untrusted layer."""

    def source(self, name: str) -> str:
        """Return where the setting `name` came from."""
        return self.sources[name]


ALIASES = {"auto": "enabled", "preserve_count": "keep_messages"}
"""Alternative names of settings. If both names are given, the setting's own name counts."""

NAMES = tuple(name for name in GivenSettings.__struct_fields__ if name not in ALIASES)
"""The names of all settings, in the protocol's order."""

_MINIMUMS = {
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
    "reduce_min_tokens": 0,
}
_ONE_OF = {
    "profile": tuple(PROFILES),
    "strategy": get_args(StrategyChoice),
    "estimator": get_args(Estimator),
    "cache": get_args(CacheChoice),
    "prepare": get_args(PrepareChoice),
    "when": get_args(WhenChoice),
    "reduce_level": get_args(ReduceLevel),
}


def validate(given: GivenSettings, path: str = "$.compaction") -> GivenSettings:
    """Return `given` if each value is in its range. Otherwise raise `InvalidParams` with the field's path
    below `path`."""
    for name, least in _MINIMUMS.items():
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
        raise InvalidParams("model is empty; give the name of a model, or leave model out", f"{path}.model")
    return given


def merge(layers: Sequence[tuple[str, GivenSettings]]) -> Resolved:
    """Merge layers of (source, settings), the highest first, into the settings that compactd uses.

    The layers must be valid (`validate`). O(layers).
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
    """Return the value of each setting by name, in the protocol's order."""
    return {name: getattr(settings, name) for name in NAMES}


def _values(given: GivenSettings) -> dict[str, SettingValue]:
    """Return the settings that `given` names, with aliases replaced by the settings' own names. Of settings
    that exclude each other, the one that counts comes first."""
    values: dict[str, SettingValue] = {name: getattr(given, name) for name in NAMES}
    for alias, name in ALIASES.items():
        if values[name] is None:
            values[name] = getattr(given, alias)
    return {name: value for name, value in values.items() if value is not None}

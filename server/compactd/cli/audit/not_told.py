"""What a session file does not say, so that an audit cannot know it."""

from __future__ import annotations

from collections.abc import Sequence

from compactd.cli.audit.trail import Trail
from compactd.cli.framework.page import one_line, plural
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.requests import FileUsage
from compactd.cli.usage.totals import Sum
from compactd.core.cost.cache_rules import cache_rules

MAX_NAMES = 3
EARLY_OUTPUT_TOKENS = 10
"""A report of Claude Code with fewer output tokens was written when the answer began (seen in versions 2.0
and 2.1, 2026-11)."""


def unknown_facts(trail: Trail, prices: PriceList, total: Sum) -> list[str]:
    """Return sentences about what the file does not say."""
    usage = trail.usage
    told = []
    if total.requests:
        told.append(
            "The file shows no system prompt or tools, so a rebuild after a change of them is unknown."
        )
    if usage.not_reported or (total.cache_read and not total.cache_write):
        told.append(
            "The file reports no cache writes: they are part of the input, and rebuilds are an estimate."
        )
    used = {request.model for request in usage.requests}
    unsure = [
        model
        for number, (provider, model) in enumerate(usage.models)
        if number in used
        and model
        and ((rules := cache_rules(provider or None, model)) is None or rules.lifetime_s is None)
    ]
    if unsure:
        told.append(
            f"How long the provider keeps the cache of {name_list(unsure)} is not known, so no rebuild of it"
            " is called expired."
        )
    if usage.agent not in ("claude-code", "aider") and len(unsure) < len(used):
        told.append(
            "The file does not say how long the cache lasts. `expired` goes by the provider's usual time."
        )
    undated = sum(place.at is None for place in trail.places)
    if undated:
        told.append(f"{undated:,} of {len(trail.places):,} requests have no time.")
    if _goes_back(trail):
        told.append("The clock went back: no time between those requests is known.")
    if any(prices.find(*usage.models[number]) is None for number in used):
        told.append("For a model without a known price, the cost of its requests and rebuilds is not known.")
    if has_early_reports(usage):
        told.append("Most reports were written before their answer was complete, so the output is too low.")
    if trail.contradictions:
        told.append(
            f"In {trail.contradictions:,} usage reports, the parts of the cache writes are not their sum; the"
            " sum counts."
        )
    if usage.unreadable:
        lines = plural(usage.unreadable, "damaged line")
        told.append(f"{lines} with a usage report {'is' if usage.unreadable == 1 else 'are'} left out.")
    if usage.agent == "aider":
        told.append(
            "The file has one chat after the other. Each counts as a conversation of its own, with its own"
            " cache; which files aider sent is not known, so neither is why a cache was built again."
        )
    if not trail.shows_compactions:
        told.append("The file does not show compactions.")
    elif usage.agent != "opencode" and any(one.kind == "compaction" for one in trail.boundaries):
        told.append("The file has no usage of the requests that wrote the summaries, so the bill lacks them.")
    return told


def has_early_reports(usage: FileUsage) -> bool:
    """Return whether most reports of a file seem to be from the beginning of the answer."""
    requests = usage.requests
    return usage.agent == "claude-code" and 2 * sum(
        request.output < EARLY_OUTPUT_TOKENS for request in requests
    ) > len(requests)


def _goes_back(trail: Trail) -> bool:
    last: dict[str, float] = {}
    for place in trail.places:
        if place.at is None:
            continue
        if place.at < last.get(place.chain, 0.0):
            return True
        last[place.chain] = place.at
    return False


def name_list(names: Sequence[str]) -> str:
    """Return names as a text: the first three, and how many more there are."""
    shown = ", ".join(map(one_line, names[:MAX_NAMES]))
    return f"{shown} and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else shown

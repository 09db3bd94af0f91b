"""What `compactd inspect` tells: as JSON, in a terminal, in a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from compactd.cli.anatomy import Anatomy, Entry, Place
from compactd.cli.cost import Cost
from compactd.cli.gauge import Gauge, bar, legend_of
from compactd.cli.growth import LEAST, Forecast, Growth, sparkline
from compactd.cli.known import NAME_IT, Known
from compactd.cli.loading import Conversation, about
from compactd.cli.loading import facts_of as facts_of_file
from compactd.cli.page import LABEL, Look, Page, plural, shortened
from compactd.messages import CompactionResult

POINTS = 48
"""Of the line that shows the growth."""

POINTS_IN_A_PIPE = 12
GAP = 3


class Inspected(Struct, frozen=True, kw_only=True):
    """A session file, as far as its tokens go."""

    conversation: Conversation
    known: Known
    anatomy: Anatomy
    gauge: Gauge
    report_message: int | None
    """The message whose report the current size starts from, counted from 1."""
    growth: Growth
    forecast: Forecast | None
    cost: Cost | None
    preview: CompactionResult
    """What a compaction now would do."""
    places: Mapping[str, Place]
    """Of the messages in the context, by entry."""
    warnings: tuple[str, ...]


def facts_of(seen: Inspected) -> dict[str, object]:
    """The same facts for `--json`. Tokens."""
    usage, known, growth = seen.known.state.token_usage, seen.known, seen.growth
    return {
        "session": {**facts_of_file(seen.conversation), "messages_in_context": len(seen.conversation.live)},
        "used": {
            "tokens": usage.current_context_tokens,
            "percent": usage.percent,
            "source": usage.current_context_source,
            "reported": usage.last_prompt_tokens,
            "report_message": seen.report_message,
            "estimated_after": known.state.budget["trailing"].value,
        },
        "window": {
            "tokens": known.window,
            "model": known.model,
            "confidence": known.confidence,
            "source": known.state.budget["window"].source,
        },
        "compacts": {
            "enabled": known.state.compaction.enabled,
            "tokens": usage.threshold_tokens,
            "source": known.state.budget["threshold"].source,
            "forecast": seen.forecast,
        },
        "cost": seen.cost,
        "parts": seen.gauge.parts,
        "largest": seen.anatomy.largest,
        "growth": {
            "measured": growth.measured,
            "sizes": [{"turn": size.turn, "tokens": size.tokens} for size in growth.by_turn],
            "compactions": growth.compactions,
        },
        "compaction": {**msgspec.to_builtins(seen.preview), "turns": _turns(seen)},
        "warnings": seen.warnings,
    }


def show(page: Page, seen: Inspected, *, what: bool) -> None:
    """One glance: the gauge, the figures, the largest entries, the growth, what a compaction would do."""
    if page.is_drawn:
        first, *rest = bar(seen.gauge, page.width)
        page.line(first, _look(seen))
        for line in rest:
            page.line(line)
        page.line()
    _figures(page, seen)
    page.line()
    _largest(page, seen.anatomy.largest)
    page.line()
    _growth(page, seen.growth)
    _preview(page, seen, what=what)


def _look(seen: Inspected) -> Look:
    if seen.known.state.budget["over"].value:
        return "bad"
    threshold = seen.gauge.threshold
    return "due" if threshold is not None and seen.gauge.used >= threshold else ""


def _figures(page: Page, seen: Inspected) -> None:
    page.row("session", about(seen.conversation, in_context=True))
    if not page.is_drawn:
        page.row("where", legend_of(seen.gauge, shades=False))
    page.figure("used", f"{seen.gauge.used:,}", _used(seen))
    window, look = _window(seen)
    page.figure("window", seen.known.window_number, window, look)
    if seen.known.state.token_usage.threshold_tokens is not None:
        number, text, look = _compacts(seen)
        page.figure("compacts", number, text, look)
    if seen.cost is not None:
        cached = f", {100 * seen.cost.cached_share:.0f} % of input from cache"
        reports = f"by {plural(seen.cost.reports, 'usage report')} in the file"
        page.figure("cost", f"${seen.cost.dollars:,.2f}", reports + cached)


def _used(seen: Inspected) -> str:
    usage = seen.known.state.token_usage
    if not usage.last_prompt_tokens:
        return "estimated from the texts: the file holds no provider's report of this context"
    message = f" of message {seen.report_message:,}" if seen.report_message else ""
    trailing = seen.known.state.budget["trailing"].value
    if not trailing:
        return f"measured: the provider's report{message}"
    return (
        f"measured: the provider's report{message} ({usage.last_prompt_tokens:,})"
        f" + {trailing:,} estimated after it"
    )


def _window(seen: Inspected) -> tuple[str, Look]:
    known = seen.known
    match known.confidence:
        case "guess" if known.lookup is None:
            return f"a guess: the file names no model; {NAME_IT}", "due"
        case "guess":
            return f"a guess: nobody recorded {known.model} ({known.lookup_how}); --window N says it", "due"
        case "fact" | "disputed" if known.lookup is not None:
            limit = known.lookup.input_limit
            most = "" if limit is None else f", at most {limit:,} of it input"
            return f"registry: {known.model}, {known.confidence} ({known.lookup.source}){most}", ""
        case _:
            return known.window_origin, ""


def _compacts(seen: Inspected) -> tuple[str, str, Look]:
    known, threshold = seen.known, seen.known.state.token_usage.threshold_tokens or 0
    if not known.state.compaction.enabled:
        source = known.state.compaction.settings["enabled"].source
        return "never", f"automatic compaction is off ({source})", ""
    if known.state.budget["over"].value:
        return f"{threshold:,}", "over: the next request does not fit any more", "bad"
    if seen.gauge.used >= threshold:
        return f"{threshold:,}", "due: before the next request", "due"
    guess = seen.forecast
    if guess is None:
        return f"{threshold:,}", known.state.budget["threshold"].source, ""
    steps = plural(guess.steps, guess.unit)
    return f"{threshold:,}", f"in about {steps} at {guess.tokens_each:,} tokens {_a(guess.unit)}", ""


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _largest(page: Page, largest: Sequence[Entry]) -> None:
    page.line(f"{'largest':<12}{'tokens':>9}{'turn':>6}  what")
    for entry in largest:
        turn = f"{entry.turn:,}" if entry.turn else "-"
        head = f"{entry.kind:<12}{entry.tokens:>9,}{turn:>6}  "
        what, notes = entry.what, entry.note
        if page.is_drawn:
            room = page.width - len(head)
            if notes and len(what) + len(notes) + GAP > room:
                notes = notes.partition(", last in")[0]
            what = shortened(what, room - (len(notes) + GAP if notes else 0))
        page.line(f"{head}{what}{' ' * GAP if notes else ''}{notes}", "bad" if entry.failed else "")


def _growth(page: Page, growth: Growth) -> None:
    sizes = growth.by_turn if len(growth.by_turn) > len(growth.sizes) // 8 else growth.sizes
    if len(sizes) < LEAST:
        return
    values = [size.tokens for size in sizes]
    turns = sorted(set(growth.compactions))
    after = f"   compactions at turn {', '.join(f'{turn:,}' for turn in turns)}" if turns else ""
    if page.is_drawn:
        page.row("growth", f"{sparkline(values, min(POINTS, page.width - LABEL - len(after)))}{after}")
        return
    count = min(POINTS_IN_A_PIPE, len(values))
    some = [f"{values[(i + 1) * len(values) // count - 1]:,}" for i in range(count)]
    page.row("growth", f"{' '.join(some)} tokens{after}")


def _turns(seen: Inspected) -> dict[str, object]:
    """The turns that a compaction now would summarise, and from which on it would keep every word."""
    first = seen.preview.first_kept_entry_id
    kept = seen.places[first].turn if first is not None and first in seen.places else None
    pinned = [seen.places[entry].turn for entry in seen.preview.pinned_entry_ids if entry in seen.places]
    return {"kept_from": kept, "pinned": pinned}


def _preview(page: Page, seen: Inspected, *, what: bool) -> None:
    preview = seen.preview
    if not preview.compacted:
        page.line(
            f"a compaction now would free nothing: {preview.reason.removeprefix('nothing to compact: ')}"
        )
        return
    free = f"a compaction now would free {preview.tokens_saved:,} tokens"
    if not what:
        page.line(f"{free} (--what shows it)")
        return
    turns = _turns(seen)
    page.line(f"{free}: {preview.tokens_before:,} → {preview.tokens_after:,}")
    page.row(
        "  removes", f"{plural(preview.messages_removed, 'message')} for a summary by {preview.strategy}"
    )
    kept = f" from turn {turns['kept_from']:,} on" if turns["kept_from"] else ""
    page.row("  keeps", f"{plural(preview.kept_messages, 'message')} word for word{kept}")
    if preview.pinned_entry_ids:
        page.row(
            "  pins", f"{plural(len(preview.pinned_entry_ids), 'message')}, the newest request among them"
        )
    if preview.pruned_tool_results:
        page.row("  shortens", plural(preview.pruned_tool_results, "tool result"))

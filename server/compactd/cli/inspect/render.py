"""Print the result of `compactd inspect` as text, in a terminal or a pipe, and build its JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size

import msgspec
from msgspec import Struct

from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.load_file import describe
from compactd.cli.framework.load_file import session_facts as facts_of_file
from compactd.cli.framework.model_facts import NAME_IT, ModelFacts
from compactd.cli.framework.page import LABEL, STYLES, WIDEST, Look, Page, plural, shorten_to_columns
from compactd.cli.inspect.anatomy import Anatomy, ContextBlock, MessagePlace
from compactd.cli.inspect.bar import WHOLE_BAR, Gauge, bar, legend_of
from compactd.cli.inspect.context import RequestBreakdown
from compactd.cli.inspect.cost import Cost
from compactd.cli.inspect.growth import MIN_GROWTH_POINTS, Forecast, Growth, sparkline, thin
from compactd.cli.inspect.work import show_work
from compactd.core.budget.recorded_window import CLAUDE_CODE_BUFFER
from compactd.core.models.registry import Pricing
from compactd.integrations.hooks.compact_threshold import compact_threshold
from compactd.protocol.messages import CompactionResult
from compactd.protocol.work import Work

POINTS = 48
"""The most bars of the line that shows the growth in a terminal."""

POINTS_IN_A_PIPE = 12
MAX_NAMED_ENTRIES = 10
"""How many of the largest entries are listed."""
TILES = 400
"""The number of entries that a web page shows one by one. The others are summed up."""
GAP = 3
MIN_CLAUDE_CODE_WINDOW = 2 * CLAUDE_CODE_BUFFER
"""The smallest window in tokens for which the output says when Claude Code itself compacts."""


class Smaller(Struct, frozen=True, kw_only=True):
    """The least that a compaction to `target_tokens` would free, in tokens."""

    target_tokens: int
    tokens_saved: int


class Inspected(Struct, frozen=True, kw_only=True):
    """The analysis of a session file."""

    conversation: LoadedConversation
    known: ModelFacts
    anatomy: Anatomy
    """What uses the tokens. The sizes of its largest entries are scaled like the parts of `context`."""
    context: RequestBreakdown
    """The next request, divided into parts."""
    gauge: Gauge
    report_message: int | None
    """The number of the message whose usage report the current size is based on, from 1."""
    growth: Growth
    forecast: Forecast | None
    cost: Cost | None
    pricing: Pricing | None
    preview: CompactionResult = CompactionResult(compacted=False)
    """What a compaction now would do, once it was tried; until then, `compacted` is false."""
    is_exact: bool = True
    """True if the summary of `preview` was written, so that its sizes are exact. Otherwise the sizes
    assume the largest possible summary.
    """
    smaller: Smaller | None = None
    """What a compaction with a target would free; set only if a compaction without a target frees nothing."""
    places: Mapping[str, MessagePlace]
    """The place (number and turn) of each message in the context, by entry id."""
    all_places: tuple[MessagePlace, ...]
    """The place (number and turn) of each message of the file, oldest first."""
    work: Work
    """The state of the work after all messages of the file."""
    warnings: tuple[str, ...]


def context_facts(seen: Inspected) -> dict[str, object]:
    """Return the analysis for `--json`. Sizes are in tokens."""
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
            "source": known.window_source,
            "estimated": known.is_estimate,
        },
        "compacts": {
            "enabled": known.state.compaction.enabled,
            "tokens": usage.threshold_tokens,
            "by": "compactd",
            "source": known.state.budget["threshold"].source,
            "forecast": seen.forecast,
        },
        "work": seen.work,
        "cost": seen.cost,
        "parts": seen.gauge.parts,
        "largest": seen.anatomy.largest[:MAX_NAMED_ENTRIES],
        "growth": {
            "measured": growth.measured,
            "sizes": [{"turn": size.turn, "tokens": size.tokens} for size in growth.by_turn],
            "compactions": growth.compactions,
        },
        "compaction": {
            **msgspec.to_builtins(seen.preview),
            "exact": seen.is_exact or not seen.preview.compacted,
            "turns": turns_of(seen),
            "with_target": seen.smaller,
        },
        "warnings": seen.warnings,
    }


def show(page: Page, seen: Inspected) -> None:
    """Print the gauge, the figures, the state of the work, the largest entries and the growth."""
    if page.is_drawn:
        _bar(page, seen)
    _figures(page, seen)
    page.line()
    conversation = seen.conversation
    show_work(page, seen.work, format=conversation.format, working_dir=conversation.working_dir)
    _largest(page, seen.anatomy.largest[:MAX_NAMED_ENTRIES])
    page.line()
    _growth(page, seen.growth)


def _bar(page: Page, seen: Inspected) -> None:
    """Print the bar with 100 cells, or fewer in a narrow terminal."""
    columns = get_terminal_size().columns if page.width == WIDEST else page.width
    for line in bar(seen.gauge, min(max(page.width, columns), WHOLE_BAR), STYLES[look_of(seen)]):
        page.pieces(line)
    page.line()


def look_of(seen: Inspected) -> Look:
    """Return the colour of the gauge."""
    if seen.known.state.budget["over"].value:
        return "due" if seen.known.is_guess else "bad"
    return "due" if seen.known.state.token_usage.decision == "due" else ""


class Figure(Struct, frozen=True):
    """A number, its label, and where it comes from."""

    label: str
    number: str
    text: str
    look: Look = ""


def figures_of(seen: Inspected) -> list[Figure]:
    """Return the known figures: used tokens, window, compaction threshold, cost."""
    window, look = _window(seen)
    figures = [
        Figure("used", f"{seen.gauge.used:,}", _used_text(seen)),
        Figure("window", seen.known.window_number, window, look),
    ]
    if seen.known.state.token_usage.threshold_tokens is not None:
        figures.append(Figure("compactd", *_compacts(seen)))
    if (itself := _agents_own_limit(seen)) is not None:
        figures.append(itself)
    if seen.cost is not None:
        cached = f", {100 * seen.cost.cached_share:.0f} % of input from cache"
        models = f" of {seen.cost.models} models" if seen.cost.models > 1 else ""
        reports = f"by {plural(seen.cost.reports, 'usage report')}{models} in the file"
        figures.append(Figure("cost", f"${seen.cost.dollars:,.2f}", reports + cached))
    return figures


def _figures(page: Page, seen: Inspected) -> None:
    page.row("session", describe(seen.conversation, in_context=True))
    if not page.is_drawn:
        page.row("where", legend_of(seen.gauge))
    for figure in figures_of(seen):
        page.figure(figure.label, figure.number, figure.text, figure.look)


def _used_text(seen: Inspected) -> str:
    usage = seen.known.state.token_usage
    if not usage.last_prompt_tokens:
        return "estimated from the text: the file contains no provider's report of this context"
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
        case _ if known.is_by_file:
            return f"{known.window_origin}{'; set it with --window N' if known.is_guess else ''}", (
                "due" if known.is_guess else ""
            )
        case "guess" if known.lookup is None:
            return f"a guess: the file names no model; {NAME_IT}", "due"
        case "guess":
            return (
                f"a guess: {known.model} is not in the registry ({known.lookup_how}); set it with --window N",
                "due",
            )
        case "fact" | "disputed" if known.lookup is not None:
            limit = known.lookup.input_limit
            most = "" if limit is None else f", at most {limit:,} of it input"
            return f"registry: {known.model}, {known.confidence} ({known.lookup.source}){most}", ""
        case _:
            return known.window_origin, ""


def _compacts(seen: Inspected) -> tuple[str, str, Look]:
    """Return (number, text, colour) of the threshold at which compactd would compact."""
    known, threshold = seen.known, seen.known.state.token_usage.threshold_tokens or 0
    if not known.state.compaction.enabled:
        source = known.state.compaction.settings["enabled"].source
        return "never", f"compactd's automatic compaction is off ({source})", ""
    number, rule = f"{threshold:,}", f"({known.state.budget['threshold'].source})"
    if known.state.budget["over"].value:
        if known.is_guess:
            text = f"if the window is {known.window:,} (a guess), the next request does not fit"
            return number, text, "due"
        return number, "over: the next request does not fit any more", "bad"
    if known.state.token_usage.decision == "due":
        return number, f"due: before the next request, by compactd's rule {rule}", "due"
    guess = seen.forecast
    if guess is None:
        return number, f"the size at which compactd would compact {rule}", ""
    steps = plural(guess.steps, guess.unit)
    return (
        number,
        (
            f"the size at which compactd would compact, in about {steps} at {guess.tokens_each:,} tokens per"
            f" {guess.unit} {rule}"
        ),
        "",
    )


def _agents_own_limit(seen: Inspected) -> Figure | None:
    """Return the size at which Claude Code itself compacts; None for sessions of other agents."""
    window = seen.known.window
    if seen.conversation.format != "claude-code" or window is None or window <= MIN_CLAUDE_CODE_WINDOW:
        return None
    # The session's folder is not asked for its settings, because the file may name any folder.
    threshold = compact_threshold(window, os.environ, "")
    if threshold is None:
        return Figure("agent", "never", "Claude Code's automatic compaction is off in your settings")
    doubt = " if the window is right" if seen.known.is_guess else ""
    chosen = "" if threshold == window - CLAUDE_CODE_BUFFER else ", by your settings"
    return Figure("agent", f"~{threshold:,}", f"the size at which Claude Code itself compacts{chosen}{doubt}")


def _largest(page: Page, largest: Sequence[ContextBlock]) -> None:
    page.line(f"{'largest':<12}{'tokens':>9}{'turn':>6}  what")
    for entry in largest:
        turn = f"{entry.turn:,}" if entry.turn else "-"
        head = f"{entry.kind:<12}{entry.tokens:>9,}{turn:>6}  "
        what, notes = entry.what, entry.note
        if page.is_drawn:
            room = page.width - len(head)
            if notes and len(what) + len(notes) + GAP > room:
                notes = notes.partition(", last in")[0]
            what = shorten_to_columns(what, room - (len(notes) + GAP if notes else 0))
        page.line(f"{head}{what}{' ' * GAP if notes else ''}{notes}", "bad" if entry.failed else "")


def _growth(page: Page, growth: Growth) -> None:
    sizes = growth.by_turn if len(growth.by_turn) > len(growth.sizes) // 8 else growth.sizes
    if len(sizes) < MIN_GROWTH_POINTS:
        return
    values = [size.tokens for size in sizes]
    turns = sorted(set(growth.compactions))
    after = f"   compactions at turn {', '.join(f'{turn:,}' for turn in turns)}" if turns else ""
    if page.is_drawn:
        page.row("growth", f"{sparkline(values, min(POINTS, page.width - LABEL - len(after)))}{after}")
        return
    some = [f"{value:,}" for value in thin(values, POINTS_IN_A_PIPE)]
    page.row("growth", f"{' '.join(some)} tokens{after}")


class Turns(Struct, frozen=True, kw_only=True):
    """Which turns a compaction now would keep."""

    kept_from: int | None
    """All messages from this turn on are kept word for word; None if there is no such turn."""
    pinned: tuple[int, ...]
    """The turns of the pinned messages."""


def turns_of(seen: Inspected) -> Turns:
    """Return which turns a compaction now would keep."""
    first, places = seen.preview.first_kept_entry_id, seen.places
    return Turns(
        kept_from=places[first].turn if first is not None and first in places else None,
        pinned=tuple(places[entry].turn for entry in seen.preview.pinned_entry_ids if entry in places),
    )


def preview_text(seen: Inspected) -> str:
    """Return one line that says what a compaction now would free."""
    preview = seen.preview
    if not preview.compacted:
        reason = preview.reason.removeprefix("nothing to compact: ")
        text = f"a compaction now would free nothing: {reason}"
        if seen.smaller is None:
            return text
        option = f"--target {seen.smaller.target_tokens // 1000}k"
        return f"{text}; `compactd compact FILE {option}` would free at least {seen.smaller.tokens_saved:,}"
    least = "" if seen.is_exact else "at least "
    return f"a compaction now would free {least}{preview.tokens_saved:,} tokens"


def preview_rows(seen: Inspected) -> list[tuple[str, str]]:
    """Return what a compaction would do, as (verb, text); empty if it would do nothing."""
    preview, turns = seen.preview, turns_of(seen)
    if not preview.compacted:
        return []
    kept = f" from turn {turns.kept_from:,} on" if turns.kept_from else ""
    pinned, pruned = len(preview.pinned_entry_ids), preview.pruned_tool_results
    rows = [
        (
            "removes",
            f"{plural(preview.messages_removed, 'message')}, replaced by a summary ({preview.strategy})",
        ),
        ("keeps", f"{plural(preview.kept_messages, 'message')} word for word{kept}"),
        ("pins", f"{plural(pinned, 'message')}, including the newest request" if pinned else ""),
        ("shortens", plural(pruned, "tool result") if pruned else ""),
    ]
    return [(verb, text) for verb, text in rows if text]


def show_preview(page: Page, seen: Inspected, *, what: bool) -> None:
    """Print what a compaction now would do, in one line, or in detail with `what`."""
    rows, free = preview_rows(seen), preview_text(seen)
    if not rows:
        page.line(free)
    elif not what:
        page.line(f"{free} (--what shows it)")
    else:
        page.line(f"{free}: {seen.preview.tokens_before:,} → {seen.preview.tokens_after:,}")
        for verb, text in rows:
            page.row(f"  {verb}", text)

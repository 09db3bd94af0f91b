"""The context panel of the chat: a bar, the largest entries, pinned entries, and compactions."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from compactd.cli.chat.chat_session import ChatSession
from compactd.cli.chat.folds import FoldWidget, plain_body
from compactd.cli.chat.gauge import gauge_text
from compactd.cli.chat.markdown import Prose
from compactd.cli.chat.pieces import escape_controls
from compactd.cli.chat.usage_chart import (
    CELLS,
    NAMES,
    ChartEntry,
    cells_of,
    gauge_of,
    largest,
    legend,
    pinned_entries,
    threshold_cell,
)
from compactd.cli.framework.page import plural, shorten_to_columns
from compactd.cli.inspect.bar import FREE, MARK
from compactd.cli.inspect.markup import short
from compactd.protocol.messages import CompactionResult

BAR_ROWS = 4
PER_ROW = CELLS // BAR_ROWS
MAX_LARGE_ENTRIES = 12
MAX_PINNED_ENTRIES = 20
KIND_COLUMNS = 12
TOKEN_COLUMNS = 7


class Panel(VerticalScroll, can_focus=False):
    """The panel that shows what the next request contains. All numbers come from the daemon."""

    DEFAULT_CSS = """
    Panel { padding: 0 1; background: $surface; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    Panel > Static { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    Panel .heading { color: $text-muted; }
    Panel #summarised { height: auto; }
    Panel > #filling, Panel > #large { margin: 0 0 1 0; }
    Panel > .draft { display: none; }
    Panel.writing > .draft { display: block; }
    Panel.writing > #large, Panel.writing > #pinned, Panel.writing > #summarised { display: none !important; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._filling = Static(id="filling")
        self._large = Static(id="large")
        self._writing = Static(Content("the summary, while it is written"), classes="draft heading")
        self._draft = Prose()
        self._draft.add_class("draft")
        self._pinned = Static(id="pinned")
        self._summarised = Vertical(id="summarised")
        self._told: tuple[tuple[str, bool], ...] | None = None
        self._talk: ChatSession | None = None

    def compose(self) -> ComposeResult:
        """Yield the parts of the panel, from the total to the details."""
        yield self._filling
        yield self._writing
        yield self._draft
        yield self._large
        yield self._pinned
        yield self._summarised

    async def show_state(self, talk: ChatSession) -> None:
        """Show the current state of the session."""
        self._talk = talk
        self._draw(talk)
        await self._summaries(talk)

    def on_resize(self) -> None:
        """Lay out the lines for the new width."""
        if self._talk is not None:
            self._draw(self._talk)

    def _draw(self, talk: ChatSession) -> None:
        rows = tuple(talk.rows.values())
        self._filling.update(_usage_chart(talk, rows))
        width = max(20, self.content_size.width or 40)
        self._large.update(_large(largest(rows, MAX_LARGE_ENTRIES), width))
        last = talk.newest_compaction()
        held = pinned_entries(rows, last.pinned_entry_ids if last else ())
        self._pinned.update(_pinned_entries(held, width))
        self._pinned.display = bool(held)

    def append_summary(self, delta: str) -> None:
        """Append streamed text of the summary that is being written. It is shown instead of the entries and
        compactions, which will change.
        """
        if not self.has_class("writing"):
            self.add_class("writing")
            self.anchor()
        self._draft.append(escape_controls(delta))

    def end_summary(self) -> None:
        """Hide the streamed summary, and show the entries and compactions again."""
        if self.has_class("writing"):
            self.remove_class("writing")
            self.anchor(False)
            self.scroll_home(animate=False)
            self._draft.clear()

    async def _summaries(self, talk: ChatSession) -> None:
        done = [(entry.compaction, entry.in_context) for entry in talk.entries.values() if entry.compaction]
        told = tuple((str(result.compaction_id), in_force) for result, in_force in done)
        if told == self._told:
            return
        self._told = told
        lines: list[Widget] = [Static(Content("summarised"), classes="heading")] if done else []
        lines += [_summary_fold(talk, result, in_force=in_force) for result, in_force in reversed(done)]
        await self._summarised.remove_children()
        await self._summarised.mount_all(lines)


def _summary_fold(talk: ChatSession, result: CompactionResult, *, in_force: bool) -> FoldWidget:
    line = (
        f"{plural(result.messages_removed, 'message')} · {short(result.tokens_before)}"
        f" → {short(result.tokens_after)}{'' if in_force else ' · not in force'}"
    )

    async def originals() -> Widget:
        return await plain_body(await talk.originals(str(result.compaction_id)))()

    return FoldWidget(line, originals)


def _usage_chart(talk: ChatSession, rows: Sequence[ChartEntry]) -> Content:
    gauge = gauge_of(rows, talk.usage, is_enabled=talk.state.compaction.enabled)
    cells, mark = cells_of(gauge), threshold_cell(gauge)
    if mark is not None:
        cells = cells[:mark] + MARK + cells[mark + 1 :]
    lines = [Content.styled(f"context {gauge_text(talk.usage)}", "bold")]
    for row in range(BAR_ROWS):
        some = cells[row * PER_ROW : (row + 1) * PER_ROW]
        full = len(some.rstrip(FREE + MARK))
        lines.append(Content.styled(some[:full], "$accent") + Content.styled(some[full:], "dim"))
    lines += [Content.styled(line, "dim") for line in legend(gauge)]
    if mark is not None:
        percent = 100 * (gauge.threshold or 0) / (gauge.window or 1)
        lines.append(Content.styled(f"{MARK} compacts at {percent:.0f} %", "dim"))
    return Content("\n").join(lines)


def _large(rows: Sequence[ChartEntry], width: int) -> Content:
    if not rows:
        return Content.styled("the context is empty", "dim")
    lines = [Content.styled(f"{'largest':<{KIND_COLUMNS}}{'tokens':>{TOKEN_COLUMNS}}", "dim")]
    for row in rows:
        head = f"{NAMES.get(row.kind, row.kind):<{KIND_COLUMNS}}{row.tokens:>{TOKEN_COLUMNS},}  "
        what = shorten_to_columns(row.what, max(8, width - len(head)))
        lines.append(Content.styled(head + what, "$error" if row.is_error else ""))
    return Content("\n").join(lines)


def _pinned_entries(rows: Sequence[ChartEntry], width: int) -> Content:
    lines = [Content.styled(f"pinned  {plural(len(rows), 'message')}", "dim")]
    lines += [Content(shorten_to_columns(f"  {row.what}", width)) for row in rows[:MAX_PINNED_ENTRIES]]
    return Content("\n").join([*lines, Content("")])

"""A full-screen list from which the user picks a session: type to filter, arrow keys, Enter, Esc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from compactd.cli.agent_files.pick import matching, row
from compactd.cli.agent_files.places import AgentFile
from compactd.cli.agent_files.titles import title_of_file
from compactd.cli.framework.page import plural

MAX_LISTED = 500
"""How many sessions are listed. Older ones must be named as a FILE."""

TITLES_AT_ONCE = 25
"""The list is drawn again whenever so many titles have been read."""


_MARGINS = 4
"""Columns of the padding and of the scroll bar."""


class PickApp(App[AgentFile | None]):
    """The list. Its result is the picked file; None if the user closes it."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { padding: 0 1; }
    Input, Input:focus { border: none; height: 1; padding: 0; }
    OptionList, OptionList:focus { border: none; padding: 0; height: 1fr; }
    .quiet { color: $text-muted; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("down,ctrl+n", "move(1)", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("enter", "pick", show=False, priority=True),
    ]

    def __init__(self, files: Sequence[AgentFile], own_count: int) -> None:
        """Make a list of `files`, of which the first `own_count` belong to the current folder."""
        super().__init__()
        self._files = files[:MAX_LISTED]
        self._all_count = len(files)
        self._own_count = min(own_count, MAX_LISTED)
        self._titles: dict[AgentFile, str] = {}
        self._shown: list[AgentFile] = []
        self.is_interrupted = False
        """True if the user closed the list with Ctrl-C."""

    def compose(self) -> ComposeResult:
        """Yield filter, list and help."""
        yield Input(placeholder="type to filter", id="filter")
        yield Static(classes="quiet", id="count")
        yield OptionList(markup=False, compact=True)
        yield Static("Enter selects, Esc closes", classes="quiet")

    def on_mount(self) -> None:
        """Show the list, and read the titles meanwhile."""
        typed = self.query_one(Input)
        typed.cursor_blink = False
        typed.focus()
        self.run_worker(self._read_titles, thread=True)

    def on_resize(self) -> None:
        """Draw the list in the width of the window."""
        self._show()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the sessions that match the typed words, the best match first."""
        self._shown = []
        self._show()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Pick a session after a click."""
        self.exit(self._shown[event.option_index])

    def action_leave(self) -> None:
        """Close the list without a choice."""
        self.exit(None)

    def action_interrupt(self) -> None:
        """Close the list and end the command."""
        self.is_interrupted = True
        self.exit(None)

    def action_move(self, step: int) -> None:
        """Move the highlight up or down."""
        options = self.query_one(OptionList)
        if options.option_count:
            at = (options.highlighted or 0) + step
            options.highlighted = (
                at % options.option_count if abs(step) == 1 else min(max(at, 0), options.option_count - 1)
            )

    def action_pick(self) -> None:
        """Pick the highlighted session."""
        at = self.query_one(OptionList).highlighted
        if at is not None and at < len(self._shown):
            self.exit(self._shown[at])

    def _read_titles(self) -> None:
        """Read the titles in a thread, so that the user can type meanwhile."""
        worker = get_current_worker()
        batch: dict[AgentFile, str] = {}
        for number, file in enumerate(self._files, start=1):
            if worker.is_cancelled:
                return
            batch[file] = title_of_file(file) or file.path.name
            if len(batch) == TITLES_AT_ONCE or number == len(self._files):
                self.call_from_thread(self._add_titles, dict(batch))
                batch.clear()

    def _add_titles(self, titles: dict[AgentFile, str]) -> None:
        self._titles |= titles
        self._show()

    def _show(self) -> None:
        """Draw the matching sessions. The highlight stays on its session."""
        options = self.query_one(OptionList)
        at = options.highlighted or 0
        highlighted = self._shown[at] if at < len(self._shown) else None
        words = self.query_one(Input).value
        self._shown = matching(words, self._titled()) if words.strip() else list(self._files)
        width = max(20, self.size.width - _MARGINS)
        options.clear_options()
        options.add_options(Option(Content(self._row(file, width))) for file in self._shown)
        if self._shown:
            options.highlighted = self._shown.index(highlighted) if highlighted in self._shown else 0
        self.query_one("#count", Static).update(Content(self._count_text(len(self._shown))))

    def _row(self, file: AgentFile, width: int) -> str:
        return row(file, self._titles.get(file, file.path.name), width)

    def _titled(self) -> Sequence[tuple[AgentFile, str]]:
        return [(file, self._titles.get(file, "")) for file in self._files]

    def _count_text(self, shown: int) -> str:
        if shown < len(self._files):
            return f"{shown:,} of {plural(len(self._files), 'session')}"
        text = plural(len(self._files), "session")
        if self._all_count > len(self._files):
            text = f"the newest {len(self._files):,} of {self._all_count:,} sessions"
        return f"{text}; {self._own_count:,} of this folder first" if self._own_count else text

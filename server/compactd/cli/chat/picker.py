"""A list, shown over the conversation, from which the user picks a session or an earlier point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from compactd.cli.framework.page import one_line


class Picker(ModalScreen[str | None]):
    """A list with a filter. Its result is the picked value; None if the user closes the list."""

    DEFAULT_CSS = """
    Picker { align: center middle; background: $background 60%; }
    Picker > Vertical { width: 90%; max-width: 100; height: auto; max-height: 90%; background: $surface;
                         padding: 0 1; }
    Picker Input { border: none; height: 1; padding: 0; background: $surface; }
    Picker Input:focus { border: none; }
    Picker OptionList { height: auto; max-height: 20; border: none; padding: 0; background: $surface;
                        text-wrap: nowrap; text-overflow: ellipsis; }
    Picker OptionList:focus { border: none; }
    Picker .heading { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "leave", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("enter", "pick", show=False, priority=True),
    ]

    def __init__(self, heading: str, choices: Sequence[tuple[str, str]]) -> None:
        """Make a list of `choices`: (value, shown line) of each."""
        super().__init__()
        self._heading = heading
        self._choices = [(value, one_line(line)) for value, line in choices]

    def compose(self) -> ComposeResult:
        """Yield heading, filter and list."""
        with Vertical():
            yield Static(Content(self._heading), classes="heading")
            yield Input(placeholder="type to filter · enter selects · esc closes")
            yield OptionList(markup=False, compact=True)

    def on_mount(self) -> None:
        """Show all choices."""
        self._show("")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the choices that contain the typed text."""
        self._show(event.value)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Pick an option after a click."""
        self.dismiss(event.option.id)

    def action_leave(self) -> None:
        """Close the list without a choice."""
        self.dismiss(None)

    def action_move(self, step: int) -> None:
        """Move the highlight up or down."""
        options = self.query_one(OptionList)
        if options.option_count:
            options.highlighted = ((options.highlighted or 0) + step) % options.option_count

    def action_pick(self) -> None:
        """Pick the highlighted option."""
        options = self.query_one(OptionList)
        if options.highlighted is not None and options.option_count:
            self.dismiss(options.get_option_at_index(options.highlighted).id)

    def _show(self, typed: str) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        words = typed.lower().split()
        for value, line in self._choices:
            if all(word in line.lower() for word in words):
                options.add_option(Option(Content(line), id=value))
        if options.option_count:
            options.highlighted = 0

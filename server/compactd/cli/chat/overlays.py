"""Screens over the conversation that only show something: the context, and the list of commands and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Key, Paste
from textual.screen import ModalScreen
from textual.widgets import Static

from compactd.cli.chat.chat_session import ChatSession
from compactd.cli.chat.input import help_text
from compactd.cli.chat.panel import Panel


class Overlay(ModalScreen[None]):
    """A screen that shows a text to scroll. Esc closes it. Typing closes it, too, and the typed text goes to
    the prompt.
    """

    DEFAULT_CSS = """
    Overlay { align: center middle; }
    Overlay > VerticalScroll { width: 100%; height: 1fr; padding: 0 1; background: $surface;
                               scrollbar-size-vertical: 1; }
    Overlay > .footer { width: 100%; height: 1; padding: 0 1; color: $text-muted; background: $surface;
                        text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "leave", show=False, priority=True),
        Binding("up", "scroll(-1)", show=False, priority=True),
        Binding("down", "scroll(1)", show=False, priority=True),
        Binding("pageup", "scroll_page(-1)", show=False, priority=True),
        Binding("pagedown", "scroll_page(1)", show=False, priority=True),
    ]
    FOOTER: ClassVar[str] = "Esc closes · ↑ ↓ scroll"
    CLOSING_KEYS: ClassVar[frozenset[str]] = frozenset()
    """Characters that close the screen like Esc."""

    def __init__(self, body: VerticalScroll, type_text: Callable[[str], None]) -> None:
        """Show `body`. `type_text` inserts text into the prompt."""
        super().__init__()
        self.body = body
        self._type_text = type_text
        self._is_left = False

    def compose(self) -> ComposeResult:
        """Yield the text, and a line that says how to close it."""
        yield self.body
        yield Static(Content(self.FOOTER), classes="footer")

    def on_key(self, event: Key) -> None:
        """Close the screen if the user types, and put the character into the prompt."""
        if not event.is_printable or event.character is None:
            return
        event.stop()
        if event.character not in self.CLOSING_KEYS:
            self._type_text(event.character)
        self.action_leave()

    def on_paste(self, event: Paste) -> None:
        """Close the screen, and put the pasted text into the prompt."""
        event.stop()
        self._type_text(event.text)
        self.action_leave()

    def action_leave(self) -> None:
        """Return to the conversation."""
        # Further keys may arrive before the screen is gone.
        if not self._is_left:
            self._is_left = True
            self.dismiss(None)

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines: up if `lines` is negative."""
        self.body.scroll_relative(y=lines, animate=False)

    def action_scroll_page(self, step: int) -> None:
        """Scroll by a page: up if `step` is negative."""
        if step < 0:
            self.body.scroll_page_up(animate=False)
        else:
            self.body.scroll_page_down(animate=False)


class ContextScreen(Overlay):
    """The context panel, shown over the conversation in terminals that are too narrow for both."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+t", "leave", show=False, priority=True)]
    FOOTER = "Esc closes · ↑ ↓ scroll · Tab, Enter open an entry"

    def __init__(self, talk: ChatSession, type_text: Callable[[str], None]) -> None:
        self._panel = Panel()
        super().__init__(self._panel, type_text)
        self._talk = talk

    def on_mount(self) -> None:
        """Show the current state as soon as the size is known."""
        self.call_after_refresh(self.show_state)

    async def show_state(self) -> None:
        """Show the current state of the session."""
        await self._panel.show_state(self._talk)


class HelpScreen(Overlay):
    """The list of commands and keys."""

    DEFAULT_CSS = """
    HelpScreen Static { height: auto; }
    """
    CLOSING_KEYS = frozenset("?")

    def __init__(self, type_text: Callable[[str], None]) -> None:
        # A question mark in an empty prompt opens the list, and another one closes it.
        super().__init__(VerticalScroll(_HelpText()), type_text)


class _HelpText(Static):
    """The list, laid out for the width that it has."""

    def on_resize(self) -> None:
        """Lay out the list again."""
        self.update(Content(help_text(self.size.width)))

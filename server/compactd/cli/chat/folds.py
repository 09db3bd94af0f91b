"""Widgets that show one line and can be opened: a tool call, the model's reasoning, a compaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click, Resize
from textual.message import Message as Told
from textual.widget import Widget
from textual.widgets import Static

from compactd.cli.chat.markdown import Prose
from compactd.cli.chat.pieces import CallPiece, ResultPiece, call_line, rule_texts
from compactd.protocol.messages import CompactionResult

EDGES = 6
"""How many columns of the horizontal line stay visible next to its title, left and right together."""

FoldBody = Callable[[], Awaitable[Widget]]
"""A function that makes the content of a fold. It is called when the fold is first opened."""


class FoldWidget(Vertical, can_focus=True):
    """A widget that shows one line. Enter or a click shows or hides its content below the line."""

    DEFAULT_CSS = """
    FoldWidget { height: auto; color: $text-muted; }
    FoldWidget.first { margin: 1 0 0 0; }
    FoldWidget > .line { width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    FoldWidget:focus > .line { text-style: bold; color: $foreground; }
    FoldWidget.failed > .line { color: $error; }
    FoldWidget > .inside { margin: 0 0 1 2; color: $text-muted; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "open", "open", show=False)]

    def __init__(self, line: str, body: FoldBody) -> None:
        super().__init__()
        self._said = line
        self._body = body
        self._inside: Widget | None = None

    def compose(self) -> ComposeResult:
        """Yield the line."""
        yield Static(self._content(), classes="line")

    @property
    def is_open(self) -> bool:
        """True if the content is visible."""
        return self._inside is not None and self._inside.display

    def set_line(self, line: str) -> None:
        """Replace the text of the line."""
        self._said = line
        self._draw()

    def replace(self, body: FoldBody) -> None:
        """Replace the function that makes the content. It is called when the fold is opened next."""
        self._body = body
        if self._inside is not None:
            self._inside.remove()
            self._inside = None
            self._draw()

    async def action_open(self) -> None:
        """Open or close the fold."""
        is_new = self._inside is None
        await self.toggle()
        if is_new:
            # Scroll to the top of the content: a long one is read from its beginning.
            self.call_after_refresh(self.scroll_visible, animate=False, top=True)

    async def toggle(self) -> None:
        """Open or close the fold without scrolling."""
        if self._inside is None:
            self._inside = await self._body()
            self._inside.add_class("inside")
            await self.mount(self._inside)
        else:
            self._inside.display = not self._inside.display
        self._draw()

    async def on_click(self, event: Click) -> None:
        """Open or close the fold after a click on its line."""
        if self._inside is None or event.widget is not self._inside:
            event.stop()
            await self.action_open()

    def _draw(self) -> None:
        for line in self.query(".line").results(Static):
            line.update(self._content())

    def _content(self) -> Content:
        return Content(f"{'▾' if self.is_open else '▸'} {self._said}")


def plain_body(text: str) -> FoldBody:
    """Return a function that makes a fold's content from plain text."""

    async def body() -> Widget:
        return Static(Content(text or "(nothing)"))

    return body


def markdown_body(text: str) -> FoldBody:
    """Return a function that makes a fold's content from Markdown."""

    async def body() -> Widget:
        return Prose(text)

    return body


class CallFold(FoldWidget):
    """A fold whose line shows a tool call and whose content is the call's result."""

    def __init__(self, call: CallPiece | None, result: ResultPiece | None) -> None:
        self.call = call
        super().__init__(call_line(call, result), plain_body(result.text if result else ""))
        self.set_class(result is not None and result.is_error, "failed")

    def end(self, result: ResultPiece) -> None:
        """Add the result of the call."""
        self.set_line(call_line(self.call, result))
        self.replace(plain_body(result.text))
        self.set_class(result.is_error, "failed")


class Rule(FoldWidget):
    """A compaction, shown as a horizontal line across the conversation. Opening it shows the summary."""

    DEFAULT_CSS = """
    Rule { border-top: solid $quiet; border-title-align: center; border-title-color: $text-muted;
           margin: 1 0 0 0; }
    Rule:focus { border-top: solid $accent; border-title-color: $foreground; border-title-style: bold; }
    Rule.taken-back { border-title-style: dim; }
    Rule > .line { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("u", "undo", "undo", show=False)]

    class Undo(Told):
        """The message that asks the app to undo the compaction."""

        def __init__(self, result: CompactionResult) -> None:
            super().__init__()
            self.result = result

    def __init__(self, result: CompactionResult, *, is_in_force: bool) -> None:
        super().__init__("", markdown_body(result.summary))
        self.result = result
        self.is_in_force = is_in_force
        self.set_in_force(is_in_force=is_in_force)

    def set_in_force(self, *, is_in_force: bool) -> None:
        """Show the compaction as in force, or as undone."""
        self.is_in_force = is_in_force
        self.set_class(not is_in_force, "taken-back")
        self._fit_title(self.size.width)

    def on_resize(self, event: Resize) -> None:
        """Show as much of the title as fits."""
        self._fit_title(event.size.width)

    def _fit_title(self, width: int) -> None:
        texts = rule_texts(self.result, is_in_force=self.is_in_force)
        text = next((one for one in texts if len(one) <= width - EDGES), texts[-1])
        self.border_title = Content(f" {text} ")

    def action_undo(self) -> None:
        """Ask the app to undo the compaction."""
        if self.is_in_force:
            self.post_message(self.Undo(self.result))

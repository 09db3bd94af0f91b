"""One line that opens: a tool's call, a thought, a compaction."""

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

from compactd.cli.chat.events import Prose
from compactd.cli.chat.widgets import Call, Result, call_line, rule_texts
from compactd.protocol.messages import CompactionResult

EDGES = 6
"""Columns of a rule that are line at least."""

Body = Callable[[], Awaitable[Widget]]
"""Makes what is inside, when it is opened for the first time."""


class Fold(Vertical, can_focus=True):
    """A line; Enter or a click shows what is inside, and hides it again."""

    DEFAULT_CSS = """
    Fold { height: auto; color: $text-muted; }
    Fold.first { margin: 1 0 0 0; }
    Fold > .line { width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    Fold:focus > .line { text-style: bold; color: $foreground; }
    Fold.failed > .line { color: $error; }
    Fold > .inside { margin: 0 0 1 2; color: $text-muted; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "open", "open", show=False)]

    def __init__(self, line: str, body: Body, *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._said = line
        self._body = body
        self._inside: Widget | None = None

    def compose(self) -> ComposeResult:
        """The line."""
        yield Static(self._content(), classes="line")

    @property
    def is_open(self) -> bool:
        """Whether its inside is seen."""
        return self._inside is not None and self._inside.display

    def say(self, line: str) -> None:
        """Another line."""
        self._said = line
        self._draw()

    def replace(self, body: Body) -> None:
        """Another inside, from when it is opened next."""
        self._body = body
        if self._inside is not None:
            self._inside.remove()
            self._inside = None
            self._draw()

    async def action_open(self) -> None:
        """Opens or closes it."""
        if self._inside is None:
            self._inside = await self._body()
            self._inside.add_class("inside")
            await self.mount(self._inside)
            # What is long is read from its beginning.
            self.call_after_refresh(self.scroll_visible, animate=False, top=True)
        else:
            self._inside.display = not self._inside.display
        self._draw()

    async def on_click(self, event: Click) -> None:
        """As Enter, on its line."""
        if self._inside is None or event.widget is not self._inside:
            event.stop()
            await self.action_open()

    def _draw(self) -> None:
        for line in self.query(".line").results(Static):
            line.update(self._content())

    def _content(self) -> Content:
        return Content(f"{'▾' if self.is_open else '▸'} {self._said}")


def plain(text: str) -> Body:
    """An inside of plain text."""

    async def body() -> Widget:
        return Static(Content(text or "(nothing)"))

    return body


def prose(text: str) -> Body:
    """An inside of markdown."""

    async def body() -> Widget:
        return Prose(text)

    return body


class CallFold(Fold):
    """A tool's call with what came of it."""

    def __init__(self, call: Call | None, result: Result | None) -> None:
        self.call = call
        super().__init__(call_line(call, result), plain(result.text if result else ""))
        self.set_class(result is not None and result.is_error, "failed")

    def end(self, result: Result) -> None:
        """The tool gave this back."""
        self.say(call_line(self.call, result))
        self.replace(plain(result.text))
        self.set_class(result.is_error, "failed")


class Rule(Fold):
    """A compaction: a quiet rule across the conversation, which opens to its summary."""

    DEFAULT_CSS = """
    Rule { border-top: solid $quiet; border-title-align: center; border-title-color: $text-muted;
           margin: 1 0 0 0; }
    Rule:focus { border-top: solid $accent; border-title-color: $foreground; border-title-style: bold; }
    Rule.taken-back { border-title-style: dim; }
    Rule > .line { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("u", "undo", "undo", show=False)]

    class Undo(Told):
        """A person wants it taken back."""

        def __init__(self, result: CompactionResult) -> None:
            super().__init__()
            self.result = result

    def __init__(self, result: CompactionResult, *, is_in_force: bool) -> None:
        super().__init__("", prose(result.summary))
        self.result = result
        self.is_in_force = is_in_force
        self.put(is_in_force=is_in_force)

    def put(self, *, is_in_force: bool) -> None:
        """It was taken back, or is in force again."""
        self.is_in_force = is_in_force
        self.set_class(not is_in_force, "taken-back")
        self._entitle(self.size.width)

    def on_resize(self, event: Resize) -> None:
        """As much is told as there is room for."""
        self._entitle(event.size.width)

    def _entitle(self, width: int) -> None:
        texts = rule_texts(self.result, is_in_force=self.is_in_force)
        text = next((one for one in texts if len(one) <= width - EDGES), texts[-1])
        self.border_title = Content(f" {text} ")

    def action_undo(self) -> None:
        """Asks for it to be taken back."""
        if self.is_in_force:
            self.post_message(self.Undo(self.result))

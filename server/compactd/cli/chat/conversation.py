"""The widget that shows the conversation: stored entries, and below them the text that is being streamed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from compactd.cli.chat.folds import CallFold, FoldWidget, Rule, plain_body
from compactd.cli.chat.markdown import Prose
from compactd.cli.chat.pieces import (
    AnswerPiece,
    CallPiece,
    CompactionPiece,
    NotePiece,
    Piece,
    PromptPiece,
    ResultPiece,
    ThoughtPiece,
    display_text,
    escape_controls,
)
from compactd.cli.chat.welcome import fitting_text
from compactd.cli.framework.page import Look, one_line

MAX_PIECES = 60
"""How many pieces (prompts, answers, tool calls and so on) are shown when a session is opened. Opening the
line above them (`EarlierMessages`) adds as many.
"""


WELCOME_MARGIN = 3
"""Columns next to the first screen: its margin, the scroll bar, and the padding of the conversation."""


class PromptText(Static, can_focus=True):
    """The widget of a prompt."""

    DEFAULT_CSS = """
    PromptText { margin: 1 0 0 1; padding: 0 0 0 1; border-left: outer $accent; color: $foreground; }
    PromptText:focus { border-left: thick $accent; text-style: bold; }
    PromptText.synthetic { color: $text-muted; border-left: outer $quiet; }
    """

    def __init__(self, text: str, *, is_synthetic: bool = False, author: str = "") -> None:
        """`author`: the other client that sent the prompt."""
        shown = Content(text)
        if author:
            shown += Content.styled(f"\nfrom {one_line(author)}", "$text-muted")
        super().__init__(shown, classes="synthetic" if is_synthetic else "")


class AnswerText(Prose, can_focus=True):
    """The widget of an answer. The mark at its left shows that it has the focus."""

    DEFAULT_CSS = """
    AnswerText { border-left: blank; }
    AnswerText:focus { border-left: outer $quiet; }
    """


class QuietLine(Static):
    """A message of the app itself, which is not part of the session: information, or an error."""

    DEFAULT_CSS = """
    QuietLine { color: $text-muted; margin: 1 0 0 1; }
    QuietLine.rows { text-wrap: nowrap; text-overflow: ellipsis; }
    QuietLine.due { color: $warning; }
    QuietLine.bad { color: $error; }
    """

    def __init__(self, text: str, look: Look | Literal["rows"] = "") -> None:
        """Make a line of the colour `look`. With `rows` instead of a colour, lines are not wrapped: each line
        of `text` is one line on the screen.
        """
        super().__init__(Content(display_text(text)), classes=look)


class Welcome(Static):
    """The first screen of a chat without messages. It shows the longest of its texts that fits."""

    DEFAULT_CSS = """
    Welcome { color: $text-muted; margin: 1 0 0 1; height: auto; }
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        """The texts to choose from, from the longest to the shortest."""
        super().__init__(Content(texts[-1]))

    def fit(self, size: Size) -> None:
        """Choose the text for a place of this size."""
        self.update(Content(fitting_text(self.texts, size.width - WELCOME_MARGIN, size.height)))


class ConversationPane(VerticalScroll, can_focus=False):
    """The widget of the conversation, oldest entry first. It stays scrolled to its end until the user scrolls
    up.
    """

    DEFAULT_CSS = """
    ConversationPane { padding: 0 1 0 0; scrollbar-size-vertical: 1; }
    ConversationPane > Vertical { height: auto; }
    ConversationPane FoldWidget { margin: 0 0 0 1; }
    ConversationPane FoldWidget.first, ConversationPane Rule { margin: 1 0 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "focus_fold(1)", show=False),
        Binding("shift+tab", "focus_fold(-1)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self._settled = Vertical(id="settled")
        self._live = Vertical(id="live")
        self._sent = Vertical(id="sent")
        self._calls: dict[str, CallFold] = {}
        self._earlier: list[Piece] = []
        self._answer: AnswerText | None = None
        self._thought = ""
        self._thinking: FoldWidget | None = None
        self._summary = ""
        self._summarising: FoldWidget | None = None

    def compose(self) -> ComposeResult:
        """Yield the widgets of the stored entries, of the streamed text, and of the prompts that are sent but
        not stored yet.
        """
        yield self._settled
        yield self._live
        yield self._sent

    def on_mount(self) -> None:
        """Keep the conversation scrolled to its end."""
        self.anchor()

    def on_resize(self, event: Resize) -> None:
        """Choose the text of the first screen for the new size."""
        self._fit_welcome(event.size)

    def show_welcome(self, texts: Sequence[str]) -> None:
        """Change the texts of the first screen, if it is shown."""
        for welcome in self._settled.query(Welcome):
            welcome.texts = texts
        self._fit_welcome(self.size)

    def _fit_welcome(self, size: Size) -> None:
        for welcome in self._settled.query(Welcome):
            welcome.fit(size)

    # --- navigation -----------------------------------------------------------------------------------

    def jump(self, step: int) -> bool:
        """Move the focus to the previous message (`step` is -1) or the next one (1), and scroll to it. From
        outside the conversation, -1 goes to the last message. Return False if there is no next message.
        """
        widgets = list(self.query("PromptText, AnswerText, FoldWidget").results(Widget))
        focused = self.screen.focused
        at = widgets.index(focused) if focused in widgets else len(widgets)
        places = range(at - 1, -1, -1) if step < 0 else range(at + 1, len(widgets))
        found = next((widgets[place] for place in places if _is_message(widgets[place])), None)
        if found is None:
            return step < 0
        self.release_anchor()
        found.focus(scroll_visible=False)
        self.scroll_to_widget(found, animate=False, top=True)
        return True

    def action_focus_fold(self, step: int) -> None:
        """Move the focus to the next entry that can be opened, or back to the prompt."""
        (self.screen.focus_next if step > 0 else self.screen.focus_previous)("FoldWidget, PromptInput")

    async def toggle_folds(self) -> None:
        """Open all entries that can be opened; if all are open, close them."""
        folds = [one for one in self.query(FoldWidget) if not isinstance(one, EarlierMessages)]
        is_open = not all(one.is_open for one in folds)
        with self.app.batch_update():
            for one in folds:
                if one.is_open != is_open:
                    await one.toggle()

    # --- stored entries -------------------------------------------------------------------------------

    async def show(self, pieces: Sequence[Piece], welcome: Widget | None = None) -> None:
        """Show a session: its newest pieces, and a line that loads the earlier ones. A session without pieces
        shows `welcome` instead.
        """
        self._calls.clear()
        self._earlier = list(pieces[:-MAX_PIECES])
        with self.app.batch_update():
            await self.drop_live()
            await self._settled.remove_children()
            await self._settled.mount_all([*self._earlier_line(), *self._widgets(pieces[-MAX_PIECES:])])
            if welcome is not None and not pieces:
                await self._settled.mount(welcome)
        self.anchor()

    async def add(self, pieces: Iterable[Piece]) -> None:
        """Add pieces that were stored in the session just now, and remove the streamed text."""
        with self.app.batch_update():
            await self.drop_live()
            await self._settled.mount_all(self._widgets(pieces))

    async def note(self, text: str, look: Look = "", *, is_passing: bool = False) -> None:
        """Add a line of the app itself. It is not part of the session and is gone when the session is
        reopened.

        `is_passing`: the line is removed together with the streamed answer.
        """
        place = self._live if is_passing else self._settled
        if place.is_attached:
            await place.mount(QuietLine(text, look))

    async def add_widgets(self, *widgets: Widget) -> None:
        """Add widgets of the app itself after all stored pieces."""
        await self._settled.mount_all(widgets)

    def mark_in_force(self, in_force: Sequence[str]) -> None:
        """Show each compaction whose id is in `in_force` as in force, and the others as undone."""
        for rule in self._settled.query(Rule):
            is_in_force = rule.result.compaction_id in in_force
            if rule.is_in_force != is_in_force:
                rule.set_in_force(is_in_force=is_in_force)

    def _earlier_line(self) -> list[Widget]:
        if not self._earlier:
            return []
        return [EarlierMessages(len(self._earlier), self._load_earlier)]

    async def _load_earlier(self, line: EarlierMessages) -> None:
        some, self._earlier = self._earlier[-MAX_PIECES:], self._earlier[:-MAX_PIECES]
        with self.app.batch_update():
            await self._settled.mount_all([*self._earlier_line(), *self._widgets(some)], after=line)
            await line.remove()

    def _widgets(self, pieces: Iterable[Piece]) -> list[Widget]:
        widgets: list[Widget] = []
        for piece in pieces:
            widget = self._widget(piece)
            if widget is None:
                continue
            before = widgets[-1] if widgets else self._last()
            widget.set_class(not (isinstance(before, FoldWidget) and not isinstance(before, Rule)), "first")
            widgets.append(widget)
        return widgets

    def _last(self) -> Widget | None:
        return self._settled.children[-1] if self._settled.children else None

    def _widget(self, piece: Piece) -> Widget | None:
        match piece:
            case PromptPiece():
                return PromptText(piece.text, is_synthetic=piece.is_synthetic, author=piece.author)
            case AnswerPiece():
                return AnswerText(piece.text)
            case ThoughtPiece():
                return FoldWidget("thought", plain_body(piece.text))
            case CallPiece():
                self._calls[piece.call_id] = fold = CallFold(piece, None)
                return fold
            case ResultPiece():
                # A repeated call_id is a new call.
                fold_of = self._calls.pop(piece.call_id, None)
                if fold_of is None:
                    return CallFold(None, piece)
                fold_of.end(piece)
                return None
            case CompactionPiece():
                return Rule(piece.result, is_in_force=piece.is_in_force)
            case NotePiece():
                return QuietLine(piece.text)

    # --- streamed text --------------------------------------------------------------------------------

    async def add_prompt(self, text: str) -> PromptText:
        """Show a prompt that was just sent, until its widget is removed. It stays below streamed text."""
        prompt = PromptText(display_text(text))
        await self._sent.mount(prompt)
        self.anchor()
        return prompt

    async def add_text(self, delta: str) -> None:
        """Append streamed text of the answer."""
        if self._answer is None:
            # The text goes into the constructor: after the await, the answer may already have ended.
            self._answer = AnswerText(escape_controls(delta))
            await self._live.mount(self._answer)
        else:
            self._answer.append(escape_controls(delta))

    async def add_thinking(self, delta: str) -> None:
        """Append streamed text of the reasoning."""
        self._thought += escape_controls(delta)
        if self._thinking is None:
            self._thinking = FoldWidget("thinking", plain_body(""))
            await self._live.mount(self._thinking)
        if self._thinking is not None:  # None if the answer ended in the meantime
            self._thinking.set_line(f"thinking: {self._thought[-200:].replace(chr(10), ' ').strip()}")

    async def add_summary_text(self, delta: str) -> None:
        """Append streamed text of a summary that a model is writing. The end of the text so far is shown in
        one line.
        """
        self._summary += escape_controls(delta)
        if self._summarising is None:
            self._summarising = FoldWidget("summarising", plain_body(""))
            await self._live.mount(self._summarising)
        if self._summarising is not None:  # None if the answer ended in the meantime
            self._summarising.set_line(f"summarising: {one_line(self._summary[-200:])}")

    async def add_call(self, call_id: str, name: str) -> None:
        """Show that the tool `name` is running."""
        await self._live.mount(CallFold(CallPiece(call_id, display_text(name), "…"), None))

    def end_answer(self) -> None:
        """Treat the current answer as complete. The next streamed text begins another answer."""
        self._answer, self._thinking, self._thought = None, None, ""

    async def drop_live(self) -> None:
        """Remove the streamed text, because it is stored now."""
        self.end_answer()
        self._summarising, self._summary = None, ""
        await self._live.remove_children()


def _is_message(widget: Widget) -> bool:
    """Return whether a jump stops at the widget: at all but tool calls and reasoning."""
    return not isinstance(widget, FoldWidget) or isinstance(widget, Rule | EarlierMessages)


class EarlierMessages(FoldWidget):
    """The line above the shown part of a long session. Opening it shows earlier entries."""

    def __init__(self, count: int, more: Callable[[EarlierMessages], Awaitable[None]]) -> None:
        super().__init__(f"{count:,} earlier entries · enter shows more", plain_body(""))
        self._more = more

    async def action_open(self) -> None:
        """Show more entries in place of this line."""
        await self._more(self)

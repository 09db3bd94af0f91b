"""The conversation: what is settled, as the daemon's history has it, and below what comes in just now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from compactd.cli.chat.events import Prose
from compactd.cli.chat.folds import CallFold, Fold, Rule, plain
from compactd.cli.chat.widgets import (
    Answer,
    Call,
    Compaction,
    Note,
    Piece,
    Prompt,
    Result,
    Thought,
    harmless,
    shown,
)
from compactd.cli.framework.page import Look, one_line

MOST = 60
"""Pieces that are seen when a session is opened; each press on the line above them shows as many more."""


class Asked(Static):
    """A prompt."""

    DEFAULT_CSS = """
    Asked { margin: 1 0 0 0; padding: 0 0 0 1; border-left: outer $accent; color: $foreground; }
    Asked.synthetic { color: $text-muted; border-left: outer $quiet; }
    """

    def __init__(self, text: str, *, is_synthetic: bool = False) -> None:
        super().__init__(Content(text), classes="synthetic" if is_synthetic else "")


class Line(Static):
    """A quiet line, or an error of one or two."""

    DEFAULT_CSS = """
    Line { color: $text-muted; margin: 1 0 0 0; }
    Line.rows { text-wrap: nowrap; text-overflow: ellipsis; }
    Line.due { color: $warning; }
    Line.bad { color: $error; }
    """

    def __init__(self, text: str, look: Look | Literal["rows"] = "") -> None:
        """`rows`: each line is one on the screen too."""
        super().__init__(Content(shown(text)), classes=look)


class Conversation(VerticalScroll, can_focus=False):
    """Oldest above; it stays at its end until a person scrolls up."""

    DEFAULT_CSS = """
    Conversation { padding: 0 1; scrollbar-size-vertical: 1; }
    Conversation > Vertical { height: auto; }
    """

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self._settled = Vertical(id="settled")
        self._live = Vertical(id="live")
        self._calls: dict[str, CallFold] = {}
        self._earlier: list[Piece] = []
        self._answer: Prose | None = None
        self._thought = ""
        self._thinking: Fold | None = None
        self._summary = ""
        self._summarising: Fold | None = None

    def compose(self) -> ComposeResult:
        """Two parts."""
        yield self._settled
        yield self._live

    def on_mount(self) -> None:
        """Follows what comes."""
        self.anchor()

    # --- what is settled ------------------------------------------------------------------------------

    async def show(self, pieces: Sequence[Piece]) -> None:
        """A whole session: its newest pieces, with a line that shows the others."""
        self._calls.clear()
        self._earlier = list(pieces[:-MOST])
        with self.app.batch_update():
            await self.drop_live()
            await self._settled.remove_children()
            await self._settled.mount_all([*self._earlier_line(), *self._widgets(pieces[-MOST:])])
        self.anchor()

    async def add(self, pieces: Iterable[Piece]) -> None:
        """What was settled since."""
        with self.app.batch_update():
            await self.drop_live()
            await self._settled.mount_all(self._widgets(pieces))

    async def note(self, text: str, look: Look = "", *, is_passing: bool = False) -> None:
        """A line of the chat's own: not of the session, and gone when it is opened again; `is_passing`: gone
        with the answer that comes in."""
        place = self._live if is_passing else self._settled
        if place.is_attached:
            await place.mount(Line(text, look))

    async def put(self, *widgets: Widget) -> None:
        """Something of the chat's own behind all that is settled."""
        await self._settled.mount_all(widgets)

    def forces(self, in_force: Sequence[str]) -> None:
        """The compactions that are in force, by their ids: the rules of the others say so."""
        for rule in self._settled.query(Rule):
            is_in_force = rule.result.compaction_id in in_force
            if rule.is_in_force != is_in_force:
                rule.put(is_in_force=is_in_force)

    def _earlier_line(self) -> list[Widget]:
        if not self._earlier:
            return []
        return [Earlier(len(self._earlier), self._more)]

    async def _more(self, line: Earlier) -> None:
        some, self._earlier = self._earlier[-MOST:], self._earlier[:-MOST]
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
            widget.set_class(not (isinstance(before, Fold) and not isinstance(before, Rule)), "first")
            widgets.append(widget)
        return widgets

    def _last(self) -> Widget | None:
        return self._settled.children[-1] if self._settled.children else None

    def _widget(self, piece: Piece) -> Widget | None:
        match piece:
            case Prompt():
                return Asked(piece.text, is_synthetic=piece.is_synthetic)
            case Answer():
                return Prose(piece.text)
            case Thought():
                return Fold("thought", plain(piece.text))
            case Call():
                self._calls[piece.call_id] = fold = CallFold(piece, None)
                return fold
            case Result():
                # A call_id that comes again is a new call.
                fold_of = self._calls.pop(piece.call_id, None)
                if fold_of is None:
                    return CallFold(None, piece)
                fold_of.end(piece)
                return None
            case Compaction():
                return Rule(piece.result, is_in_force=piece.is_in_force)
            case Note():
                return Line(piece.text)

    # --- what comes in just now -----------------------------------------------------------------------

    async def asked(self, text: str) -> None:
        """A prompt that was sent."""
        await self._live.mount(Asked(shown(text)))
        self.anchor()

    async def said(self, delta: str) -> None:
        """More of the answer."""
        if self._answer is None:
            # With its text: by the time that it is there the answer may have ended.
            self._answer = Prose(harmless(delta))
            await self._live.mount(self._answer)
        else:
            self._answer.append(harmless(delta))

    async def thought(self, delta: str) -> None:
        """More of the reasoning."""
        self._thought += harmless(delta)
        if self._thinking is None:
            self._thinking = Fold("thinks", plain(""))
            await self._live.mount(self._thinking)
        if self._thinking is not None:  # else the answer ended meanwhile
            self._thinking.say(f"thinks: {self._thought[-200:].replace(chr(10), ' ').strip()}")

    async def summarises(self, delta: str) -> None:
        """More of the summary that a model writes: its end, in a line."""
        self._summary += harmless(delta)
        if self._summarising is None:
            self._summarising = Fold("summarises", plain(""))
            await self._live.mount(self._summarising)
        if self._summarising is not None:  # as above
            self._summarising.say(f"summarises: {one_line(self._summary[-200:])}")

    async def calls(self, call_id: str, name: str) -> None:
        """A tool runs."""
        await self._live.mount(CallFold(Call("", call_id, shown(name), "…"), None))

    def ended(self) -> None:
        """The answer is whole; another may follow."""
        self._answer, self._thinking, self._thought = None, None, ""

    async def drop_live(self) -> None:
        """What came in is settled now."""
        self.ended()
        self._summarising, self._summary = None, ""
        await self._live.remove_children()


class Earlier(Fold):
    """The line above what is seen of a long session."""

    def __init__(self, count: int, more: Callable[[Earlier], Awaitable[None]]) -> None:
        super().__init__(f"{count:,} earlier · enter shows more", plain(""))
        self._more = more

    async def action_open(self) -> None:
        """Shows more, in its own place."""
        await self._more(self)

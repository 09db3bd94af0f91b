"""The bottom lines of the chat: the progress of a compaction, and the status of the session."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from compactd.cli.chat.gauge import gauge_text
from compactd.cli.framework.page import Look, one_line, plural, shorten_to_columns
from compactd.cli.inspect.markup import short
from compactd.protocol.messages import TokenUsage

PROGRESS_CELLS = 12
MIN_MODEL_COLUMNS = 8
MAX_MODEL_COLUMNS = 40
SEPARATOR = " · "
COLORS: dict[Look, str] = {"": "", "due": "$warning", "bad": "$error"}


class RunningCompaction(Static):
    """The line that shows the progress of a compaction and how to cancel it. It is hidden if no compaction is
    running.
    """

    DEFAULT_CSS = """
    RunningCompaction { height: 1; padding: 0 1; color: $text-muted; display: none; text-wrap: nowrap;
              text-overflow: ellipsis; }
    """

    def begin(self, messages: int, tokens: int) -> None:
        """Show that a compaction of `messages` messages with `tokens` tokens has started."""
        self._what = f"compacting {plural(messages, 'message')}, {short(tokens)} tokens"
        self.display = True
        self.show_progress(0.0, "")

    def show_progress(self, fraction: float, phase: str) -> None:
        """Show the progress of the compaction. `fraction`: from 0 to 1."""
        if not self.display:
            return
        done = round(PROGRESS_CELLS * min(1.0, max(0.0, fraction)))
        bar = "█" * done + "·" * (PROGRESS_CELLS - done)
        self.update(Content(f"{self._what}  {bar} {100 * fraction:.0f} % · Esc cancels · {one_line(phase)}"))

    def end(self) -> None:
        """Hide the progress."""
        self.display = False


class StatusBar(Static):
    """The status bar: model, how full the window is, cost, current activity and keys, in one line."""

    DEFAULT_CSS = """
    StatusBar { height: 1; padding: 0 1; background: $surface; color: $text-muted; text-wrap: nowrap;
               text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._model = ""
        self._parts: Sequence[Content] = ()
        self._keys: Sequence[str] = ()

    def show_state(
        self,
        *,
        model: str,
        usage: TokenUsage,
        look: Look,
        dollars: float | None,
        doing: str,
        read_only: bool,
        keys: Sequence[str],
    ) -> None:
        """Show the current status. All numbers come from the daemon. Of the texts in `keys`, the first one
        that fits is shown.
        """
        parts = [Content.styled(gauge_text(usage), COLORS[look])]
        if dollars is not None:
            parts.append(Content(f"${dollars:,.2f}" if dollars >= 0.005 else "under $0.01"))
        if read_only:
            parts.append(Content.styled("read only", "$warning"))
        if doing:
            parts.append(Content(doing))
        self._model, self._parts, self._keys = one_line(model), parts, keys
        self._draw()

    def on_resize(self) -> None:
        """Lay out the line for the new width."""
        self._draw()

    def _draw(self) -> None:
        # In a narrow terminal, the model's name is shortened, so that the gauge stays visible.
        others = sum(part.cell_length + len(SEPARATOR) for part in self._parts)
        columns = max(MIN_MODEL_COLUMNS, min(MAX_MODEL_COLUMNS, self.content_size.width - others))
        left = Content(SEPARATOR).join([Content(shorten_to_columns(self._model, columns)), *self._parts])
        room = self.content_size.width - left.cell_length
        right = next((one for one in self._keys if len(one) + 2 <= room), "")
        self.update(left + Content(right.rjust(room)) if right else left)

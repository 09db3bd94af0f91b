"""The bottom lines of the chat: the progress of a compaction, and the status of the session."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from compactd.cli.framework.page import Look, one_line, plural, shorten_to_columns
from compactd.cli.inspect.markup import short
from compactd.protocol.messages import TokenUsage

STEPS = "○◔◑◕●"
PROGRESS_CELLS = 12
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
        parts = [
            Content(shorten_to_columns(one_line(model), 40)),
            Content.styled(gauge_text(usage), COLORS[look]),
        ]
        if dollars is not None:
            parts.append(Content(f"${dollars:,.2f}" if dollars >= 0.005 else "under $0.01"))
        if read_only:
            parts.append(Content.styled("read only", "$warning"))
        if doing:
            parts.append(Content(doing))
        left = Content(" · ").join(parts)
        room = self.content_size.width - left.cell_length
        right = next((one for one in keys if len(one) + 2 <= room), "")
        self.update(left + Content(right.rjust(room)) if right else left)


def gauge_text(usage: TokenUsage) -> str:
    """Return a text that says how full the window is, such as `◔ 41 % · 82k/200k`. If the window is a guess,
    the text is like `◔ ~63 % · 81k/128k?`.
    """
    used = short(usage.current_context_tokens or 0)
    if usage.percent is None or not usage.context_window:
        return f"{used} tokens, window unknown"
    is_guess = usage.context_window_confidence == "guess"
    step = STEPS[min(len(STEPS) - 1, int(usage.percent / 100 * (len(STEPS) - 1) + 0.5))]
    percent = f"{'~' if is_guess else ''}{usage.percent:.0f} %"
    return f"{step} {percent} · {used}/{short(usage.context_window)}{'?' if is_guess else ''}"


def gauge_look(usage: TokenUsage) -> Look:
    """Return the colour of the gauge: red if the next request does not fit, yellow if a compaction is due or
    the window is a guess. The daemon decides both (`TokenUsage.decision`).
    """
    if usage.decision == "over":
        return "bad"
    return "due" if usage.decision == "due" or usage.context_window_confidence == "guess" else ""

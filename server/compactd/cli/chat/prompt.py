"""The input field of the chat: several lines, earlier prompts, and completion of commands."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.events import Event, Key, Paste
from textual.message import Message as Told
from textual.strip import Strip
from textual.widgets import Static, TextArea

from compactd.cli.chat.folds import FoldWidget
from compactd.cli.chat.input import common_beginning, complete_line, matching_commands
from compactd.cli.chat.pieces import escape_controls
from compactd.cli.framework.complete import models

MODEL = "/model "
MAX_HINTS = 10
PLACEHOLDER = "ask, or / for commands, ? for keys"


class PromptInput(TextArea):
    """The input field. Enter sends, Ctrl-J starts a new line."""

    DEFAULT_CSS = """
    PromptInput {
        height: auto; max-height: 9; min-height: 2; padding: 0 1; background: $background;
        border: none; border-top: solid $panel; scrollbar-size-vertical: 1;
    }
    PromptInput:focus { border: none; border-top: solid $quiet; }
    """

    class Sent(Told):
        """The message that gives the app a text when the user presses Enter."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class HelpWanted(Told):
        """The message that asks the app for the list of commands and keys."""

    def __init__(self) -> None:
        super().__init__(id="prompt", highlight_cursor_line=False, placeholder=PLACEHOLDER)
        self._sent: list[str] = []
        self._at = 0

    async def _on_key(self, event: Key) -> None:
        match event.key:
            case "enter":
                _consume(event)
                self._send()
            case "ctrl+j" | "shift+enter":
                _consume(event)
                self.insert("\n")
            case "question_mark" if not self.text:
                _consume(event)
                self.post_message(self.HelpWanted())
            case "tab" if self.text.startswith("/"):
                _consume(event)
                self._put_text(complete_name(self.text))
            case "tab":
                # Focus moves to the newest entry that can be opened: it is the last one before the prompt.
                _consume(event)
                self.screen.focus_previous(FoldWidget)
            case "up" if self.cursor_location[0] == 0:
                _consume(event)
                self._recall(-1)
            case "down" if self.cursor_location[0] == self.document.line_count - 1:
                _consume(event)
                self._recall(1)
            case _:
                pass

    def render_line(self, y: int) -> Strip:
        """Return line `y` of the field. It is blank if the field has no columns, because textual 8.2 then
        fails to wrap the placeholder.
        """
        return super().render_line(y) if self.content_size.width > 0 else Strip.blank(self.size.width)

    async def _on_paste(self, event: Paste) -> None:
        """Insert pasted text without its control characters."""
        _consume(event)
        self.insert(escape_controls(event.text))

    def fill(self, text: str) -> None:
        """Put a text into the field so that it can be edited and sent."""
        self._put_text(escape_controls(text))

    def take_text(self) -> str:
        """Empty the field. Return the text that it had; ↑ recalls it."""
        text = self.text.strip()
        self.text = ""
        if text:
            self._sent.append(text)
            self._at = len(self._sent)
        return text

    def _send(self) -> None:
        text = self.take_text()
        if text:
            self.post_message(self.Sent(text))

    def _recall(self, step: int) -> None:
        at = self._at + step
        if 0 <= at <= len(self._sent) and self._sent:
            self._at = at
            self._put_text(self._sent[at] if at < len(self._sent) else "")

    def _put_text(self, text: str) -> None:
        self.text = text
        self.move_cursor(self.document.end)


def complete_name(line: str) -> str:
    """Return `line` with a longer name of the command, or of the model after `/model`: completed up to where
    the matching names differ.
    """
    if not line.startswith(MODEL):
        return complete_line(line)
    names = [name for name, _ in models(line.removeprefix(MODEL))]
    return MODEL + common_beginning(names) if names else line


class Hints(Static):
    """The completions of the typed text, shown above the input field. Hidden if the text is a prompt."""

    DEFAULT_CSS = """
    Hints { height: auto; max-height: 10; padding: 0 1; color: $text-muted; display: none; }
    """

    def show_hints(self, line: str) -> None:
        """Show the completions of the typed text `line`; hide the widget if there are none."""
        lines = _hints(line)
        self.display = bool(lines)
        if lines:
            self.update(Content("\n".join(lines[:MAX_HINTS])))


def _hints(line: str) -> Sequence[str]:
    if line.startswith(MODEL) and len(line) > len(MODEL):
        return [name for name, _ in models(line.removeprefix(MODEL))]
    return [f"{f'{about.name} {about.takes}':<29} {about.told}" for about in matching_commands(line)]


def _consume(event: Event) -> None:
    """Stop the event, so that no other widget handles it."""
    event.stop()
    event.prevent_default()

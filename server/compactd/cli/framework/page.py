"""Standard output of a command: text lines, label rows, numbers, JSON. Bars and colours are used only in a
terminal.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from compactd.core.text import sanitize
from compactd.core.text.escape_invisible import visible_json

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
"""Columns if the terminal's width is unknown."""
WIDEST = 100
"""The widest line: longer ones are hard to read, even in a wide terminal."""
LABEL = 10
"""Columns of the label of a row."""
TAB = 4
MAX_NOTES = 3
MIN_TEXT = 26
"""The fewest columns for the text of a row. In a narrow terminal, its further lines are indented less."""
NUMBER = 9
"""Columns of the number in a row."""

Look = Literal["", "due", "bad"]
"""The colour of a line: `due` if a compaction is due soon or a number is a guess, `bad` if a limit is
exceeded or something failed. The text of the line does not depend on the colour.
"""

STYLES: Mapping[Look, str] = {"": "", "due": "yellow", "bad": "red"}
"""Colour -> its style in rich."""


def without_controls(text: str) -> str:
    """Return `text` without control characters that a terminal would act on. Line ends stay."""
    return text.replace("\r\n", "\n").translate(sanitize.NOTHING)


def make_encodable(text: str) -> str:
    """Return `text` with U+FFFD for lone surrogates (the bytes of a file name that are not UTF-8)."""
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return `text` as one line: each run of white space becomes one space."""
    return " ".join(without_controls(text).split())


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: `1 message`, `2,000 messages`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def shorten_to_columns(text: str, columns: int) -> str:
    """Return `text`, shortened to at most `columns` columns. The end is cut off. If the text ends with a
    path, a part of the middle is cut out instead, because the end of a path says most.
    """
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= columns:
        return text
    words, _, last = text.rpartition(" ")
    if "/" not in last or cell_len(words) > columns // 3:
        return f"{set_cell_size(text, columns - 1).rstrip()}…"
    front = columns // 3
    while cell_len(last) > columns - front - 1:
        last = last[1:]
    return f"{set_cell_size(text, front).rstrip()}…{last}"


class HeldOutput(io.StringIO):
    """A buffer that stands in for standard output until a command has printed everything; see
    `cli/framework/pager.py`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []
        """Lines for standard error, to be written after the output."""

    def isatty(self) -> bool:
        """Return True: the output is meant for a terminal."""
        return True


class Page:
    """The standard output that a command writes to, line by line."""

    def __init__(self, *, is_json: bool = False) -> None:
        self.is_json = is_json
        is_forced = bool(os.environ.get("FORCE_COLOR"))
        self.is_drawn = (
            not is_json and os.environ.get("TERM") != "dumb" and (sys.stdout.isatty() or is_forced)
        )
        """True in a terminal: lines are wrapped, bars are drawn, colours are used."""
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """The rich console of the terminal. Use it only if `is_drawn`."""
        if self._console is None:
            from rich.console import Console

            console = Console(highlight=False, markup=False, emoji=False)
            console.width = min(console.width, WIDEST)
            self._console = console
        return self._console

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.console.width if self.is_drawn else WIDTH

    def line(self, text: str = "", look: Look = "") -> None:
        """Print one line, wrapped in a terminal."""
        self._print(without_controls(text), 0, look)

    def command(self, text: str) -> None:
        """Print a shell command in one line, so that it can be copied. It is never wrapped."""
        line = one_line(text) if not text.startswith(" ") else f"  {one_line(text)}"
        if self.is_drawn:
            self.console.print(line, no_wrap=True, overflow="ignore", crop=False)
        else:
            sys.stdout.write(f"{line}\n")

    def pieces(self, pieces: Iterable[tuple[str, str]]) -> None:
        """Print one line of (text, style in rich) in a terminal. It is never wrapped."""
        from rich.text import Text

        text = Text.assemble(*pieces)
        text.rstrip()
        self.console.print(text, no_wrap=True, overflow="ignore", crop=False)

    def row(self, label: str, text: str, look: Look = "", *, columns: int = LABEL) -> None:
        """Print a label and a text. In a terminal, the text is wrapped, and further lines begin below its
        first word. `columns`: the width of the label.
        """
        self._print(f"{label:<{columns}}{without_controls(text)}".replace("\n", " "), columns, look)

    def figure(self, label: str, number: str, text: str, look: Look = "") -> None:
        """Print a row: a label, a right-aligned number, and a text that says where the number comes from."""
        head = f"{label:<{LABEL}}{number:>{NUMBER}}   "
        self._print(head + one_line(text), len(head), look)

    def text(self, text: str) -> None:
        """Print a text of several lines. In a terminal, lines are wrapped and list items indented."""
        for line in without_controls(text).split("\n"):
            begin = len(line) - len(line.lstrip(" "))
            self._print(line, begin + 2 if line[begin : begin + 2] == "- " else begin, "")

    def _print(self, line: str, indent: int, look: Look) -> None:
        """Print a line. In a terminal, it is wrapped, and further lines are indented by `indent` columns."""
        if not self.is_drawn:
            sys.stdout.write(f"{line}\n")
            return
        from rich.text import Text

        console = self.console
        first = Text(line.expandtabs(TAB), style=STYLES[look])
        if first.cell_len <= console.width:
            console.print(first)
            return
        indent = min(indent, max(0, console.width - MIN_TEXT))
        begin, rest = first[:indent], first[indent:]
        for part in rest.wrap(console, console.width - indent):
            part.rstrip()
            console.print(begin + part)
            begin = Text(" " * indent)

    def json(self, value: object) -> None:
        r"""Print `value` as JSON, for `--json`. The JSON is indented if standard output is a terminal.

        Characters that could command a terminal or hide in a line are written as `\uXXXX`, which is the same
        JSON value.
        """
        data = msgspec.json.encode(value)
        if sys.stdout.isatty():
            data = msgspec.json.format(data, indent=2)
        sys.stdout.write(visible_json(data.decode("utf-8", "replace")) + "\n")


def ask_for_text() -> None:
    """If standard input is a terminal, say on standard error that a text is expected there."""
    if sys.stdin.isatty():
        sys.stderr.write("Type or paste the text, then press Ctrl-D on a line of its own.\n")
        sys.stderr.flush()


def write_errors(lines: Iterable[str]) -> None:
    """Write lines to standard error. In a terminal, they are wrapped between words. Long words, such as
    paths, stay whole.
    """
    columns = _error_columns()
    for line in lines:
        for part in without_controls(line).split("\n"):
            sys.stderr.write(f"{_wrapped(part, columns)}\n")


def _error_columns() -> int:
    """Return the width of the terminal that standard error is; 0 if it is none, or if it has no width."""
    try:
        return min(os.get_terminal_size(sys.stderr.fileno()).columns, WIDEST)
    except (OSError, ValueError):
        return 0


def _wrapped(line: str, columns: int) -> str:
    """Return `line` with line ends between words, so that it fits into `columns` columns; 0: as it is."""
    if len(line) <= columns or not columns:
        return line
    from textwrap import fill

    return fill(line, columns, break_long_words=False, break_on_hyphens=False)


def print_notes(lines: Sequence[str]) -> None:
    """Print the first `MAX_NOTES` warnings to standard error after all other output, and how many
    more there are.
    """
    columns = _error_columns()
    shown = [f"{_wrapped(f'note: {one_line(line)}', columns)}\n" for line in lines[:MAX_NOTES]]
    more = len(lines) - MAX_NOTES
    if more > 0:
        shown.append(f"note: {plural(more, 'more note', 'more notes')}; --json lists them\n")
    if isinstance(sys.stdout, HeldOutput):
        sys.stdout.notes += shown
        return
    sys.stdout.flush()
    sys.stderr.write("".join(shown))

"""What a command prints: the same text in a terminal and in a pipe; there without bars and colours."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from compactd.core.text import sanitize
from compactd.core.text.visible import visible_json

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
"""Columns where nobody says how many there are."""
WIDEST = 100
"""Longer lines are hard to read, however wide the terminal."""
LABEL = 10
"""Columns of a row's label."""
TAB = 4
NUMBER = 9
"""Columns of a row's number."""

Look = Literal["", "due", "bad"]
"""What needs attention: due soon or a guess; over or failed. Everything reads the same without it."""

_STYLES: Mapping[Look, str] = {"": "", "due": "yellow", "bad": "red"}


def cleaned(text: str) -> str:
    """`text` without what could command a terminal; line ends stay."""
    return text.replace("\r\n", "\n").translate(sanitize.NOTHING)


def encodable(text: str) -> str:
    """`text` without the lone surrogates that stand for a file name's bytes where they are no UTF-8."""
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """`text` as one line: all white space is one blank."""
    return " ".join(cleaned(text).split())


def plural(count: int, one: str, many: str = "") -> str:
    """`1 message`, `2,000 messages`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def shortened(text: str, columns: int) -> str:
    """`text` in so many columns: without its end, or a path's middle, for its end tells most."""
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


class Held(io.StringIO):
    """Standard output that ends in a terminal, kept until all of it is known."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []
        """For standard error, once the output was shown."""

    def isatty(self) -> bool:
        """True: where it ends."""
        return True


class Page:
    """Standard output, as a command fills it from the top."""

    def __init__(self, *, is_json: bool = False) -> None:
        self.is_json = is_json
        is_forced = bool(os.environ.get("FORCE_COLOR"))
        self.is_drawn = (
            not is_json and os.environ.get("TERM") != "dumb" and (sys.stdout.isatty() or is_forced)
        )
        """True in a terminal: lines are wrapped, bars are drawn, what needs attention has a colour."""
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """The terminal; only where `is_drawn`."""
        if self._console is None:
            from rich.console import Console

            console = Console(highlight=False, markup=False, emoji=False)
            console.width = min(console.width, WIDEST)
            self._console = console
        return self._console

    @property
    def width(self) -> int:
        """Columns there are."""
        return self.console.width if self.is_drawn else WIDTH

    def line(self, text: str = "", look: Look = "") -> None:
        """One line; in a terminal wrapped."""
        text = cleaned(text)
        if self.is_drawn:
            self._wrapped(text, 0, look)
        else:
            sys.stdout.write(f"{text}\n")

    def row(self, label: str, text: str, look: Look = "", *, columns: int = LABEL) -> None:
        """A label and what there is to say; in a terminal wrapped, with the rest under its beginning."""
        line = f"{label:<{columns}}{cleaned(text)}".replace("\n", " ")
        if self.is_drawn:
            self._wrapped(line, columns, look)
        else:
            sys.stdout.write(f"{line}\n")

    def figure(self, label: str, number: str, text: str, look: Look = "") -> None:
        """A row with a number, right-aligned, and where it comes from."""
        head = f"{label:<{LABEL}}{number:>{NUMBER}}   "
        line = head + one_line(text)
        if self.is_drawn:
            self._wrapped(line, len(head), look)
        else:
            sys.stdout.write(f"{line}\n")

    def text(self, text: str) -> None:
        """A text of several lines; in a terminal wrapped, a list's points with the rest indented."""
        for line in cleaned(text).split("\n"):
            if not self.is_drawn:
                sys.stdout.write(f"{line}\n")
                continue
            begin = len(line) - len(line.lstrip(" "))
            self._wrapped(line, begin + 2 if line[begin : begin + 2] == "- " else begin, "")

    def _wrapped(self, line: str, indent: int, look: Look) -> None:
        from rich.text import Text

        console = self.console
        first = Text(line.expandtabs(TAB), style=_STYLES[look])
        if first.cell_len <= console.width:
            console.print(first)
            return
        begin, rest = first[:indent], first[indent:]
        for part in rest.wrap(console, max(20, console.width - indent)):
            part.rstrip()
            console.print(begin + part)
            begin = Text(" " * indent)

    def json(self, value: object) -> None:
        """The one object of `--json`; over several lines where a person looks at it. What could command a
        terminal or hide in a line is written as `\\uXXXX`: the same JSON value."""
        data = msgspec.json.encode(value)
        if sys.stdout.isatty():
            data = msgspec.json.format(data, indent=2)
        sys.stdout.write(visible_json(data.decode("utf-8", "replace")) + "\n")


def note(lines: Sequence[str], most: int = 3) -> None:
    """Warnings, on standard error, after all else: the first of them, and how many more there are."""
    shown = [f"note: {one_line(line)}\n" for line in lines[:most]]
    if len(lines) > most:
        shown.append(f"note: {plural(len(lines) - most, 'more note', 'more notes')}; --json lists them\n")
    if isinstance(sys.stdout, Held):
        sys.stdout.notes += shown
        return
    sys.stdout.flush()
    sys.stderr.write("".join(shown))

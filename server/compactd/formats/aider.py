"""aider's chat history (`.aider.chat.history.md`): Markdown that grows at its end.

As Aider-AI/aider writes it, `aider/io.py` (`append_chat_history`, `user_input`, `tool_output`), read 2026-11:
`# aider chat started at <local time>` begins a run of the program, `#### ` each line that the user typed,
`> ` each line that the program showed (what it applied, ran, asked); all else is the model's. aider's own
summaries of a long chat are not written down, nor calls: it has none.

A model can write `#### ` too. aider ends each line that it marks with two blanks and puts a blank line before
a prompt, two after an answer. So a prompt is the user's only in that form, and only after a line that aider
wrote, after a command, or after an answer that left no code block open (a block that the person cut off is
none). In a real history of 2024-08, 1,749 of 1,755 prompts are such, and none of the model's headings. A
model that imitates all of it is believed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from io import StringIO
from typing import Final

from compactd.core.authors import TOOL, UNKNOWN
from compactd.formats.lines import utf8
from compactd.formats.session_file import Collected, SessionFile
from compactd.messages import Author, Meta, Text

STARTED = "# aider chat started"
ASKED, SHOWN = "#### ", "> "
LINE_END: Final = "  "
"""What aider ends a line with that it marks: Markdown's line break."""

_COMMANDS: Final = ("/", "!", "<blank>")
"""How a prompt begins that no model answers; the last is an empty one."""

_METAS = {
    "started": Meta(kind="aider_started", synthetic=True),
    "shown": Meta(kind="aider_output", synthetic=True),
}

_LINTED: Final = "# Fix any errors below, if possible."
"""How a prompt begins that aider made of a linter's output (`aider/linter.py`)."""

_WHOLE: Final = re.compile(rb"^(?:#### |> )[^\n]*  \r?$", re.MULTILINE)
"""A line in aider's form. Where a file has none, something took the blanks from the ends of its lines: then
the place of a prompt has to do."""
_FENCE: Final = re.compile(r"(`{3,}|~{3,})([^\n]*)")

_QUESTION: Final = "(Y)es/(N)o"
"""Stands in a question of aider's that an earlier answer settled (`confirm_ask`)."""


def read(data: bytes) -> SessionFile:
    """The session in `data`; what the program showed stands as the user's, `meta.synthetic`. O(bytes)."""
    session = Collected("aider")
    # Lines end as in a text file: the line ends of Unicode that `splitlines` knows are text here.
    lines = StringIO(utf8(data, "the file", session.warn).decode(), newline="").readlines()
    reading = _Reading(session, lines, is_trimmed=_WHOLE.search(data) is None)
    for at, line in enumerate(lines):
        if line[0] not in "#>" and reading.kind == "said":  # most lines of any chat
            reading.lines.append(line)
        else:
            reading.line(at, line)
    reading.take()
    return reading.session.finished()


class _Reading:
    def __init__(self, session: Collected, whole: Sequence[str], *, is_trimmed: bool) -> None:
        self.session = session
        self._whole = whole
        """All lines of the file."""
        self.kind = ""
        """Whose words `lines` are: `started`, `shown`, `asked`, `claimed` (a prompt that may be the
        model's) or `said`."""
        self.lines: list[str] = []
        self._may_ask = True
        """Whether a prompt may follow the last line that is not blank."""
        self._after_blank = True
        self._goes_on = False
        """Whether the last line is of what aider showed and goes on without a mark."""
        self._is_trimmed = is_trimmed
        self._fence = ""
        """What opened the code block that the last answer left open."""
        self._answer = ""
        """The last answer without its blanks."""

    @cached_property
    def _fences(self) -> list[tuple[int, bool]]:
        """(the place, whether it can only open a block) of each line that opens or closes one."""
        found = ((at, _FENCE.match(line)) for at, line in enumerate(self._whole) if line[0] in "`~")
        return [(at, bool(fence[2].strip())) for at, fence in found if fence is not None]

    def _is_cut_off(self, at: int) -> bool:
        """Whether the code block that is open before the line `at` was never closed: the next one is opened.
        The person interrupted the model then, and did not wait for the block's end."""
        later = bisect_left(self._fences, (at, False))
        return later < len(self._fences) and self._fences[later][1]

    def line(self, at: int, line: str) -> None:
        """Takes in the next line."""
        text = line.rstrip("\r\n")
        if not text.strip():
            self._after_blank, self._goes_on = True, False
            if self.kind:
                self.lines.append(line)
            return
        kind = self._kind_of(at, text)
        mark = {"asked": ASKED, "claimed": ASKED, "shown": SHOWN}.get(kind, "")
        is_marked = bool(mark) and text.startswith(mark)
        is_whole = self._is_whole(text)
        words = line
        if mark:
            words = (text.removeprefix(mark) if is_marked else text).removesuffix(LINE_END)
            words += line[len(text) :]
        if kind == "shown" and not words.strip():
            return
        # Two prompts are two messages, unless one is known to be nobody's.
        if kind != self.kind or (kind == "asked" and self._after_blank):
            self.take()
            self.kind, self.lines = kind, []
            if kind == "asked":
                self._fence = ""
            self._may_ask = kind == "asked" and (words.startswith(_COMMANDS) or _QUESTION in words)
        self.lines.append(words)
        if kind in ("started", "shown"):
            self._may_ask = kind == "started" or is_whole
        if self._may_ask:
            self._fence = ""
        self._goes_on = kind == "shown" and not is_whole
        self._after_blank = False

    def _is_whole(self, text: str) -> bool:
        return self._is_trimmed or text.endswith(LINE_END)

    def _kind_of(self, at: int, text: str) -> str:
        if text.startswith(SHOWN) or (self._goes_on and text.endswith(LINE_END)):
            return "shown"
        if text.startswith(STARTED):
            return "started"
        if not text.startswith(ASKED):
            return "said"
        is_whole = self._is_whole(text)
        if self.kind == "said":
            if not is_whole:
                return "said"
            is_after_answer = not self._is_trimmed and not "".join(self.lines[-2:]).strip()
            if not is_after_answer:
                return "claimed"
            is_open = bool(_open_fence(self.lines, self._fence))
            return "claimed" if is_open and not self._is_cut_off(at) else "asked"
        if is_whole and (self._may_ask if self._after_blank else self.kind == "asked"):
            return "asked"
        return "claimed"

    def take(self) -> None:
        """Makes a message of the lines so far."""
        text = "".join(self.lines).rstrip("\n")
        if not text.strip():
            return
        if self.kind == "said":
            self._fence = _open_fence(self.lines, self._fence)
            self._answer = _bare(text)
            self.session.add("assistant", (Text(text=text),))
            return
        meta = _METAS.get(self.kind)
        author = self._author(text) if meta is None else None
        self.session.add("user", (Text(text=text),), meta=meta if author is None else Meta(author=author))

    def _author(self, text: str) -> Author | None:
        by_program = author_of_prompt(text)
        if by_program is not None:
            return by_program
        # The architect's answer is the editor's prompt (`aider/coders/architect_coder.py`).
        is_copy = bool(self._answer) and _bare(text) == self._answer
        return UNKNOWN if self.kind == "claimed" or is_copy else None


def author_of_prompt(text: str) -> Author | None:
    """The author of a prompt that aider made, told by its text; none for any other."""
    if text.startswith(_LINTED):
        return TOOL
    return UNKNOWN if _QUESTION in text else None


def _open_fence(lines: Sequence[str], fence: str) -> str:
    """The signs of the code block that is open after the lines, where `fence` was open before them."""
    for line in lines:
        if line[0] in "`~" and (found := _FENCE.match(line)) is not None:
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence) and not found[2].strip():
                fence = ""
    return fence


def _bare(text: str) -> str:
    return "".join(text.split())

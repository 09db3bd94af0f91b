"""Read aider's chat history (`.aider.chat.history.md`), a Markdown file that grows at its end.

The format is defined by Aider-AI/aider, `aider/io.py` (`append_chat_history`, `user_input`, `tool_output`),
read 2026-11. `# aider chat started at <local time>` starts a run of the program. `#### ` marks each line that
the user typed, `> ` each line that the program showed (what it applied, ran, asked). Everything else was
written by the model. There are no tool calls, because aider has none. Aider's summaries of a long chat are
not in the file either.

A model can write `#### ` too. aider ends each line that it marks with two spaces, and puts a blank line
before a prompt and two after an answer. Therefore a prompt is the user's only in that form, and only after a
line of aider, after a command, or after an answer that left no code block open (a block that the user
interrupted does not count). If a model imitates all of this, its text is read as a prompt of the user.
"""

from __future__ import annotations

import re
from typing import Final

from compactd.core.authors.authors import FILE, TOOL, UNKNOWN
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.formats.files.json_lines import utf8
from compactd.formats.files.session_file import SessionBuilder, SessionFile
from compactd.protocol.messages import Author, Meta, Text

STARTED = "# aider chat started"
ASKED, SHOWN = "#### ", "> "
LINE_END: Final = "  "
"""The end of a line that aider marks: Markdown's line break."""
_BETWEEN_SHOWN: Final = f"{LINE_END}\n{SHOWN}"
_BETWEEN_ASKED: Final = f"{LINE_END}\n{ASKED}"
_TAIL_CHARS: Final = 80
"""How many characters at the end of an answer are searched for blank lines."""

_COMMANDS: Final = ("/", "!", "<blank>")
"""The beginnings of prompts that no model answers. The last one is an empty prompt."""

_METAS = {
    "started": Meta(kind="aider_started", synthetic=True),
    "shown": Meta(kind="aider_output", synthetic=True),
}

_LINTED: Final = "# Fix any errors below, if possible."
"""The beginning of a prompt that aider made from a linter's output (`aider/linter.py`)."""

_HELP: Final = ("# Question: ", "\n# Relevant docs:")
"""The beginning of the prompt that aider makes from a `/help` command, and the line in that prompt after
which the pages of aider's manual follow (`aider/help.py`). The user typed only the command, which is in the
file before the prompt.
"""

_WHOLE: Final = re.compile(rb"^(?:#### |> )[^\n]*  \r?$", re.MULTILINE)
"""A pattern for a line that aider marked, with two spaces at its end. If a file has no such line, something
removed the spaces at the ends of its lines. Then only the position of a prompt is checked, not its form.
"""
_FENCE: Final = LazyPattern(r"^(`{3,}|~{3,})([^\n]*)", re.MULTILINE)
_RUNS: Final = LazyPattern(
    r"(?P<said>(?:(?:[^#>\n]|#(?!### | aider chat started)|>(?! ))[^\n]*(?:\n|\Z)|\n)++)"
    r"|(?P<shown>(?:> [^\n]*  \n)++)|(?P<asked>(?:#### [^\n]*  \n)++)|(?P<line>[^\n]+(?:\n|\Z))"
)
r"""A pattern for a group of lines. A group is lines that only the model writes and blank lines (`said`),
lines that aider showed (`shown`), a prompt (`asked`), or any other single line (`line`). Only `\n` ends a
line; the Unicode line ends that `splitlines` knows are text here.
"""
_BLANK: Final = LazyPattern(r"(?:[ \t\r]*(?:\n|\Z))*")
_ENDS_BLANK: Final = LazyPattern(r"(?:\A|\n)[ \t\r]*\n[ \t\r]*\n\Z")

_QUESTION: Final = "(Y)es/(N)o"
"""A text in a question of aider that an earlier answer of the user decided (`confirm_ask`)."""


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. What aider showed becomes a user message with
    `meta.synthetic`. O(bytes).
    """
    session = SessionBuilder("aider")
    text = utf8(data, "the file", session.warn).decode()
    reading = _Reader(session, text, is_trimmed=_WHOLE.search(data) is None)
    for found in _RUNS.finditer(text):
        match found.lastgroup:
            case "said":
                reading.add_model_lines(found.start(), found[0])
            case "shown":
                reading.add_shown_lines(found.start(), found[0])
            case "asked":
                reading.add_prompt_lines(found.start(), found[0])
            case _:
                reading.add_line(found.start(), found[0])
    reading.finish_message()
    return reading.session.finish()


class _Reader:
    def __init__(self, session: SessionBuilder, text: str, *, is_trimmed: bool) -> None:
        self.session = session
        self._text = text
        self.kind = ""
        """What `lines` are: `started` (the start of a run of aider), `shown` (by aider), `asked` (a prompt),
        `claimed` (a prompt that may be the model's) or `said` (by the model); empty before the first line.
        """
        self.lines: list[str] = []
        self._may_ask = True
        """Whether a prompt may follow the last line that is not blank."""
        self._after_blank = True
        self._goes_on = False
        """Whether the last line is one that aider showed and that continues on the next line
        without a mark.
        """
        self._is_trimmed = is_trimmed
        self._open = ""
        """The fence that opened the code block at position `_since`; empty if no code block is open there."""
        self._since = 0
        """The position from which the next fence of a code block is searched."""
        self._fence = _FENCE.search(text)
        self._answer = ""

    def _is_in_code(self, at: int) -> bool:
        """Return whether a code block of an answer is open at `at`. An interrupted block, which the next
        fence cannot close, does not count.

        Successive calls must have rising positions. O(characters up to the next fence); all calls together
        read each character once.
        """
        while (fence := self._fence_from(self._since)) is not None and fence.start() < at:
            if not self._open:
                self._open = fence[1]
            elif fence[1].startswith(self._open) and not fence[2].strip():
                self._open = ""
            self._since = fence.end()
        return bool(self._open) and not (fence is not None and fence[2].strip())

    def _fence_from(self, place: int) -> re.Match[str] | None:
        """Return the first line from `place` on that opens or closes a code block."""
        if self._fence is not None and self._fence.start() < place:
            self._fence = _FENCE.search(self._text, place)
        return self._fence

    def add_model_lines(self, at: int, lines: str) -> None:
        """Add lines of the model or blank lines, which begin at position `at`."""
        if self.kind == "said":
            self.lines.append(lines)
            return
        blank = _BLANK.match(lines)
        begin = 0 if blank is None else blank.end()
        if begin:
            self._after_blank, self._goes_on = True, False
            if self.kind:
                self.lines.append(lines[:begin])
        if begin == len(lines):
            return
        first = lines.find("\n", begin) + 1 or len(lines)
        if self._goes_on and lines[begin:first].rstrip("\r\n").endswith(LINE_END):
            self.add_line(at, lines[begin:first])
            if first < len(lines):
                self.add_model_lines(at + first, lines[first:])
            return
        self._begin("said", at)
        self.lines.append(lines[begin:])

    def add_shown_lines(self, at: int, lines: str) -> None:
        """Add lines that aider showed, which begin at position `at`. Each has aider's mark and ending."""
        words = [line for line in lines[2:-3].split(_BETWEEN_SHOWN) if line.strip()]
        if not words:
            return
        if self.kind != "shown":
            self._begin("shown", at)
        self.lines += (f"{line}\n" for line in words)
        self._may_ask, self._open, self._since = True, "", at
        self._goes_on = self._after_blank = False

    def add_prompt_lines(self, at: int, lines: str) -> None:
        """Add a prompt, which begins at position `at`. Each of its lines has aider's mark and ending."""
        words = lines[5:-3].replace(_BETWEEN_ASKED, "\n")
        kind = self._kind_of(at, f"{ASKED}{LINE_END}")
        # A prompt after a blank line is a message of its own. Prompts that may be the model's are joined.
        if kind != self.kind or (kind == "asked" and self._after_blank):
            self._begin(kind, at)
            self._may_ask = kind == "asked" and (words.startswith(_COMMANDS) or _QUESTION in words)
        self.lines.append(f"{words}\n")
        self._after_blank = False

    def _begin(self, kind: str, at: int) -> None:
        self.finish_message()
        self.kind, self.lines = kind, []
        self._may_ask = self._goes_on = self._after_blank = False
        if kind == "asked":
            self._open, self._since = "", at

    def add_line(self, at: int, line: str) -> None:
        """Add one line at position `at`: one with a mark, or one that continues what aider showed."""
        text = line.rstrip("\r\n")
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
        # A prompt after a blank line is a message of its own. Prompts that may be the model's are joined.
        if kind != self.kind or (kind == "asked" and self._after_blank):
            self._begin(kind, at)
            self._may_ask = kind == "asked" and (words.startswith(_COMMANDS) or _QUESTION in words)
        self.lines.append(words)
        if kind in ("started", "shown"):
            self._may_ask = kind == "started" or is_whole
        if self._may_ask:
            self._open, self._since = "", at
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
            last = self.lines[-1]
            if self._is_trimmed or _ENDS_BLANK.search(last, max(0, len(last) - _TAIL_CHARS)) is None:
                return "claimed"
            return "claimed" if self._is_in_code(at) else "asked"
        if is_whole and (self._may_ask if self._after_blank else self.kind == "asked"):
            return "asked"
        return "claimed"

    def finish_message(self) -> None:
        """Add the lines so far to the session as one message."""
        text = "".join(self.lines).rstrip("\n")
        if not text.strip():
            return
        if self.kind == "said":
            self._answer = text
            self.session.add("assistant", (Text(text=text),))
            return
        meta = _METAS.get(self.kind)
        author = self._author(text) if meta is None else None
        self.session.add("user", (Text(text=text),), meta=meta if author is None else Meta(author=author))

    def _author(self, text: str) -> Author | None:
        by_program = author_of_prompt(text)
        if by_program is not None:
            return by_program
        # In architect mode, aider sends the answer of the architect model to the editor model as a prompt
        # (`aider/coders/architect_coder.py`).
        begin, answer = text.strip()[:8], self._answer.strip()
        is_copy = bool(begin) and answer.startswith(begin) and text.split() == answer.split()
        return UNKNOWN if self.kind == "claimed" or is_copy else None


def author_of_prompt(text: str) -> Author | None:
    """Return the author of a prompt that aider itself made, recognised by its text. Return None for a prompt
    that a person may have typed.
    """
    if text.startswith(_LINTED):
        return TOOL
    if text.startswith(_HELP[0]) and _HELP[1] in text:
        return FILE
    return UNKNOWN if _QUESTION in text else None

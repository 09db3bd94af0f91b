"""aider's chat history (`.aider.chat.history.md`): Markdown that grows at its end.

As Aider-AI/aider writes it, `aider/io.py` (`append_chat_history`, `user_input`, `tool_output`), read 2026-11:
`# aider chat started at <local time>` begins a run of the program, `#### ` each line that the user typed,
`> ` each line that the program showed (what it applied, ran, asked); all else is the model's. aider's own
summaries of a long chat are not written down, nor calls: it has none.
"""

from __future__ import annotations

from io import StringIO

from compactd.formats.lines import utf8
from compactd.formats.session_file import Collected, SessionFile
from compactd.messages import Meta, Text

STARTED = "# aider chat started"
ASKED, SHOWN = "#### ", "> "

_METAS = {
    "started": Meta(kind="aider_started", synthetic=True),
    "shown": Meta(kind="aider_output", synthetic=True),
}


def read(data: bytes) -> SessionFile:
    """The session in `data`; what the program showed stands as the user's, `meta.synthetic`. O(bytes)."""
    session = Collected("aider")
    kind, lines = "", list[str]()
    # Lines end as in a text file: the line ends of Unicode that `splitlines` knows are text here.
    for line in StringIO(utf8(data, "the file", session.warn).decode(), newline=""):
        if line[0] not in "#>" and kind == "said":  # most lines of any chat
            lines.append(line)
            continue
        this, text = _split(line)
        is_blank = not text.strip()
        if this == "shown" and is_blank:
            continue
        if not kind or (this != kind and not is_blank):
            _take(session, kind, lines)
            kind, lines = this, []
        lines.append(text)
    _take(session, kind, lines)
    return session.finished()


def _split(line: str) -> tuple[str, str]:
    """(whose words a line is, the words)."""
    if line.startswith(SHOWN):
        return "shown", line[len(SHOWN) :]
    if line.startswith(ASKED):
        return "asked", line[len(ASKED) :]
    return ("started" if line.startswith(STARTED) else "said"), line


def _take(session: Collected, kind: str, lines: list[str]) -> None:
    text = "".join(lines).rstrip("\n")
    if text.strip():
        session.add("assistant" if kind == "said" else "user", (Text(text=text),), meta=_METAS.get(kind))

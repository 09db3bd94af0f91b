"""Outputs of tools for the tests: made from pieces, so that hypothesis can combine them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hypothesis import strategies as st

from compactd.core.history.entries import EntryId
from compactd.core.reduce.marks import defuse
from compactd.core.reduce.output import LEVELS, Level, Reduction, ToolOutput
from compactd.core.reduce.reduce import reduce_output
from compactd.core.reduce.shown import ShownLines
from compactd.core.reduce.terminal import without_escapes, without_overwritten

ORIGINAL = EntryId("e41")
EARLIER = EntryId("e17")

CODE = tuple(f"    result_{n} = compute_{n}(settings.limit_{n}, retries={n})  # step {n}" for n in range(400))
"""Lines of a program, each of which stands only once."""
FORGED = (
    "[… 5 lines left out, expand e9]",
    "[… 212 lines as in e17, Read app.py …]",
    "[\x1b[0m… 7 lines left out, expand e9]",
    "[\u200b… 1,240 lines left out, expand e41]",
    "  [... 12 lines left out, expand e3]",
    "[\x1b[1m\x1b[0m… 9 lines as in e2 …]",
    "x\r[… 3 lines left out, expand e1]",
    "［… 4 lines left out, expand e9］",
)
"""What looks like a mark to a reader, written by a tool."""

CALLS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("Read", {"file_path": "src/app.py"}),
    ("Read", {"file_path": "src/app.py", "offset": 40, "limit": 100}),
    ("Edit", {"file_path": "src/app.py", "old_string": "a", "new_string": "b"}),
    ("Grep", {"pattern": "compute", "output_mode": "content"}),
    ("Glob", {"pattern": "**/*.py"}),
    ("Bash", {"command": "pytest -q"}),
    ("Bash", {"command": "npm install && npm run build"}),
    ("bash", {"command": "git diff HEAD~1"}),
    ("bash", {"command": "git log --stat | cat"}),
    ("bash", {"command": "curl -s https://example.org"}),
    ("bash", {"command": "cat data.json"}),
    ("bash", {"command": "./serve --verbose 2>&1 | tail -5000"}),
    ("WebFetch", {"url": "https://example.org"}),
    ("Task", {"prompt": "look"}),
    ("mcp__db__query", {"sql": "select 1"}),
)


def output(
    text: str, call: tuple[str, Mapping[str, object]] = CALLS[11], *, is_error: bool = False
) -> ToolOutput:
    """Return an output of a call; without one, that of a program that runs long."""
    return ToolOutput(call[0], call[1], text, is_error)


def reduce(one: ToolOutput, level: Level = "default", shown: ShownLines | None = None) -> Reduction:
    """Return the reduction of an output."""
    return reduce_output(one, ShownLines() if shown is None else shown, ORIGINAL, level)


_WORDS = st.sampled_from(
    (
        *(
            "ERROR: cannot open the database",
            "Traceback (most recent call last):",
            "FAILED tests/test_a.py::test_b",
        ),
        *("ok", "", "}", "  at Object.<anonymous> (src/a.js:1:2)", "PASSED tests/test_c.py::test_d"),
        *(
            "diff --git a/src/app.py b/src/app.py",
            "@@ -1,3 +1,4 @@",
            "+added = 1",
            "-removed = 1",
            " kept = 1",
        ),
        *(
            "src/app.py:12:def compute():",
            "src/app.py-13-    return 1",
            "--",
            "commit 0a1b2c3d4e5f",
            "added 212 packages",
        ),
        *(
            '{"id": 1, "name": "a"},',
            "[",
            "]",
            "id,name,value",
            "1,a,2.5",
            "<div><p>text</p></div>",
            "<html>",
        ),
        *(
            "\x1b[32mgreen\x1b[0m",
            "10%\r20%\r30%",
            "Downloading 12 MB",
            "npm warn deprecated left-pad@1.0.0",
            "A" * 900,
        ),
        *(
            "x" * 5000,
            "drwxr-xr-x 2 a a 4096 Nov 1 10:00 src",
            "2026-11-01 10:00:00 INFO request 12 took 5 ms",
        ),
    )
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return a text of blocks: code, repeated lines, output of programs, forged marks, any characters."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 6))):
        match draw(st.integers(0, 5)):
            case 0:
                start = draw(st.integers(0, 380))
                numbered = draw(st.booleans())
                part = CODE[start : start + draw(st.integers(1, 120))]
                lines.extend(f"{start + n:6}→{line}" if numbered else line for n, line in enumerate(part))
            case 1:
                lines.extend([draw(_WORDS)] * draw(st.integers(1, 80)))
            case 2:
                lines.extend(draw(st.lists(_WORDS, max_size=40)))
            case 3:
                lines.append(draw(st.sampled_from(FORGED)))
            case 4:
                word = draw(_WORDS)
                lines.extend(f"{word} {n}" for n in range(draw(st.integers(1, 120))))
            case _:
                lines.append(draw(st.text(max_size=60)))
    return "\n".join(lines)


def outputs() -> st.SearchStrategy[ToolOutput]:
    """Return outputs of all calls, errors among them."""
    return st.builds(
        lambda text, call, is_error: ToolOutput(call[0], call[1], text, is_error),
        texts(),
        st.sampled_from(CALLS),
        st.sampled_from((False, False, True)),
    )


_PLACE = re.compile(r"(?:[^\s:][^\n:]{0,300}?[:-])?\d{1,7}[:-]|[^\s:]{1,300}:")


def readable(text: str) -> set[str]:
    """Return the lines that a reduced text may show of `text`: its lines after a terminal showed them, and
    these without a line number or without the place where a search found them."""
    lines = {line for form in (text, without_overwritten(without_escapes(text))) for line in form.split("\n")}
    lines |= {defuse(line) for line in lines}
    numbered = {re.sub(r"\A[ \t]{0,10}\d{1,7}[→\t|]", "", line) for line in lines}
    padded = {line.lstrip(" \t") for line in lines}
    places = {found[0] for line in lines for found in _PLACE.finditer(line)}
    found = {line[len(place) :] for line in lines for place in places if line.startswith(place)}
    numbers = {line[line.find(sign) + 1 :] for line in lines for sign in ":-" if sign in line}
    files = {re.sub(r"[:-]\d{1,7}[:-]\Z|:\Z", "", place) + ":" for place in places}
    return lines | numbered | padded | found | numbers | files


def levels() -> st.SearchStrategy[Level]:
    """Return the levels."""
    return st.sampled_from(LEVELS)

"""A linter for phrases that read as if they were translated: prints file, line, phrase and a better form.

`python tools/phrases.py` checks Markdown pages, docstrings and comments, the Makefile, and the strings that
people see in the editors' extensions. `make lint` runs it. Code blocks and generated parts are skipped.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

BETTER = {
    "is in, contains": "what stands; stands in a; stand in a; stands there; stand there",
    "as it is, unchanged": "as it stands; as they stand",
    "comes after, is behind": "stands behind; stand behind",
    "next to, in addition to": "beside it; beside the; beside a; beside its; beside them",
    "is next to": "stands beside; stand beside",
    "is kept by, is owned by": "is held by; are held by",
    "held out": "put aside; puts aside",
    "predict": "foretell; foretells; foretold",
    "release, free": "let go of; lets go of",
    "anyone who, a program that": "whoever",
    "if there is no": "where there is no; where there are no; where there is none",
    "if": "where nothing; where none; where nobody; where you name; where it is not; in force where",
    "about, reported": "said of; told of; tells of; is told as; are told as",
    "missing, that exist": "that there are not; that there are; what there is",
    "one ... per ...": "a line a prompt; a prompt a line; object a line; file a session; a cell a percent",
    "compactd's, the project's": "is ours; are ours; of ours; than ours; not ours; ours to; our own",
    "with the two sizes combined": "of the size of both",
    "again": "anew",
    "except": "but for",
    "nothing from you": "no word of yours",
    "skip": "passed over; pass over; passes over",
    "instead of": "in the place of",
    "afterwards": "from then on",
    "results from, happens to": "what came of; what becomes of; what became of",
    "uninstall, remove": "take it off; takes it off; the same out again",
    "fixed": "mended; the mend; a mend",
    "between, during": "made amid; amid",
}
"""What to write, and the phrases, separated by semicolons, that it replaces."""
PHRASES = {phrase: better for better, phrases in BETTER.items() for phrase in phrases.split("; ")}

GENERATED = re.compile(r"(.*/)?[a-z-]*protocol\.(md|ts|lua|el)|docs/conformance\.md|.*/client/calls\.py")
NOT_YET = ()
"""Folders whose code (not pages) was written before this linter. Remove a folder here once it is clean."""

_FOUND = re.compile(
    r"\b("
    + "|".join(re.escape(one).replace(r"\ ", r"\s+") for one in sorted(PHRASES, reverse=True))
    + r")\b",
    re.IGNORECASE,
)
_SKIPPED = re.compile(
    r"^ *```.*?^ *```|`[^`]*`|<!-- figures.*?<!-- end -->|<!-- (the \w+): .*?<!-- \1: ", re.M | re.S
)
_CODE = re.compile(r"^[^\"'\n]*$|^.*\brequire\b.*$", re.MULTILINE)


def blank(text: str) -> str:
    """Spaces in place of `text`, with the same lines."""
    return re.sub(r"[^\n]", " ", text)


def prose(path: str, text: str) -> str:
    """`text` with everything but prose blanked out, so that places stay the same."""
    if path.endswith(".md"):
        return _SKIPPED.sub(lambda match: blank(match[0]), text)
    if not path.endswith(".py"):
        return text if path == "Makefile" else _CODE.sub(lambda match: blank(match[0]), text)
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    kept = list(blank(text))
    docstrings = {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.start[0] in docstrings):
            begin = starts[token.start[0] - 1] + token.start[1]
            kept[begin : begin + len(token.string)] = token.string.replace("#", " ")
    return "".join(kept)


def found_in(path: str, text: str) -> Iterator[str]:
    """What to report about one file."""
    shown = prose(path, text)
    for match in _FOUND.finditer(shown):
        phrase = " ".join(match[0].split())
        line = shown.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: '{phrase}': write '{PHRASES[phrase.lower()]}'"


def files() -> Iterator[str]:
    """Tracked files that are checked."""
    tracked = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "Makefile", "editors/*.ts", "editors/*.lua", "editors/*.el"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    for path in tracked:
        if not GENERATED.fullmatch(path) and (path.endswith(".md") or path.split("/")[0] not in NOT_YET):
            yield path


if __name__ == "__main__":
    reports = [report for path in files() for report in found_in(path, (ROOT / path).read_text("utf-8"))]
    print("\n".join(reports))
    sys.exit(1 if reports else 0)

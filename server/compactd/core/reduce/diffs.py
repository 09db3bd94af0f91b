"""Diffs: the hunks of lock files and generated files are left out."""

from __future__ import annotations

from typing import Final

from compactd.core.reduce.page import Page
from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "generated_files"

_FILE: Final = LazyPattern(r"diff --(?:git a/(?P<git>.+?) b/|cc (?P<merge>.+))")
"""Matches the first line about a file in a diff of Git."""
_GENERATED: Final = LazyPattern(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|Cargo\.lock"
    r"|poetry\.lock|uv\.lock|Pipfile\.lock|pdm\.lock|composer\.lock|Gemfile\.lock|mix\.lock|go\.sum"
    r"|flake\.lock|Podfile\.lock|packages\.lock\.json|gradle\.lockfile|deno\.lock|\.terraform\.lock\.hcl"
    r"|[^/]*\.(?:min\.(?:js|css)|map|snap|pb\.go|pb2?\.py|g\.dart|generated\.\w+|svg|ipynb))$"
    r"|(?:^|/)(?:dist|build|node_modules|vendor|__snapshots__|\.next|target)/"
)
"""Matches the path of a file that a program writes (github-linguist, `generated.rb`, 2026-11)."""


def is_diff(text: str) -> bool:
    """Return whether a text is, or contains, a diff. O(characters)."""
    return (
        text.startswith(("diff --git ", "diff --cc "))
        or "\ndiff --git " in text
        or "\ndiff --cc " in text
        or ("\n@@ -" in text and "\n+++ " in text)
    )


def file_lines(lines: list[str]) -> list[int]:
    """Return the indexes of the lines that name a file in a diff of Git. O(lines)."""
    return [at for at, line in enumerate(lines) if _FILE.match(line) is not None]


def find_files(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Return where the lines that name a file in a diff of Git begin and end, between two positions.
    O(characters)."""
    found: list[tuple[int, int]] = []
    at = text.find("\ndiff --", start - 1, stop)
    while at >= 0:
        end = text.find("\n", at + 1, stop)
        if end < 0:
            break
        found.append((at + 1, end))
        at = text.find("\ndiff --", end, stop)
    return found


def without_signs(lines: list[str]) -> list[str]:
    """Return the lines of a diff without the sign before each. O(characters)."""
    return [line[1:].rstrip() if line.startswith((" ", "+", "-")) else line for line in lines]


def fold_generated(page: Page) -> None:
    """Leave out the hunks of files that a program writes. The line that names the file stays. O(lines)."""
    lines = page.lines
    starts = file_lines(lines)
    for number, start in enumerate(starts):
        stop = starts[number + 1] if number + 1 < len(starts) else _end(lines, start + 1)
        found = _FILE.match(lines[start])
        if found is not None and _GENERATED.search(found["git"] or found["merge"]) is not None:
            page.omit_free(start + 1, stop, RULE, "lines of a generated file left out")


def _end(lines: list[str], at: int) -> int:
    """Return where the last file of a diff ends."""
    while at < len(lines) and (
        not lines[at] or lines[at][0] in "+- @\\index" or lines[at].startswith("new ")
    ):
        at += 1
    return at

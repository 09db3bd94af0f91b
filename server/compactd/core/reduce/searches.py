"""Group what a search found: the name of a file once, then its lines with their numbers.

This is how ripgrep prints to a terminal (`--heading`). Nothing is lost.
"""

from __future__ import annotations

from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "grouped"
MIN_LINES: Final = 3
"""A file with fewer lines in a row is not worth a line of its own."""

_PLACE: Final = LazyPattern(r"(?P<file>[^\s:][^\n:]{0,300}?[\w)\]])(?P<rest>[:-](?P<number>\d{1,7})[:-])")
"""Matches the file and the number of a line that was found, or of one next to it (`grep -n -C`)."""
_FILE_LINE: Final = LazyPattern(r"\s{0,8}(?P<file>[\w.@~+/-]{1,300}[\w)\]]):?\s*")
"""Matches a line that has only the path of a file."""
_FILE_ONLY: Final = LazyPattern(r"(?P<file>[\w.@~+-]*/[^\s:]{1,300}|[\w@~+-]{1,100}\.\w{1,12}):(?![:/])")
"""Matches the file of a line that was found without its number (`grep -r`)."""


def group_found(lines: list[str]) -> list[str]:
    """Return the lines of a search with each file named once per run of lines. O(characters)."""
    grouped: list[str] = []
    at = 0
    while at < len(lines):
        file, rest = _split(lines[at], "")
        if not file:
            grouped.append(lines[at])
            at += 1
            continue
        run = [rest]
        while at + len(run) < len(lines):
            next_file, rest = _split(lines[at + len(run)], file)
            if not (next_file and (next_file == file or _is_same(next_file, file))):
                break
            file = max(file, next_file, key=len)
            run.append(rest)
        if len(run) >= MIN_LINES:
            grouped.append(f"{file}:")
            grouped.extend(run)
        else:
            grouped.extend(lines[at : at + len(run)])
        at += len(run)
    return grouped


def first_of_files(lines: list[str]) -> list[int]:
    """Return the indexes of the lines that name a file for the first time, of grouped lines or of others, and
    of those that are only a path. O(characters)."""
    found: list[int] = []
    seen: set[str] = set()
    for at, line in enumerate(lines):
        only = _FILE_LINE.fullmatch(line)
        file = only["file"] if only is not None else _split(line, "")[0]
        if file and file not in seen:
            seen.add(file)
            found.append(at)
    return found


def path_lines(lines: list[str]) -> list[int]:
    """Return the indexes of the lines that have only the path of a file. O(characters)."""
    return [at for at, line in enumerate(lines) if "/" in line and _FILE_LINE.fullmatch(line) is not None]


def _split(line: str, file: str) -> tuple[str, str]:
    """Return the file that a line begins with and what follows it; two empty texts if it names none.
    `file` is that of the line before."""
    if file and line.startswith(file) and line[len(file) : len(file) + 1] in (":", "-"):
        found = _NUMBERS.match(line, len(file))
        if found is not None:
            return file, line[len(file) + 1 :]
    found = _PLACE.match(line)
    if found is not None:
        return found["file"], line[found.end("file") + 1 :]
    found = _FILE_ONLY.match(line)
    return (found["file"], line[found.end() :]) if found is not None else ("", "")


_NUMBERS: Final = LazyPattern(r"[:-]\d{1,7}[:-]")


def _is_same(one: str, other: str) -> bool:
    """Return whether two paths name one file: one of them is the end of the other."""
    short, long = sorted((one, other), key=len)
    return long.endswith(f"/{short}")

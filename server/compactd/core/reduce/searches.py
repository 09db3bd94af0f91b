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
_FOUND: Final = LazyPattern(r"\d{1,7}:")
"""Matches the number of a line that was found, under the name of its file. The lines around it have `-`."""
_FILE_ONLY: Final = LazyPattern(r"(?P<file>[\w.@~+-]*/[^\s:]{1,300}|[\w@~+-]{1,100}\.\w{1,12}):(?![:/])")
"""Matches the file of a line that was found without its number (`grep -r`)."""


def group_found(lines: list[str]) -> tuple[list[str], int]:
    """Return the lines of a search with each file named once per run of lines, and how many lines no longer
    name their file. O(characters)."""
    grouped: list[str] = []
    count = 0
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
            count += len(run)
        else:
            grouped.extend(lines[at : at + len(run)])
        at += len(run)
    return grouped, count


def first_of_files(lines: list[str], files: int, found_per_file: int) -> list[int]:
    """Return the indexes of the lines that say where something was found: for each of the first `files` files
    the line that names it, and the first lines that were found in it. O(characters)."""
    first: list[int] = []
    counts: dict[str, int] = {}
    file = ""
    for at, line in enumerate(lines):
        heading = _FILE_LINE.fullmatch(line)
        if heading is not None:
            file = heading["file"]
            if file not in counts and len(counts) < files:
                counts[file] = 0
                first.append(at)
            continue
        is_found = _FOUND.match(line) is not None
        if not is_found:
            named, rest = _split(line, "")
            if not named or rest[len(rest.lstrip("0123456789")) :].startswith("-"):
                continue
            file, is_found = named, True
        if counts.get(file, 0 if len(counts) < files else found_per_file) < found_per_file:
            counts[file] = counts.get(file, 0) + 1
            first.append(at)
    return first


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

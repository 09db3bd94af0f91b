"""Tell what an edit did, at a glance: the lines that tell most of what it added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.calls import shorten
from compactd.core.work.edits import MAX_LINE_CHARS, FileEdit

MAX_SHOWN_CHARS: Final = 120
"""A longer line is cut."""
MAX_COMPARED: Final = 200
"""With how many removed lines a line is compared."""
ADDED: Final = 2
"""How many added lines are shown."""
MAX_GISTS: Final = 3
"""How many lines say what the edits of a file did."""
SAME_SHARE: Final = 0.6
"""A line that keeps this share of the characters of a removed line is that line, changed."""
WHOLE_CHARS: Final = 72
"""A changed line with no more characters is shown as a whole."""
CONTEXT_CHARS: Final = 24
"""How much of a longer line is shown before its changed part."""

OTHER: Final = 3
"""The rank of code that is of no special kind."""
MARKUP: Final = 4
"""The rank of a line that begins with a tag."""
DULL: Final = 6
"""The rank of comments, imports and lines that are the same in most functions."""

PROSE: Final = (".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc")
"""The endings of files in which a line with `#` is no comment."""
_MODIFIERS: Final = (
    r"\s*(?:export |pub(?:\([^)]*\))? |async |static |public |private |protected |default |final |abstract )*"
)
_DEFINES: Final = LazyPattern(
    _MODIFIERS
    + r"(?:def|defp|defmacro|defmodule|func|fn|function|class|interface|type|struct|enum|trait|impl|module"
    r"|fun)\b"
    r"(?: ?\([^()]{0,80}\))?\*? ?(?P<name>[A-Za-z_]\w*)"
    r"|\s*(?:(?:public|private|protected|static|async|get|set|override) )*"
    r"(?!(?:if|for|while|switch|catch|return|else|with|function|match)\b)(?P<method>[A-Za-z_]\w*)"
    r"\([^(){}]{0,200}\)\s?(?::[^(){}=]{0,80})?\{\Z"
)
"""Matches a line that defines a function or a type."""
_ENDS: Final = LazyPattern(r"\s*(?:return|raise|throw|panic|yield|rescue|catch|except|reject)\b")
_ERROR: Final = LazyPattern(r"(?<!\bt\.)\b(?:Error|Errorf|Exception)\b|:error\b|\b[Ff]all(?:s|ing)?.?back")
"""These match a line that returns, raises or builds an error, or falls back to something."""
_CONDITION: Final = LazyPattern(
    r"\s*[})]?\s*(?:if|elif|else|unless|switch|match|case|when|while|cond|default)\b|.* (?:if|when|unless) "
)
_TRIVIAL: Final = LazyPattern(
    r"\s*(?:return|raise|throw|yield|if \w{0,20}[eE]rr(?:or)? [!=]= (?:nil|null)|[})]?\s*else|default|break"
    r"|continue)?[\s({:,;]*(?:nil|null|None|err|error|true|false|True|False|undefined|this|self|do)?"
    r"[\s)}\]{:,;]*(?:, err)?\Z"
)
"""Matches a line that is the same in most functions."""
MAX_TRIVIAL_CHARS: Final = 48
_TELLING: Final = LazyPattern(r"[A-Za-z]\w{2,}.*[A-Za-z]\w{2,}")
"""Matches a line with at least two words."""
_COMMENT: Final = LazyPattern(r"\s*(?://|#(?!\w)|/?\*|--|<!--|\"\"\"|'''|@moduledoc|@doc\b|@spec\b)")
_IMPORT: Final = LazyPattern(
    r"\s*(?:import\b|from \S+ import\b|use \w|using \w|alias [A-Z]|#include|require\b|\"[\w./-]+\",?$"
    r"|export (?:\*|\{).* from |[\w, {}]+\} from )"
)
_WORD: Final = LazyPattern(r"\w")


class AddedLine(Struct, frozen=True):
    """A line that an edit added."""

    line: str
    """At most `MAX_LINE_CHARS` characters of it."""
    shown: str
    """The line from its changed part on, cut if it is long."""


class EditGist(Struct, frozen=True):
    """What an edit did to a file, at a glance."""

    added: tuple[AddedLine, ...] = ()
    """The lines that tell most of what was added, in order."""
    removed: str = ""
    """The line that tells most of what was removed, if nothing was added."""
    undoes: EntryId | None = None
    """The message of the earlier edit that this one took back as a whole; None if it did not."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The lines, each in backticks; empty if the edit says nothing."""
        if self.undoes is not None:
            return (f"took back the edit {self.undoes}",)
        if self.added:
            return tuple(f"`{one.shown}`" for one in self.added)
        return (f"removed `{self.removed}`",) if self.removed else ()

    @property
    def best(self) -> str:
        """The part that tells most; empty if the edit says nothing."""
        parts = self.parts
        best = min(range(len(self.added)), key=lambda n: rank_of(self.added[n].line), default=0)
        return parts[best] if parts else ""

    @property
    def is_dull(self) -> bool:
        """Whether only comments, imports and the like were added."""
        says_other = self.removed or self.undoes is not None
        return not says_other and all(rank_of(one.line) >= DULL for one in self.added)

    @property
    def text(self) -> str:
        """All parts."""
        return " … ".join(self.parts)


def gist_of(edit: FileEdit) -> EditGist:
    """Return what an edit did. O(length)."""
    is_prose = edit.path.lower().endswith(PROSE)
    shown = most_telling(edit.added, ADDED, is_prose=is_prose) or next(
        ((line,) for line in edit.added if _WORD.search(line)), ()
    )
    if shown:
        cut = (line[:MAX_LINE_CHARS] for line in shown)
        return EditGist(tuple(AddedLine(line, _changed_part(line, edit.removed)) for line in cut))
    removed = most_telling(edit.removed, 1, is_prose=is_prose)
    return EditGist(removed=shorten(next(iter(removed), ""), MAX_SHOWN_CHARS))


def still_true(gists: Sequence[EditGist], newest: FileEdit) -> list[EditGist]:
    """Return what earlier edits did, without the lines that the newest edit removes or repeats."""
    if newest.is_whole:
        return []
    gone = frozenset(line[:MAX_LINE_CHARS] for line in (*newest.removed, *newest.added))
    some = [
        EditGist(tuple(line for line in one.added if line.line not in gone), one.removed, one.undoes)
        for one in gists
    ]
    return [one for one in some if one.added or one.undoes or (one.removed and one.removed not in gone)]


def shown_of(gists: Sequence[EditGist]) -> tuple[str, ...]:
    """Return the lines that are shown of what the edits of a file did."""
    if not gists:
        return ()
    *earlier, last = gists
    before = [one.best for one in earlier]
    room = MAX_GISTS - len(before)
    return (*before, *(last.parts if room >= len(last.parts) else (last.best,)))


def most_telling(lines: Sequence[str], most: int, *, is_prose: bool = False) -> tuple[str, ...]:
    """Return the lines that tell most, in their order: first one of each rank, then others. Dull lines are
    returned only if there are no others."""
    # A line with a backtick cannot be quoted between backticks.
    telling = [
        n for n, line in enumerate(lines) if "`" not in line and _TELLING.search(line[:MAX_LINE_CHARS])
    ]
    ranks = {n: rank_of(lines[n], is_prose=is_prose) + (len(lines[n]) > MAX_SHOWN_CHARS) for n in telling}
    if any(ranks[n] < DULL for n in telling):
        telling = [n for n in telling if ranks[n] < DULL]
    telling.sort(key=lambda n: (ranks[n], -(min(len(lines[n]), 60) // 20), n))
    best: list[int] = []
    for is_other in (True, False):
        for n in telling:
            is_new = n not in best and not any(lines[n] == lines[other] for other in best)
            is_new = is_new and (
                not is_other or (ranks[n] < OTHER and ranks[n] not in {ranks[m] for m in best})
            )
            if is_new and len(best) < most:
                best.append(n)
    return tuple(lines[n] for n in sorted(best))


def rank_of(line: str, *, is_prose: bool = False) -> int:
    """Return 0 for a line that defines a name, 1 for one that ends a function or builds an error, 2 for a
    condition, 3 for other code, 4 for markup, and 6 for comments, imports and lines that are the same in most
    functions."""
    line = line[:MAX_LINE_CHARS]
    if is_prose:
        return OTHER
    if _COMMENT.match(line) or _IMPORT.match(line):
        return DULL
    if len(line) <= MAX_TRIVIAL_CHARS and _TRIVIAL.match(line):
        return DULL
    if _DEFINES.match(line):
        return 0
    if _ENDS.match(line) or _ERROR.search(line):
        return 1
    if _CONDITION.match(line):
        return 2
    return MARKUP if line.lstrip().startswith("<") else OTHER


def defined_name(line: str) -> str:
    """Return the name of the function or type that a line defines; empty if it defines none."""
    found = _DEFINES.match(line[:MAX_LINE_CHARS])
    return "" if found is None else found["name"] or found["method"]


def _changed_part(line: str, removed: Sequence[str]) -> str:
    """Return a line that was added; only from its changed part on, if it is a removed line that was
    changed."""
    for whole in removed[:MAX_COMPARED]:
        old = whole[:MAX_LINE_CHARS]
        start = _same_chars(old, line)
        end = _same_chars(old[start:][::-1], line[start:][::-1])
        if start + end >= SAME_SHARE * max(len(old), 1):
            at = line.rfind(" ", 0, max(start - CONTEXT_CHARS, 0)) + 1
            line = f"…{line[at:]}" if at and len(line) > WHOLE_CHARS else line
            break
    return shorten(line, MAX_SHOWN_CHARS)


def _same_chars(one: str, other: str) -> int:
    """Return with how many same characters two texts begin."""
    most = min(len(one), len(other))
    return next((n for n in range(most) if one[n] != other[n]), most)

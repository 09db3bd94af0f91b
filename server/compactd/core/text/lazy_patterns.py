"""Regular expressions that are compiled when they are first used.

compactd has several hundred patterns, and most runs use a few of them. To compile all of them takes 0.15 to
0.2 s of processor time (2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from sys import maxsize
from typing import Final

_METHODS: Final = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub")


class LazyPattern:
    """A regular expression for texts, with the methods of `re.Pattern`. The first call of a method compiles
    it; an invalid pattern raises `re.error` only then. Safe to use from any thread.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern: Final = pattern
        self.flags: Final = flags

    def _compiled(self) -> re.Pattern[str]:
        compiled = re.compile(self.pattern, self.flags)
        # From now on, the methods of the compiled pattern are called without a detour.
        vars(self).update({name: getattr(compiled, name) for name in _METHODS})
        return compiled

    def search(self, string: str, pos: int = 0, endpos: int = maxsize) -> re.Match[str] | None:
        """Like `re.Pattern.search`."""
        return self._compiled().search(string, pos, endpos)

    def match(self, string: str, pos: int = 0, endpos: int = maxsize) -> re.Match[str] | None:
        """Like `re.Pattern.match`."""
        return self._compiled().match(string, pos, endpos)

    def fullmatch(self, string: str, pos: int = 0, endpos: int = maxsize) -> re.Match[str] | None:
        """Like `re.Pattern.fullmatch`."""
        return self._compiled().fullmatch(string, pos, endpos)

    def split(self, string: str, maxsplit: int = 0) -> list[str]:
        """Like `re.Pattern.split`, but the pattern must have no optional groups."""
        return self._compiled().split(string, maxsplit)

    def findall(self, string: str, pos: int = 0, endpos: int = maxsize) -> list[str]:
        """Like `re.Pattern.findall`, but the pattern must have at most one group."""
        return self._compiled().findall(string, pos, endpos)

    def finditer(self, string: str, pos: int = 0, endpos: int = maxsize) -> Iterator[re.Match[str]]:
        """Like `re.Pattern.finditer`."""
        return self._compiled().finditer(string, pos, endpos)

    def sub(self, repl: str | Callable[[re.Match[str]], str], string: str, count: int = 0) -> str:
        """Like `re.Pattern.sub`."""
        return self._compiled().sub(repl, string, count)

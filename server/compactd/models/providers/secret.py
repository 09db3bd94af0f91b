"""A key that cannot be printed by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re


class Secret:
    """A key. Its text comes out only of `reveal`: not of `repr`, `str`, `format`, a log or a traceback."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """The key itself, for a request's header and nothing else."""
        return self.__text

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, ("",)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.reveal() == self.__text

    def __hash__(self) -> int:
        return hash(self.__text)


BLOT = "[key]"

_SHORTEST = 6
"""Characters: a shorter "key" (`none`, `x`) is a placeholder, and would be found everywhere."""


def blotted(text: str, secrets: tuple[Secret, ...]) -> str:
    """`text` without the keys: some servers quote them back ("Incorrect API key provided: sk-…"), as they are
    or as JSON and URLs may write them (`\\/`, `\\u002d`, `%2D`)."""
    for secret in secrets:
        key = secret.reveal()
        if len(key) >= _SHORTEST:
            text = text.replace(key, BLOT)
            if "\\" in text or "%" in text:
                text = _written(key).sub(BLOT, text)
    return text


def _written(key: str) -> re.Pattern[str]:
    """Every way to write it that reads as it: each character itself, escaped, or by its number."""
    import re

    # JSON in JSON doubles the backslashes; the bound keeps a megabyte of them cheap.
    signs = (rf"\\{{0,8}}(?:{re.escape(one)}|(?i:u00{ord(one):02x}|%{ord(one):02x}))" for one in key)
    return re.compile("".join(signs))

"""API keys that cannot be printed by accident, and the removal of keys from texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re


class Secret:
    """A key. Only `reveal` returns its text. `repr`, `str`, `format`, logs and tracebacks do not show it."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """Return the key's text. Use it only for the header of a request."""
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
"""The text that replaces a key."""

_MIN_CHARS = 6
"""The length, in characters, from which a key is removed from texts. Shorter keys (`none`, `x`) are only
placeholders, and such words occur everywhere."""


def blot_keys(text: str, secrets: tuple[Secret, ...]) -> str:
    r"""Return `text` with `BLOT` in place of the keys, which some servers quote ("Incorrect API key provided:
    sk-…").

    A key is also found if its characters are escaped as in JSON or URLs (`\/`, `\u002d`, `%2D`).
    """
    for secret in secrets:
        key = secret.reveal()
        if len(key) >= _MIN_CHARS:
            text = text.replace(key, BLOT)
            if "\\" in text or "%" in text:
                text = _spellings(key).sub(BLOT, text)
    return text


def _spellings(key: str) -> re.Pattern[str]:
    """Return a pattern for every spelling of the key. Each character may be written as itself, with an
    escape, or as a number."""
    import re

    # JSON within JSON doubles the backslashes. The bound keeps a megabyte of them cheap.
    signs = (rf"\\{{0,8}}(?:{re.escape(one)}|(?i:u00{ord(one):02x}|%{ord(one):02x}))" for one in key)
    return re.compile("".join(signs))

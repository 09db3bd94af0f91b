"""What a terminal would show: escape sequences removed, progress that overwrites itself shown once."""

from __future__ import annotations

from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "terminal"

_ESCAPES: Final = LazyPattern(
    # CSI (colours, cursor), OSC (titles, links), and two-character sequences: ECMA-48, section 5.
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|[()*+][0-9A-Za-z]|[ -~])"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)
_BACKSPACES: Final = LazyPattern(r"[^\x08\n]\x08")
"""Matches a character that a backspace deletes, as `man` and spinners print them."""


def without_escapes(text: str) -> str:
    """Return `text` without the escape sequences of terminals. O(characters)."""
    if "\x1b" not in text and "\x9b" not in text:
        return text
    return _ESCAPES.sub("", text)


def without_overwritten(text: str) -> str:
    """Return `text` without what a terminal overwrote: of the parts of a line that carriage returns part,
    the last one that is not blank. A carriage return at the end of a line stays. O(characters).
    """
    if "\x08" in text:
        text = _BACKSPACES.sub("", text)
    if "\r" not in text or text.count("\r") == text.count("\r\n"):
        return text
    return "\n".join(_last_part(line) if "\r" in line else line for line in text.split("\n"))


def _last_part(line: str) -> str:
    end = "\r" if line.endswith("\r") else ""
    parts = [part for part in line.split("\r") if part and not part.isspace()]
    return (parts[-1] if parts else "") + end

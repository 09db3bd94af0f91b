"""Parse numbers in options: token counts such as `16k`, `200,000` and `1.5M`, and plain counts."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(\d[\d_,]*)(\.\d+)?\s*([kKmM]?)")
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}


def tokens(text: str) -> int:
    """Parse a number of tokens, such as `16k`. Raise `ValueError` if `text` is not a number of at least 1."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a number of tokens; write it as 16000, 16k or 1M")
    whole = float(re.sub(r"[_,]", "", found[1]) + (found[2] or "")) * _FACTORS[found[3].lower()]
    if not 1 <= whole < 2**53:
        raise ValueError(f"{text!r} is out of range; it must be at least 1")
    return round(whole)


def messages(text: str) -> int:
    """Parse a number of messages. Raise `ValueError` if `text` is not a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is not a number of messages; it must be a whole number of at least 1")
    return int(text)


def count(text: str) -> int:
    """Parse a whole number. Raise `ValueError` if `text` is not a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is not a whole number of at least 1")
    return int(text)

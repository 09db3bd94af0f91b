"""Numbers of tokens as people write them: `16k`, `200,000`, `1.5M`."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(\d[\d_,]*)(\.\d+)?\s*([kKmM]?)")
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}


def tokens(text: str) -> int:
    """The number, above 0; raises `ValueError`."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no number of tokens: 16000, 16k and 1M are")
    whole = float(re.sub(r"[_,]", "", found[1]) + (found[2] or "")) * _FACTORS[found[3].lower()]
    if not 1 <= whole < 2**53:
        raise ValueError(f"{text!r} is out of range: it must be above 0")
    return round(whole)


def messages(text: str) -> int:
    """A number of messages, above 0; raises `ValueError`."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is no number of messages above 0")
    return int(text)


def count(text: str) -> int:
    """A number above 0; raises `ValueError`."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is no number above 0")
    return int(text)

"""The days of `--since` and `--until`: a date, `today`, `yesterday`, or a time span such as `7d`."""

from __future__ import annotations

import re
from datetime import date, timedelta

_SPAN = re.compile(r"([0-9]{1,4})([dwm])")
_DAYS = {"d": 1, "w": 7, "m": 30}
HINT = "write a date (2026-11-27), today, yesterday, or a time span (7d, 4w, 3m)"


def check(text: str) -> str:
    """Return `text` if `day_of` can read it. Raise `ValueError` with a message for the user if not."""
    day_of(text, date(2026, 1, 1))
    return text


def day_of(text: str, today: date) -> str:
    """Return the day that `text` means, as `2026-11-27`. `7d` is the first of 7 days, of which `today` is the
    last; `w` is 7 days, `m` is 30. Raise `ValueError` with a message for the user if `text` means no day.
    """
    word = text.strip().lower()
    span = _SPAN.fullmatch(word)
    try:
        if word in ("today", "yesterday"):
            day = today - timedelta(days=word == "yesterday")
        elif span is not None:
            day = today - timedelta(days=max(1, int(span[1]) * _DAYS[span[2]]) - 1)
        elif re.fullmatch(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}", word):
            day = date.fromisoformat(word)
        else:
            raise ValueError(text)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is no day: {HINT}") from error
    return day.isoformat()

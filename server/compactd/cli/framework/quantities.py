"""Ages and file sizes, in words for a person."""

from __future__ import annotations

import time

MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86_400
OLD_S = 60 * DAY_S
"""From this age on, the date is shown instead."""


def age_text(at: float, now: float) -> str:
    """Return how long ago the time `at` was, such as `5 min ago`, or its date in the local time zone if it is
    long ago. Both are in seconds since 1970 (UTC). A time in the future counts as now.
    """
    seconds = now - at
    if seconds < MINUTE_S:
        return "just now"
    if seconds < HOUR_S:
        return f"{int(seconds // MINUTE_S)} min ago"
    if seconds < DAY_S:
        return f"{int(seconds // HOUR_S)} h ago"
    if seconds < OLD_S:
        days = int(seconds // DAY_S)
        return "1 day ago" if days == 1 else f"{days} days ago"
    return time.strftime("%Y-%m-%d", time.localtime(at))


def size_text(size_bytes: int) -> str:
    """Return a size of at most four digits, such as `14 kB` or `1.2 GB`. 1 kB is 1,000 bytes."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    size, unit = size_bytes / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if round(size) < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.1f} {unit}" if unit != "kB" and size < 9.95 else f"{size:.0f} {unit}"

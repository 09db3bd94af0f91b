"""How a list of stored sessions is shown: which sessions, their age, and one line for each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from compactd.cli.framework.page import one_line, plural
from compactd.protocol.wire import SessionInfo

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
MAX_AGE_S = 14 * DAY_S
"""The largest age that is shown as a number of days. Older times are shown as a date."""


def is_empty(session: SessionInfo) -> bool:
    """Return whether a session was started but never used: it has no messages, no compactions, no title."""
    return not session.message_count and not session.compactions and session.title is None


def shown_sessions(
    sessions: Sequence[SessionInfo], *, shows_empty: bool = False, here: str | None = None
) -> Sequence[SessionInfo]:
    """Return the sessions to offer, newest first: without the session `here`, and without empty sessions
    unless `shows_empty`. O(sessions · log sessions).
    """
    some = [one for one in sessions if one.session_id != here and (shows_empty or not is_empty(one))]
    return sorted(some, key=lambda one: one.updated_at, reverse=True)


def age_text(at: float, now: float) -> str:
    """Return how long before `now` the time `at` was, such as `2 h ago`. Both are in Unix seconds. Ages of
    more than 14 days are shown as a date.
    """
    age_s = now - at
    if age_s < MINUTE_S:
        return "just now"
    if age_s < HOUR_S:
        return f"{int(age_s // MINUTE_S)} min ago"
    if age_s < DAY_S:
        return f"{int(age_s // HOUR_S)} h ago"
    if age_s < MAX_AGE_S:
        return f"{int(age_s // DAY_S)} d ago"
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d")


def session_line(session: SessionInfo, now: float, *, with_id: bool = False) -> str:
    """Return one line about a session: age, title, messages, model, and `open` if it is open somewhere."""
    parts = [age_text(session.updated_at, now), one_line(session.title or session.session_id)]
    parts.append(plural(session.message_count, "message"))
    parts += [one_line(session.model)] if session.model else []
    parts += ["open"] if session.open else []
    parts += [one_line(session.session_id)] if with_id and session.title else []
    return " · ".join(parts)

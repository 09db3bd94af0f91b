"""How a list of stored sessions is shown: which sessions, their age, and one line for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compactd.cli.framework.page import one_line, plural
from compactd.cli.framework.quantities import age_text
from compactd.protocol.wire import SessionInfo


def is_empty(session: SessionInfo) -> bool:
    """Return whether a session was started but never used: it has no messages, no compactions, no title."""
    return not session.message_count and not session.compactions and session.title is None


def content_texts(environ: Mapping[str, str], sessions: Sequence[SessionInfo]) -> dict[str, str]:
    """Return what each session contains, by id: `3 messages`, or `42 outputs` if it keeps only outputs of
    tools. O(sessions + size of the journals with only outputs)."""
    from compactd.integrations.outputs.references import PREFIX

    texts = {one.session_id: plural(one.message_count, "message") for one in sessions}
    only_outputs = [one for one in texts if one.startswith(PREFIX)]
    if only_outputs:
        from compactd.cli.usage.reductions import count_outputs

        found = count_outputs(environ, only_outputs)
        texts |= {name: one.outputs_text for name, one in found.items() if not one.is_empty}
    return texts


def shown_sessions(
    sessions: Sequence[SessionInfo], *, shows_empty: bool = False, here: str | None = None
) -> Sequence[SessionInfo]:
    """Return the sessions to offer, newest first: without the session `here`, and without empty sessions
    unless `shows_empty`. O(sessions · log sessions).
    """
    some = [one for one in sessions if one.session_id != here and (shows_empty or not is_empty(one))]
    return sorted(some, key=lambda one: one.updated_at, reverse=True)


def session_line(session: SessionInfo, now: float, *, with_id: bool = False) -> str:
    """Return one line about a session: age, title, messages, model, and `open` if it is open somewhere."""
    parts = [age_text(session.updated_at, now), one_line(session.title or session.session_id)]
    parts.append(plural(session.message_count, "message"))
    parts += [one_line(session.model)] if session.model else []
    parts += ["open"] if session.open else []
    parts += [one_line(session.session_id)] if with_id and session.title else []
    return " · ".join(parts)

"""The rows of `session/list`: title, model, size and counts of each session, open or stored."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec import Struct

from compactd.core.history.state import SessionState, replay
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import CompactdError
from compactd.session.follower import decode_entries
from compactd.storage.protocols import Store


class ListedSession(Struct, frozen=True, kw_only=True):
    """What `session/list` shows about a session's content."""

    title: str | None
    model: str | None
    message_count: int
    compactions: int


def listed_of(state: SessionState) -> ListedSession:
    """Return what `session/list` shows about a session that is open in this process. O(compactions)."""
    return ListedSession(
        title=state.shown_title,
        model=state.model.model,
        message_count=len(state.items),
        compactions=len(state.compactions()),
    )


def read_listing(store: Store, session_id: str) -> ListedSession:
    """Return what `session/list` shows about a session that is not open in this process.

    The session's info file has these values. If it is missing or outdated, they are computed from the whole
    journal, which is O(size of the journal). A damaged journal gives no title, no model and zero counts;
    `session/start` reports the damage.
    """
    info = store.load_info(session_id)
    if info is not None:
        # An info file of another version is ignored: its content can be derived from the journal.
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(info, type=ListedSession)
    try:
        return listed_of(replay(decode_entries(store.salvage(session_id)), decode_message))
    except (CompactdError, LookupError, ValueError, TypeError, RecursionError):
        # The list still shows it; session/start says what is wrong.
        return ListedSession(title=None, model=None, message_count=0, compactions=0)

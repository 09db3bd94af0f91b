"""What a list shows of each session, open or stored."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec import Struct

from compactd.core.history.state import Fold, fold
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import CompactdError
from compactd.session.follower import decode_entries
from compactd.storage.protocols import Store


class Listed(Struct, frozen=True, kw_only=True):
    """What a list shows of a session beside its file's own facts."""

    title: str | None
    model: str | None
    message_count: int
    compactions: int


class Row(Struct, frozen=True, kw_only=True):
    """One session of the list."""

    session_id: str
    listed: Listed
    size_bytes: int
    updated_at: float
    is_open: bool
    working_dir: str | None = None


def listed_of(state: Fold) -> Listed:
    """Of a session that is open here. O(compactions)."""
    return Listed(
        title=state.shown_title,
        model=state.model.model,
        message_count=len(state.items),
        compactions=len(state.compactions()),
    )


def read_listed(store: Store, session_id: str) -> Listed:
    """Of a session that is not open here: kept beside it, or read from it again, O(its journal)."""
    info = store.load_info(session_id)
    if info is not None:
        # Of another version: derived, so it is made anew.
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(info, type=Listed)
    try:
        return listed_of(fold(decode_entries(store.salvage(session_id)), decode_message))
    except (CompactdError, LookupError, ValueError, TypeError, RecursionError):
        # It stands in the list all the same; session/start says what is wrong with it.
        return Listed(title=None, model=None, message_count=0, compactions=0)

"""An LRU cache of decoded messages: the messages of recently used sessions stay decoded, all others become
bytes again.

A decoded message takes up to four times the memory of its bytes, because one character outside Latin-1
makes Python store the whole text with two or four bytes per character.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from compactd.core.history.lazy_message import LazyMessage
from compactd.formats.files.journal_messages import decoder_of
from compactd.protocol.methods import Method
from compactd.session.session import Session

MAX_DECODED_TOKENS = 600_000
"""The most tokens that stay decoded in all views together: about three large sessions."""

PIECE = 400
"""The number of messages that are processed before the event loop gets a turn. This takes less than a
millisecond."""


class DecodedMessageCache:
    """The LRU cache of the decoded messages in the views of all sessions. It turns messages back into bytes,
    those of the least recently used session first.
    """

    def __init__(self, sessions: Mapping[str, Session], most_tokens: int = MAX_DECODED_TOKENS) -> None:
        self._sessions = sessions
        self._most = most_tokens
        self._views: dict[str, _DecodedRange] = {}
        """By session id, how much of the session's view is decoded; least recently used first."""
        self._warm = 0
        """The tokens that may be decoded in all views together: the sum of `warm` over `_views`."""
        self._task: asyncio.Task[None] | None = None

    def note_request(self, method: Method, session_id: str) -> None:
        """Note a request: its session becomes the most recently used one. Call this before the request is
        handled. O(1).
        """
        # Also update the previous request's session: the messages that it appended are counted only now.
        for last in (next(reversed(self._views), session_id), session_id):
            seen, session = self._views.pop(last, None), self._sessions.get(last)
            self._warm -= 0 if seen is None else seen.warm
            if session is None or session.is_closed or (last == session_id and method.ends):
                continue
            if seen is None or (last == session_id and method.reads_view):
                seen = _DecodedRange()
            seen.look(session)
            self._warm += seen.warm
            self._views[last] = seen
        if self._warm > self._most and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(self._run())

    async def wait_idle(self) -> None:
        """Wait until the running work, which turns messages into bytes, is done."""
        if self._task is not None:
            await self._task

    async def stop(self) -> None:
        """Cancel the background task that turns decoded messages back into bytes, and wait until it has
        ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        """Turn messages into bytes, beginning with the least recently used session, until the decoded ones
        take at most half of the limit.
        """
        for session_id in tuple(self._views):
            if 2 * self._warm <= self._most:
                return
            while (seen := self._views.get(session_id)) is not None:
                session, before = self._sessions.get(session_id), seen.warm
                if session is not None and not session.reducing.locked():
                    # Its size grows with that of the decoded messages.
                    session.drop_shown_view()
                if session is None or session.is_closed:
                    del self._views[session_id]
                    self._warm -= before
                    break
                more = seen.drop_oldest(session, before + self._most // 2 - self._warm)
                self._warm += seen.warm - before
                await asyncio.sleep(0)
                if not more:
                    break


class _DecodedRange:
    """How much of one session's view may be decoded: all messages except some at the view's beginning, which
    have become bytes again.
    """

    def __init__(self) -> None:
        self.warm = 0
        """The tokens of the view's messages that may be decoded."""
        self._epoch = 0
        self._cold = 0
        """How many messages at the view's beginning are bytes. This number is valid only in the epoch
        `_epoch`."""
        self._cold_tokens = 0

    def look(self, session: Session) -> None:
        """Compute `warm` again, because messages may have been appended or the view replaced. O(1)."""
        state = session.state
        if state.epoch != self._epoch or self._cold > len(state.items):
            self._epoch, self._cold, self._cold_tokens = state.epoch, 0, 0
        self.warm = max(0, state.items_tokens - self._cold_tokens)

    def drop_oldest(self, session: Session, most: int) -> bool:
        """Turn up to `PIECE` messages into bytes, oldest first. Return false if nothing is left to do: at
        most `most` tokens are decoded, or the view has no more messages.
        """
        self.look(session)
        state, decode = session.state, decoder_of(session.entries)
        items = state.items
        for at in range(self._cold, min(len(items), self._cold + PIECE)):
            if self.warm <= most:
                return False
            item = items[at]
            if item.is_decoded and item.source is not None and state.originals.get(item.entry_id) is item:
                state.replace_item(at, msgspec.structs.replace(item, body=LazyMessage(item.source, decode)))
            self._cold = at + 1
            self._cold_tokens += item.tokens
            self.warm = max(0, self.warm - item.tokens)
        return self._cold < len(items) and self.warm > most

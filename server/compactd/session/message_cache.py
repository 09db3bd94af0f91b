"""Messages that were asked for lately stay decoded, so many of all sessions together; others are bytes again.

A message takes its bytes and, decoded, once to four times as much again: a text with one sign outside the
common ones takes four bytes for each of its characters. Two hundred sessions of 180 KB took 173 MB beside
their journals' 36 (measured 2026-11).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from compactd.core.history.lazy_message import OnDemand
from compactd.formats.files.journal import decoder_of
from compactd.session.session import Session

MOST_TOKENS = 600_000
"""Decoded of all views together, before those asked for longest ago are let go: three large ones."""

PIECE = 400
"""Messages looked at between two turns of the loop: less than a millisecond."""

LOOKS = frozenset(("session/context", "agent/prompt", "session/expand", "session/export"))
"""The methods that decode what a view shows."""
ENDS = frozenset(("session/close", "session/delete"))


class Cooler:
    """Lets go of decoded messages in the views of this process."""

    def __init__(self, sessions: Mapping[str, Session], most_tokens: int = MOST_TOKENS) -> None:
        self._sessions = sessions
        self._most = most_tokens
        self._views: dict[str, _Seen] = {}
        """By session, the one that was asked about last behind the others."""
        self._warm = 0
        """Tokens of what may be decoded, all of `_views` together."""
        self._task: asyncio.Task[None] | None = None

    def asked(self, method: str, session_id: str) -> None:
        """Told of every request before it is done. O(1)."""
        # What the last request appended is known by now.
        for last in (next(reversed(self._views), session_id), session_id):
            seen, session = self._views.pop(last, None), self._sessions.get(last)
            self._warm -= 0 if seen is None else seen.warm
            if session is None or session.is_closed or (last == session_id and method in ENDS):
                continue
            if seen is None or (last == session_id and method in LOOKS):
                seen = _Seen()
            seen.look(session)
            self._warm += seen.warm
            self._views[last] = seen
        if self._warm > self._most and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(self._run())

    async def rested(self) -> None:
        """Returns when no more is decoded than may be."""
        if self._task is not None:
            await self._task

    async def stop(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        """From the session that was asked about longest ago on, until half of the room is free."""
        for session_id in tuple(self._views):
            if 2 * self._warm <= self._most:
                return
            while (seen := self._views.get(session_id)) is not None:
                session, before = self._sessions.get(session_id), seen.warm
                if session is None or session.is_closed:
                    del self._views[session_id]
                    self._warm -= before
                    break
                more = seen.cool(session, before + self._most // 2 - self._warm)
                self._warm += seen.warm - before
                await asyncio.sleep(0)
                if not more:
                    break


class _Seen:
    """How much of a session's view is bytes."""

    def __init__(self) -> None:
        self.warm = 0
        """Tokens of the messages that may be decoded."""
        self._epoch = 0
        self._cold = 0
        """Messages of the view's beginning that are bytes, while it is of that epoch."""
        self._cold_tokens = 0

    def look(self, session: Session) -> None:
        """Looks how long the view is now. O(1)."""
        state = session.fold
        if state.epoch != self._epoch or self._cold > len(state.items):
            self._epoch, self._cold, self._cold_tokens = state.epoch, 0, 0
        self.warm = max(0, state.items_tokens - self._cold_tokens)

    def cool(self, session: Session, most: int) -> bool:
        """Makes some messages bytes, the oldest first; False where no more than `most` tokens are left."""
        self.look(session)
        state, decode = session.fold, decoder_of(session.entries)
        items = state.items
        for at in range(self._cold, min(len(items), self._cold + PIECE)):
            if self.warm <= most:
                return False
            item = items[at]
            if item.is_decoded and item.source is not None and state.originals.get(item.entry_id) is item:
                state.exchange(at, msgspec.structs.replace(item, body=OnDemand(item.source, decode)))
            self._cold = at + 1
            self._cold_tokens += item.tokens
            self.warm = max(0, self.warm - item.tokens)
        return self._cold < len(items) and self.warm > most

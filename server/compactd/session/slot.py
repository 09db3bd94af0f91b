"""A compaction that runs: who waits for it, who stops it, how far it is. A redaction holds the same slot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

from compactd.protocol.errors import Cancelled, SessionBusy
from compactd.protocol.messages import CompactionProgress, Event

T = TypeVar("T")

Progress = Callable[[float, str | None], None]
"""Takes the share that is done, and its phase."""

TELL_S = 0.1
"""Progress is told no more often than this, but for a new phase."""

ASKED, WRITTEN = 0.1, 0.8
"""The share that is done when a model is asked for the summary, and when it has written it."""

TOKEN_CHARS = 4
"""Characters that a token of a summary is expected to have."""


class Running:
    """What runs in a session's one slot: a compaction; or a redaction, while which none may begin."""

    def __init__(self, emit: Callable[[Event], None], compaction_id: str, progress: Progress | None) -> None:
        self.compaction_id = compaction_id
        """Empty of a redaction, which has neither start nor end for clients."""
        self._emit = emit
        self._progress = progress
        self._is_cancelled = threading.Event()
        self._ended = asyncio.Event()
        self._stopped = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._told_at = 0.0
        self._told_phase = ""
        self._fraction = 0.0
        self._expected_chars = 1
        self._received_chars = 0

    @property
    def is_shown(self) -> bool:
        """The request that asked for it shows its progress."""
        return self._progress is not None

    @property
    def is_compaction(self) -> bool:
        """False of a redaction."""
        return bool(self.compaction_id)

    def refusal(self) -> SessionBusy:
        """What whoever wants the slot is told."""
        if not self.is_compaction:
            return SessionBusy(
                "A redaction of this session is running. Wait for its answer.", holder="redaction"
            )
        return SessionBusy(
            "A compaction of this session is running. Wait for its compaction_end, or cancel it.",
            holder="compaction",
            compaction_id=self.compaction_id,
        )

    async def ended(self) -> None:
        """Returns when it has ended, however."""
        await self._ended.wait()

    async def cancel(self) -> None:
        """Stops it at its next step and waits for that."""
        self.stop()
        await self.ended()

    def stop(self) -> None:
        """Stops it at its next step."""
        self._is_cancelled.set()
        self._stopped.set()

    def end(self) -> None:
        """Wakes those that wait for it."""
        self._ended.set()

    def check(self, phase: str, fraction: float) -> None:
        """Called by the flow, in its thread: tells how far it is. Raises `Cancelled` once it was stopped."""
        if self._is_cancelled.is_set():
            raise Cancelled("The compaction was cancelled; nothing was changed.")
        now = self._loop.time()
        if phase != self._told_phase or now - self._told_at >= TELL_S:
            self._told_at, self._told_phase = now, phase
            self._loop.call_soon_threadsafe(self._tell, phase, fraction)

    def expect(self, most_tokens: int) -> None:
        """A model is asked for at most so many tokens: what `tell_text` takes is a share of them."""
        self._expected_chars, self._received_chars = max(1, most_tokens * TOKEN_CHARS), 0

    def tell_text(self, text: str) -> None:
        """Shows what the summariser writes; called on the loop, with each piece that arrives."""
        if self._ended.is_set():
            return
        self._received_chars += len(text)
        share = min(1.0, self._received_chars / self._expected_chars)
        fraction = self._raised(round(ASKED + (WRITTEN - ASKED) * share, 3))
        self._emit(
            CompactionProgress(
                compaction_id=self.compaction_id, phase="summarize", fraction=fraction, delta=text
            )
        )
        if self._progress is not None and (now := self._loop.time()) - self._told_at >= TELL_S:
            self._told_at = now
            self._progress(fraction, "summarize")

    async def unless_stopped(self, work: Coroutine[object, object, T]) -> T:
        """What `work` gives; ended at once, with `Cancelled`, where the compaction is stopped."""
        task = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Cancelled("The compaction was cancelled; nothing was changed.")
            return task.result()
        finally:
            stopped.cancel()
            task.cancel()

    def _tell(self, phase: str, fraction: float) -> None:
        if self._ended.is_set():
            return
        fraction = self._raised(fraction)
        self._emit(CompactionProgress(compaction_id=self.compaction_id, phase=phase, fraction=fraction))
        if self._progress is not None:
            self._progress(fraction, phase)

    def _raised(self, fraction: float) -> float:
        """`fraction`, or what was told already: a second attempt does not go back."""
        self._fraction = max(self._fraction, fraction)
        return self._fraction

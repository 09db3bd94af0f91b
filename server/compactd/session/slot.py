"""The slot of a session, which a running compaction occupies: wait for the compaction, cancel it, report its
progress.

A redaction occupies the same slot, so that no compaction starts during the redaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

from compactd.protocol.errors import Cancelled, SessionBusy
from compactd.protocol.messages import CompactionProgress, Event

T = TypeVar("T")

Progress = Callable[[float, str | None], None]
"""A function that is called with the share that is done (0 to 1) and the phase's name."""

MIN_REPORT_INTERVAL_S = 0.1
"""The least seconds between two progress reports. A new phase is always reported."""

ASKED, WRITTEN = 0.1, 0.8
"""The progress (0 to 1) when a model is asked for the summary, and when the model has written it."""

TOKEN_CHARS = 4
"""The expected number of characters per token of a summary."""


class ExclusiveOperation:
    """The compaction or redaction that occupies a session's slot."""

    def __init__(self, emit: Callable[[Event], None], compaction_id: str, progress: Progress | None) -> None:
        self.compaction_id = compaction_id
        """The compaction's id. Empty for a redaction, of which clients see no start and no end."""
        self._emit = emit
        self._progress = progress
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
        """True if the request that started the compaction asked for progress reports."""
        return self._progress is not None

    @property
    def is_compaction(self) -> bool:
        """True for a compaction, false for a redaction."""
        return bool(self.compaction_id)

    def refusal(self) -> SessionBusy:
        """Return the error for a caller that needs the slot while it is occupied."""
        if not self.is_compaction:
            return SessionBusy(
                "A redaction of this session is running. Wait for its answer.", holder="redaction"
            )
        return SessionBusy(
            "A compaction of this session is running. Wait for its `compaction_end` event, or cancel it.",
            holder="compaction",
            compaction_id=self.compaction_id,
        )

    async def wait_ended(self) -> None:
        """Wait until the compaction or redaction has ended: done, failed or cancelled."""
        await self._ended.wait()

    async def cancel(self) -> None:
        """Stop the compaction at its next step, and wait until it has ended."""
        self.stop()
        await self.wait_ended()

    def stop(self) -> None:
        """Stop the compaction at its next step. Does not wait."""
        self._stopped.set()

    def end(self) -> None:
        """Mark the compaction or redaction as ended, and wake the callers that wait in `wait_ended`."""
        self._ended.set()

    def check(self, phase: str, fraction: float) -> None:
        """Report progress, or raise `Cancelled` if the compaction was stopped. The compaction's worker thread
        calls this.
        """
        if self._stopped.is_set():
            raise Cancelled("The compaction was cancelled; nothing was changed.")
        now = self._loop.time()
        if phase != self._told_phase or now - self._told_at >= MIN_REPORT_INTERVAL_S:
            self._told_at, self._told_phase = now, phase
            self._loop.call_soon_threadsafe(self._report, phase, fraction)

    def expect(self, most_tokens: int) -> None:
        """Set the most tokens that the model may write for the summary. `report_text` computes the progress
        from this number.
        """
        self._expected_chars, self._received_chars = max(1, most_tokens * TOKEN_CHARS), 0

    def report_text(self, text: str) -> None:
        """Send a piece of the summary that the model is writing to the client, with the progress. Call this
        on the event loop.
        """
        if self._ended.is_set():
            return
        self._received_chars += len(text)
        share = min(1.0, self._received_chars / self._expected_chars)
        fraction = self._never_lower(round(ASKED + (WRITTEN - ASKED) * share, 3))
        self._emit(
            CompactionProgress(
                compaction_id=self.compaction_id, phase="summarize", fraction=fraction, delta=text
            )
        )
        if self._progress is not None and (now := self._loop.time()) - self._told_at >= MIN_REPORT_INTERVAL_S:
            self._told_at = now
            self._progress(fraction, "summarize")

    async def run_unless_stopped(self, work: Coroutine[object, object, T]) -> T:
        """Return the result of `work`. If the compaction is stopped, cancel `work` at once and raise
        `Cancelled`.
        """
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

    def _report(self, phase: str, fraction: float) -> None:
        if self._ended.is_set():
            return
        fraction = self._never_lower(fraction)
        self._emit(CompactionProgress(compaction_id=self.compaction_id, phase=phase, fraction=fraction))
        if self._progress is not None:
            self._progress(fraction, phase)

    def _never_lower(self, fraction: float) -> float:
        """Return `fraction`, or the last reported one if that is larger: progress never goes back."""
        self._fraction = max(self._fraction, fraction)
        return self._fraction

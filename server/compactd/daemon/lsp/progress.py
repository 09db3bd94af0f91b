"""LSP progress for compactions whose request has no `workDoneToken`, and for automatic compactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Raw

from compactd.daemon.rpc.request import Notify, ProgressBegin, ProgressEnd, ProgressParams, ProgressReport
from compactd.protocol.messages import CompactionEnd, CompactionProgress, CompactionStart

TITLE = "compactd: compacting the conversation"

REPORT_S = 0.1
"""The least seconds between two reports, because text arrives in many small pieces. A new phase is reported
at once."""

CompactionEvent = CompactionStart | CompactionProgress | CompactionEnd


class _ShownCompaction:
    """What the editor shows about one compaction."""

    def __init__(self) -> None:
        self.token: Raw | None = None
        """The progress token; None until the client has accepted it."""
        self.latest: CompactionProgress | None = None
        self.phase = ""
        self.reported_at = 0.0


class CompactionProgressDisplay:
    """The progress display of all sessions' compactions in the editor. It is driven by the sessions' events.
    Use it only on the event loop's thread.
    """

    def __init__(self, create: Callable[[], Awaitable[bytes | None]], notify: Notify) -> None:
        """`create` asks the client for a progress token and returns it as JSON text, or None if the client
        refuses.
        """
        self._create = create
        self._notify = notify
        self._shown: dict[str, _ShownCompaction] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def handle_event(self, session_id: str, event: CompactionEvent) -> None:
        """Handle the next event of a session. O(1)."""
        match event:
            case CompactionStart():
                shown = self._shown[session_id] = _ShownCompaction()
                task = asyncio.ensure_future(self._begin(session_id, shown))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case CompactionProgress():
                if (known := self._shown.get(session_id)) is not None:
                    known.latest = event
                    self._report(known)
            case CompactionEnd():
                ended = self._shown.pop(session_id, None)
                if ended is not None and ended.token is not None:
                    self._send(ended.token, ProgressEnd())

    async def _begin(self, session_id: str, shown: _ShownCompaction) -> None:
        token = await self._create()
        if token is None or self._shown.get(session_id) is not shown:
            return
        shown.token = Raw(token)
        self._send(shown.token, ProgressBegin(title=TITLE, cancellable=False))
        self._report(shown)

    def _report(self, shown: _ShownCompaction) -> None:
        latest, now = shown.latest, asyncio.get_running_loop().time()
        if shown.token is None or latest is None:
            return
        if latest.phase == shown.phase and now - shown.reported_at < REPORT_S:
            return
        shown.phase, shown.reported_at = latest.phase, now
        report = ProgressReport(message=latest.phase, percentage=round(100 * latest.fraction))
        self._send(shown.token, report, droppable=True)

    def _send(
        self, token: Raw, value: ProgressBegin | ProgressReport | ProgressEnd, droppable: bool = False
    ) -> None:
        self._notify("$/progress", ProgressParams(token=token, value=value), droppable)

"""A log on stderr that never blocks. Log lines contain ids, counts and kinds, but nothing of a conversation.

If a client does not read the daemon's stderr, the pipe fills up and a write would block. So a separate thread
writes. If too many lines wait, the oldest are dropped and counted.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Mapping

WAITING_LINES = 1000
"""The most lines that wait to be written. Above it, the oldest are dropped."""

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class StderrLog(logging.Handler):
    """A log handler that writes to stderr in a separate thread. The first record starts the thread."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("compactd %(levelname)s %(name)s: %(message)s"))
        self._lines: deque[str] = deque(maxlen=WAITING_LINES)
        self._dropped = 0
        self._wake = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record for the thread. `logging` calls this with the handler's lock."""
        if len(self._lines) == WAITING_LINES:
            self._dropped += 1
        self._lines.append(self.format(record))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="compactd-log", daemon=True)
            self._thread.start()
        self._wake.release()

    def flush(self) -> None:
        """Wait up to 0.2 s for queued lines, so that they are written before the process ends."""
        deadline = 20
        while self._lines and self._thread is not None and deadline:
            deadline -= 1
            self._thread.join(0.01)

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            try:
                line = self._lines.popleft()
            except IndexError:
                continue
            dropped, self._dropped = self._dropped, 0
            if dropped:
                line = f"compactd WARNING log: {dropped} lines were dropped because nobody read them\n{line}"
            try:
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
            except (OSError, ValueError):
                return


def log_to_stderr(environ: Mapping[str, str]) -> None:
    """Send the log to stderr. `COMPACTD_LOG` sets the level: debug, info, warning (the default), error."""
    root = logging.getLogger()
    root.addHandler(StderrLog())
    root.setLevel(LEVELS.get(environ.get("COMPACTD_LOG", "").lower(), logging.WARNING))
    # pygls logs whole messages at INFO. Conversations must not get into a log.
    logging.getLogger("pygls").setLevel(logging.ERROR)

"""The log on stderr: ids, counts and kinds, never what was said; and never a reason to wait.

A client that does not read the daemon's stderr would stop it once the pipe is full. So a thread writes, and
what it cannot get rid of is dropped and counted.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Mapping

WAITING_LINES = 1000
"""Lines that may wait for a reader; the oldest go first."""

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class StderrLog(logging.Handler):
    """Writes records to stderr from a thread of its own, begun with the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("compactd %(levelname)s %(name)s: %(message)s"))
        self._lines: deque[str] = deque(maxlen=WAITING_LINES)
        self._dropped = 0
        self._wake = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Puts a record in line; called under the handler's lock."""
        if len(self._lines) == WAITING_LINES:
            self._dropped += 1
        self._lines.append(self.format(record))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="compactd-log", daemon=True)
            self._thread.start()
        self._wake.release()

    def flush(self) -> None:
        """Gives the thread a moment for what is in line: at the end of the process nobody else would."""
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
                line = f"compactd WARNING log: {dropped} lines were dropped, nobody read them\n{line}"
            try:
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
            except (OSError, ValueError):
                return


def log_to_stderr(environ: Mapping[str, str]) -> None:
    """Sends the log to stderr; `COMPACTD_LOG` is its level: debug, info, warning (the default), error."""
    root = logging.getLogger()
    root.addHandler(StderrLog())
    root.setLevel(LEVELS.get(environ.get("COMPACTD_LOG", "").lower(), logging.WARNING))
    # pygls writes whole messages at INFO: conversations belong in no log.
    logging.getLogger("pygls").setLevel(logging.ERROR)

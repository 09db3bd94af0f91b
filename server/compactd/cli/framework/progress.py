"""Progress of a long operation: a text and a spinner on standard error, removed at the end."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

SPINNER_DELAY_S = 0.5
"""Seconds before the spinner appears. A shorter operation shows nothing."""


class ProgressSpinner:
    """A context manager that shows a text and a spinner while its block runs, if that takes longer than
    `SPINNER_DELAY_S` and standard error is a terminal.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._status: Status | None = None
        self._is_over = False
        self._timer: threading.Timer | None = None

    def set_text(self, text: str) -> None:
        """Change the shown text. May be called from any thread."""
        with self._lock:
            self._text = text
            if self._status is not None:
                self._status.update(text)

    def __enter__(self) -> ProgressSpinner:
        if sys.stderr.isatty():
            self._timer = threading.Timer(SPINNER_DELAY_S, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._status is not None:
                self._status.stop()

    def _show(self) -> None:
        from rich.console import Console
        from rich.status import Status

        with self._lock:
            if not self._is_over:
                console = Console(stderr=True, highlight=False, markup=False, emoji=False)
                self._status = Status(self._text, console=console, spinner_style="none")
                self._status.start()

"""How a command ends: its exit codes, and the error that a person is told."""

from __future__ import annotations

from collections.abc import Mapping

from compactd.client import RpcError

DONE = 0
FAILED = 1
USAGE = 2
NOTHING_TO_DO = 3
INTERRUPTED = 130
"""By Ctrl-C; 128 + SIGINT, as shells have it."""


INTERNAL_ERROR = -32603


def last_words(stderr: str) -> str:
    """What a daemon's log ends with, for a person: its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f"The daemon's log ends: {lines[-1]}" if lines else "The daemon's log is empty."


def blame(error: RpcError) -> str:
    """What to do about an error that the daemon did not expect itself."""
    return f"{last_words(error.stderr)}\nPlease report it." if error.code == INTERNAL_ERROR else ""


class Stop(Exception):
    """The command ends here: what happened, with which thing; `hint` says what to do."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        exit_code: int = FAILED,
        code: int | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
        self.code = code
        """The contract's, where the daemon said it."""
        self.data = dict(data or {})

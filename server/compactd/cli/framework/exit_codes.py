"""How a command ends: its exit codes, and the error that a person is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from compactd.cli.framework.page import Page, cleaned, encodable
from compactd.client import DaemonGone, RpcError
from compactd.protocol.errors import CompactdError

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


def acted(page: Page, act: Callable[[], int]) -> int:
    """The exit code of `act`. What it raises that a person can do something about is told in two lines."""
    try:
        return act()
    except Stop as stop:
        return told(page, stop)
    except RpcError as error:
        return told(page, Stop(error.message, hint=blame(error), code=error.code, data=error.data))
    except CompactdError as error:
        return told(page, Stop(error.message, code=error.code, data=error.data))
    except DaemonGone as error:
        return told(page, Stop(f"{error}.", hint=last_words(error.stderr)))
    except TimeoutError as error:
        return told(page, Stop(f"{error}.", hint="The daemon was ended; nothing was written."))


def told(page: Page, stop: Stop) -> int:
    """Its exit code, once it was told."""
    message = encodable(stop.message)
    if page.is_json:
        page.json({"error": {"code": stop.code, "message": message, "hint": stop.hint, "data": stop.data}})
    else:
        lines = [message, stop.hint] if stop.hint else [message]
        sys.stderr.write("".join(f"{cleaned(line)}\n" for line in lines))
    return stop.exit_code

"""The exit codes of commands, and how a command prints an error.

Every command follows the same rule, and `tests/unit/cli/test_every_command.py` checks it. Only `hook` and
`statusline` always end with 0, because agents show any other exit code to their user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compactd.cli.framework.page import Page, make_encodable, write_errors
from compactd.client import DaemonGone, RpcError
from compactd.protocol.errors import CompactdError, SessionNotFound

DONE = 0
"""The command did what it was asked, or answered the question."""
FAILED = 1
"""The command line is right, but it could not be carried out: a file's content is empty, damaged or of an
unknown format, a model or the disk failed. Also: a command that checks something (`doctor`, `trust` without a
folder, `conformance`) found a fault.
"""
USAGE = 2
"""Another command line is needed: an option, value or combination is wrong, or what it names does not exist
(a file, a stored session, a provider, a check), or the file to write exists already.
"""
NOTHING_TO_DO = 3
"""There was nothing to do, or nothing was found or recognised: nothing to compact, hooks that are already
installed, a search without a hit, an error text or a model's name that no source knows.
"""
INTERRUPTED = 130
"""Ended by Ctrl-C: 128 + SIGINT, as in shells."""


INTERNAL_ERROR = -32603


def last_log_line(stderr: str) -> str:
    """Return a sentence that quotes the last line of a daemon's log (`stderr`)."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f"The daemon's log ends: {lines[-1]}" if lines else "The daemon's log is empty."


def bug_hint(error: RpcError) -> str:
    """Return a hint for an internal error of the daemon (the end of its log); empty for other errors."""
    return f"{last_log_line(error.stderr)}\nPlease report it." if error.code == INTERNAL_ERROR else ""


class CommandError(Exception):
    """An error that ends a command. `message` says what happened and to what; `hint` says what to do."""

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
        """The protocol's error code, if the daemon sent one."""
        self.data = dict(data or {})


def exit_code_of(page: Page, act: Callable[[], int]) -> int:
    """Call `act` and return the exit code that it returns. If it raises an error that a user can do something
    about, print the error and return the exit code of that error.
    """
    try:
        return act()
    except CommandError as stop:
        return print_error(page, stop)
    except RpcError as error:
        return print_error(
            page,
            CommandError(
                error.message,
                hint=bug_hint(error),
                exit_code=_exit_code_of_error(error.code),
                code=error.code,
                data=error.data,
            ),
        )
    except CompactdError as error:
        exit_code = _exit_code_of_error(error.code)
        return print_error(
            page, CommandError(error.message, exit_code=exit_code, code=error.code, data=error.data)
        )
    except DaemonGone as error:
        return print_error(page, CommandError(f"{error}.", hint=last_log_line(error.stderr)))
    except TimeoutError as error:
        return print_error(
            page, CommandError(f"{error}.", hint="The daemon was stopped; nothing was written.")
        )


def _exit_code_of_error(code: int) -> int:
    """Return the exit code for the protocol's error `code`."""
    return USAGE if code == SessionNotFound.code else FAILED


def print_error(page: Page, stop: CommandError) -> int:
    """Print an error, as text on stderr or as JSON on stdout, and return its exit code."""
    message = make_encodable(stop.message)
    if page.is_json:
        page.json({"error": {"code": stop.code, "message": message, "hint": stop.hint, "data": stop.data}})
    else:
        lines = [message, stop.hint] if stop.hint else [message]
        write_errors(lines)
    return stop.exit_code

"""Run a command whose output is filtered: its exit code and its standard error stay its own."""

from __future__ import annotations

import errno
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO

from compactd.cli.framework.exit_codes import CommandError

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""The exit codes of shells for a command that does not exist, or that cannot be run."""
_SIGNALLED = 128


class Child:
    """A running command."""

    def __init__(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self._process = process
        self.output = output

    def exit_code(self) -> int:
        """Wait for the end of the command. Return its exit code: 128 and the signal's number if a signal
        ended it."""
        code = self._process.wait()
        return code if code >= 0 else _SIGNALLED - code


@contextmanager
def run_child(command: Sequence[str]) -> Iterator[Child]:
    """Run a command with this process's standard input and standard error. Raise `CommandError` if it cannot
    be started.

    Ctrl-C goes to the command, and what it has printed until then is still filtered. SIGTERM is passed on.
    """
    process: subprocess.Popen[bytes] | None = None

    def leave_to_child(number: int, frame: FrameType | None) -> None:
        """Do nothing: the terminal sends Ctrl-C to the command, too."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        if process is not None:
            with suppress(OSError):
                process.send_signal(number)

    with _handlers({signal.SIGINT: leave_to_child, signal.SIGTERM: pass_on}):
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE)
        except (OSError, ValueError) as error:
            raise _not_started(command[0], error) from error
        assert process.stdout is not None
        try:
            with process.stdout:
                yield Child(process, process.stdout)
        finally:
            process.wait()


@contextmanager
def _handlers(wanted: Mapping[signal.Signals, Callable[[int, FrameType | None], None]]) -> Iterator[None]:
    """Handle signals meanwhile. A signal that is ignored stays so, also for the command (`nohup`). The
    command does not inherit a handler."""
    earlier = {
        number: signal.signal(number, handler)
        for number, handler in wanted.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _not_started(name: str, error: OSError | ValueError) -> CommandError:
    if isinstance(error, FileNotFoundError):
        return CommandError(f"{name}: there is no such command.", exit_code=NOT_FOUND)
    why = error.strerror if isinstance(error, OSError) else str(error)
    is_found = isinstance(error, OSError) and error.errno in (errno.EACCES, errno.ENOEXEC)
    return CommandError(
        f"{name} cannot be started: {why}.", exit_code=NOT_EXECUTABLE if is_found else NOT_FOUND
    )

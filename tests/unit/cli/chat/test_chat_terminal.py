"""`compactd chat` in a pseudo-terminal: it restores the terminal, or uses plain lines if no app can run."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.cli.chat.staged import DEADLINE_S, environment

LEAVES_THE_OTHER_SCREEN = b"\x1b[?1049l"
SHOWS_THE_CURSOR = b"\x1b[?25h"


class Terminal:
    """A terminal's two ends, and the chat that runs in it."""

    def __init__(self, home: Path, columns: int, term: str) -> None:
        self._ours, self._its = os.openpty()
        termios.tcsetwinsize(self._its, (30, columns))
        self.before = termios.tcgetattr(self._its)
        self.written = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "compactd", "chat", "--echo"],
            stdin=self._its,
            stdout=self._its,
            stderr=self._its,
            env=environment(home, TERM=term),
            start_new_session=True,
        )

    def modes(self) -> list[object]:
        """Return the current settings of the terminal."""
        return list(termios.tcgetattr(self._its))

    def types(self, text: bytes) -> None:
        """Type `text` as a user would."""
        os.write(self._ours, text)

    def sees(self, text: bytes) -> None:
        """Waits until it was written."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.written:
            assert time.monotonic() < deadline, self.written[-2000:]
            self._read(0.1)

    def ends(self) -> int:
        """Waits for its end; the exit code."""
        deadline = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.written[-2000:]
            self._read(0.05)
        while self._read(0.0):
            pass
        return self.process.returncode

    def close(self) -> None:
        """Ends what still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
        os.close(self._its)

    def _read(self, timeout_s: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], timeout_s)
        if ready:
            self.written += os.read(self._ours, 1 << 16)
        return bool(ready)


@contextmanager
def terminal(
    home: Path, columns: int = 100, term: str = "xterm-256color", *options: str
) -> Iterator[Terminal]:
    one = Terminal(home, columns, term)
    try:
        yield one
    finally:
        one.close()


def test_a_signal_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with terminal(tmp_path) as one:
        one.sees(b"/ for commands")
        assert one.modes() != one.before

        one.process.send_signal(signal.SIGTERM)

        assert one.ends() == 0
        assert one.modes() == one.before
        assert LEAVES_THE_OTHER_SCREEN in one.written
        assert SHOWS_THE_CURSOR in one.written[one.written.index(LEAVES_THE_OTHER_SCREEN) - 40 :]


@pytest.mark.parametrize(
    ("columns", "term", "said"),
    [(20, "xterm", b"larger than 20 by"), (100, "dumb", b"cannot move the cursor")],
)
def test_a_terminal_that_cannot_be_filled_is_talked_to_by_lines(
    tmp_path: Path, columns: int, term: str, said: bytes
) -> None:
    with terminal(tmp_path, columns, term) as one:
        one.sees(b"> ")
        one.types(b"Hello\n")
        one.sees(b"Hello\r\nHello\r\n> ")
        one.types(b"\x04")

        assert one.ends() == 0
        assert said in one.written
        assert b"\x1b[?1049h" not in one.written

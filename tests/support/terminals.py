"""Runs a command in a pseudo-terminal: reads its screen and types for the user."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.command_line import ANSI, COMPACTD, environment

DEADLINE_S = 60


class Screen(NamedTuple):
    """What was sent to a terminal, and how the command ended."""

    code: int
    text: str

    @property
    def lines(self) -> list[str]:
        return ANSI.sub("", self.text).splitlines()


def in_terminal(
    home: Path,
    *arguments: object,
    env: Mapping[str, str] = {},
    typed: Sequence[tuple[str, str]] = (),
    rows: int = 24,
    columns: int = 80,
    command: Sequence[str] = COMPACTD,
    with_errors: bool = True,
) -> Screen:
    """Runs a command in a terminal; `typed`: (what to wait for, what to type then), one after the other.
    Without errors, standard error goes nowhere."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        stdin=slave,
        stdout=slave,
        stderr=slave if with_errors else subprocess.DEVNULL,
        env=environment(home, {"TERM": "xterm", **env}),
        cwd=home,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        seen, waiting = b"", list(typed)
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                data = os.read(master, 65_536)
            except OSError:  # Linux: everyone has closed it
                break
            if not data:
                break
            seen += data
            if waiting and waiting[0][0].encode() in seen:
                os.write(master, waiting.pop(0)[1].encode())
        else:
            raise AssertionError(f"still running; the terminal shows {seen!r}, left to type: {waiting}")
        return Screen(process.wait(timeout=DEADLINE_S), seen.decode("utf-8", "replace").replace("\r\n", "\n"))
    finally:
        process.kill()
        process.wait()
        os.close(master)

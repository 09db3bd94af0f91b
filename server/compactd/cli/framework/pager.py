"""Output longer than the terminal goes through the reader's pager, as git's and man's does."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compactd._runtime.programs import resolved_command
from compactd.cli.framework.page import Held

LESS = "FRX"
"""What `less` is told where the reader's own `LESS` does not: end where all fits, show colours, leave the
screen as it is. As git sets it (its core.pager)."""


@contextmanager
def paged(*, is_wanted: bool) -> Iterator[None]:
    """What is printed inside is shown at its end: through `PAGER` where it has more lines than the terminal.

    Prints at once where standard output is no terminal, or `PAGER` is empty or `cat`, or there is none.
    """
    pager = _pager() if is_wanted and sys.stdout.isatty() else []
    if not pager:
        yield
        return
    stdout, held = sys.stdout, Held()
    sys.stdout = held
    try:
        yield
    finally:
        sys.stdout = stdout
        text = held.getvalue()
        if text.count("\n") < shutil.get_terminal_size().lines or not _shown(pager, text):
            stdout.write(text)
            stdout.flush()
        sys.stderr.write("".join(held.notes))


def _pager() -> list[str]:
    """The pager's command; empty for none."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return []
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return []
    if not words or words == ["cat"]:
        return []
    try:
        program = resolved_command(words[0], os.environ.get("PATH"), Path.cwd())
    except OSError:
        return []
    # A relative path means another program in each folder: it is not run.
    return [program, *words[1:]] if Path(program).is_absolute() else []


def _shown(pager: list[str], text: str) -> bool:
    """Whether the pager could be started. Waits until the reader leaves it."""
    environment = {**os.environ, "LESS": os.environ.get("LESS", LESS)}
    try:
        process = subprocess.Popen(pager, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return False
    try:
        process.communicate(text.encode("utf-8", "replace"))
    except KeyboardInterrupt:
        # The pager has seen it too, and decides itself what it means.
        _wait(process)
    return True


def _wait(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None and not process.stdin.closed:
        process.stdin.close()
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:
            continue
        return

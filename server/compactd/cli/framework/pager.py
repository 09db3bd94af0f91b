"""Send output that is longer than the terminal through the user's pager, as git and man do."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compactd._runtime.programs import resolve_command
from compactd.cli.framework.page import HeldOutput

LESS = "FRX"
"""The options of `less` if the environment variable `LESS` is not set: quit if everything fits, show colours,
do not clear the screen. git uses the same options (core.pager).
"""


@contextmanager
def page_output(*, is_wanted: bool) -> Iterator[None]:
    """Collect what the `with` block prints. Then show it in the pager (the program that `PAGER` names) if it
    has more lines than the terminal; otherwise print it directly.

    A pager is used only if `is_wanted` is true and standard output is a terminal that is not `dumb`. None is
    used if `PAGER` is empty or `cat`, or if its program is not found.
    """
    pager = _pager() if is_wanted and sys.stdout.isatty() else []
    if not pager:
        yield
        return
    stdout, held = sys.stdout, HeldOutput()
    sys.stdout = held
    try:
        yield
    finally:
        sys.stdout = stdout
        text = held.getvalue()
        if text.count("\n") < shutil.get_terminal_size().lines or not _show(pager, text):
            stdout.write(text)
            stdout.flush()
        sys.stderr.write("".join(held.notes))


def _pager() -> list[str]:
    """Return the pager's command as words; an empty list if no pager is to be used."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return []
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return []
    if not words or words == ["cat"]:
        return []
    try:
        program = resolve_command(words[0], os.environ.get("PATH"), Path.cwd())
    except OSError:
        return []
    # A relative path would run a different program in each folder, so it is refused.
    return [program, *words[1:]] if Path(program).is_absolute() else []


def _show(pager: list[str], text: str) -> bool:
    """Show `text` in the pager, and wait until the user quits it. Return False if the pager could not be
    started.
    """
    environment = {**os.environ, "LESS": os.environ.get("LESS", LESS)}
    try:
        process = subprocess.Popen(pager, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return False
    try:
        process.communicate(text.encode("utf-8", "replace"))
    except KeyboardInterrupt:
        # The pager also received Ctrl-C and decides itself what to do.
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

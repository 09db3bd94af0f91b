"""Takes stdin and stdout away from the process, before anything else is imported.

Only protocol bytes may reach stdout, whatever a library prints. This module imports nothing but what
the interpreter has loaded already: `__main__` calls it first.
"""

from __future__ import annotations

import os
import sys

PIPE_BYTES = 1 << 20
"""Asked of Linux for each pipe: what an unprivileged user may have. Its own 64 KiB cost more switches."""


def take_stdio() -> tuple[int, int]:
    """The protocol's own descriptors, (in, out). Afterwards stdin is empty and stdout is stderr.

    Children inherit neither of the two. A stream that was closed when the process started is `/dev/null`.
    """
    null = os.open(os.devnull, os.O_RDWR)
    spare = []
    while null <= 2:  # takes the place of a closed one
        spare.append(null)
        null = os.dup(null)
    taken = (os.dup(0), os.dup(1))
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    for fd in spare:
        os.set_inheritable(fd, True)
    sys.stdout = sys.stderr
    for fd in taken:
        _widen(fd)
    return taken


def _widen(fd: int) -> None:
    if sys.platform == "linux":
        import fcntl

        try:
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            return  # no pipe, or the user's share of pipe memory is used up: it works as it is

"""Reserve stdin and stdout for the protocol, before anything else is imported.

Only protocol bytes may reach stdout, whatever a library prints. `__main__` calls `take_stdio` first, so this
module imports only modules that the interpreter has already loaded.
"""

from __future__ import annotations

import os
import sys

PIPE_BYTES = 1 << 20
"""The pipe size to request on Linux. It is the most that an unprivileged user may have. The default, 64 KiB,
causes more switches between processes."""


def take_stdio() -> tuple[int, int]:
    """Move stdin and stdout to new file descriptors for the protocol, and return these (in, out). Afterwards
    descriptor 0 is empty, and descriptor 1 and `sys.stdout` go to stderr.

    Child processes do not inherit the new descriptors. A standard stream that was closed at the start becomes
    `/dev/null`.
    """
    null = os.open(os.devnull, os.O_RDWR)
    spare = []
    while null <= 2:  # a standard stream was closed, and this took its number
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
            return  # not a pipe, or the user's pipe memory is used up; the default size works too

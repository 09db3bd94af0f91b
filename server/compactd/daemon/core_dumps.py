"""No core dumps of the daemon: its memory holds keys and conversations."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

_FILTER = "/proc/self/coredump_filter"


def forbid_core_dumps() -> None:
    """For the daemon's own process, at its start; a program that embeds the client library keeps its limits.

    Two things, because each alone leaves a gap. The soft limit of 0 stops core files, but Linux does not
    apply it to a dump that is piped to a program, as apport and systemd-coredump want theirs (core(5), seen
    2026-11). The filter of 0 leaves every page out of any dump: heap, stack, environment.

    PR_SET_DUMPABLE stays as it is. Without it /proc/PID belongs to root: py-spy, gdb, strace and a look at
    the daemon's memory would need root, on a machine where the same user can read keys.toml and the
    environment anyway. It would also cost an import of ctypes at each start. Whoever wants a dump raises the
    limit again (`prlimit --core=unlimited --pid PID`) and writes 0x33 to /proc/PID/coredump_filter.

    Commands that the daemon starts (git) inherit both. O(1); never raises.
    """
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    # Linux alone has it; in some containers it is read-only.
    with suppress(OSError):
        fd = os.open(_FILTER, os.O_WRONLY)
        try:
            os.write(fd, b"0")
        finally:
            os.close(fd)

"""Prevent core dumps of the daemon, because its memory contains keys and conversations."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

_FILTER = "/proc/self/coredump_filter"


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process. Call it when the daemon starts; embedded clients do not call it.

    Two settings are needed. A soft limit of 0 stops core files, but Linux ignores it for dumps that are piped
    to a program, as apport and systemd-coredump do (core(5), seen 2026-11). A dump filter of 0 leaves every
    memory page out of any dump: heap, stack, environment.

    PR_SET_DUMPABLE is not changed. It would make /proc/PID belong to root, so py-spy, gdb and strace would
    need root, although the same user can read keys.toml and the environment anyway. It would also need
    ctypes at each start. To get a dump, raise the limit (`prlimit --core=unlimited --pid PID`) and write
    0x33 to /proc/PID/coredump_filter.

    Programs that the daemon starts (git) inherit both settings. O(1). Never raises.
    """
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    # The file exists only on Linux, and is read-only in some containers.
    with suppress(OSError):
        fd = os.open(_FILTER, os.O_WRONLY)
        try:
            os.write(fd, b"0")
        finally:
            os.close(fd)

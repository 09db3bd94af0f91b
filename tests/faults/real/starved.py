"""A daemon that is refused something: room, descriptors, memory, permission, an answer of its file system.

Each notes the answers of the daemon while it was refused, and then asks a healthy one for everything that was
acknowledged.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e.client import SERVE, Daemon, Refused

LIMITED = (
    "import os, resource, sys; "
    "limit, soft = sys.argv[1], int(sys.argv[2]); "
    "resource.setrlimit(getattr(resource, limit), (soft, soft)); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
"""Sets a limit on itself, then is the daemon."""
WITHOUT_POWERS = (
    "import ctypes, os, sys; prctl = getattr(ctypes.CDLL(None), 'prctl', None); "
    "[prctl(24, one, 0, 0, 0) for one in (1, 2) if prctl and os.geteuid() == 0]; "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""Gives up what lets root pass over permissions (PR_CAPBSET_DROP of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH:
capabilities(7)), then is the daemon. As `nobody` it could not read where Python is installed."""


def powerless() -> tuple[str, ...]:
    """The command of a daemon to which permissions mean something, whoever runs it."""
    return (sys.executable, "-c", WITHOUT_POWERS, *SERVE)


def limited(limit: str, soft: int) -> tuple[str, ...]:
    """The command of a daemon under one `RLIMIT_…`."""
    return (sys.executable, "-c", LIMITED, limit, str(soft), *SERVE)


class Told:
    """What a client was told by a daemon that could not do everything."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, list[str]] = {}
        self.refused: list[Refused] = []

    def append(self, daemon: Daemon, name: str, texts: list[str]) -> None:
        """Appends, one request each; notes what was acknowledged and what was refused."""
        try:
            daemon.call("session/start", session_id=name)
        except Refused as error:
            self.refused.append(error)
            return
        kept = self.acknowledged.setdefault(name, [])
        for text in texts:
            try:
                daemon.call("session/append", session_id=name, messages=[{"role": "user", "content": text}])
            except Refused as error:
                self.refused.append(error)
            else:
                kept.append(text)

    def lost(self, home: Path) -> int:
        """How many of the acknowledged messages a healthy daemon does not give back, in their order."""
        missing = 0
        with Daemon(home) as daemon:
            for name, texts in self.acknowledged.items():
                daemon.call("session/start", session_id=name)
                entries = daemon.call("session/history", session_id=name)["entries"]
                found: list[Any] = [json.dumps(one["message"]) for one in entries if one["kind"] == "message"]
                at = 0
                for text in texts:
                    places = [place for place in range(at, len(found)) if json.dumps(text) in found[place]]
                    missing += not places
                    at = places[0] + 1 if places else at
        return missing


@contextmanager
def small_disk(size_kb: int) -> Iterator[Path]:
    """A file system of that size, where this process may mount one. Raises `PermissionError`."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", folder]
        if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode != 0:
            raise PermissionError("no mount for this user")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


@contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """The process hangs, as on a file system that does not answer."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)

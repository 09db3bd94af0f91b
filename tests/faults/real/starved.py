"""A daemon that lacks something: disk space, descriptors, memory, permission, an answer of its file system.

Each test records the daemon's answers meanwhile, then asks a healthy daemon for everything that was
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

from tests.support.client import SERVE, Daemon, Refused

LIMITED = (
    "import os, resource, sys; "
    "limit, soft = sys.argv[1], int(sys.argv[2]); "
    # Python would write byte code that ends at the limit, and every later daemon would read it.
    "os.environ['PYTHONDONTWRITEBYTECODE'] = '1'; "
    "resource.setrlimit(getattr(resource, limit), (soft, soft)); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
"""A program that sets a resource limit on itself and then becomes the daemon (exec)."""
WITHOUT_POWERS = (
    "import ctypes, os, sys; prctl = getattr(ctypes.CDLL(None), 'prctl', None); "
    "[prctl(24, one, 0, 0, 0) for one in (1, 2) if prctl and os.geteuid() == 0]; "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""A program that drops root's right to ignore file permissions and then becomes the daemon (exec).

It drops CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH with PR_CAPBSET_DROP, see capabilities(7). It does not
switch to the user `nobody`, who might be unable to read the folder where Python is installed.
"""


def powerless() -> tuple[str, ...]:
    """Return the command of a daemon that obeys file permissions, even if root runs it."""
    return (sys.executable, "-c", WITHOUT_POWERS, *SERVE)


def limited(limit: str, soft: int) -> tuple[str, ...]:
    """Return the command of a daemon under one resource limit (`RLIMIT_…`)."""
    return (sys.executable, "-c", LIMITED, limit, str(soft), *SERVE)


class Told:
    """What a daemon without enough resources acknowledged and refused."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, list[str]] = {}
        self.refused: list[Refused] = []

    def append(self, daemon: Daemon, name: str, texts: list[str]) -> None:
        """Append each text with a request of its own. Record which were acknowledged and which refused."""
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
        """Return how many of the acknowledged messages a healthy daemon does not return in order."""
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

"""Hermes in a folder of its own, and a guard: nothing may be sent to another machine.

The folder is set when this module is imported, since some of Hermes' modules read it when they are.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest

HOME = tempfile.mkdtemp(prefix="compactd-hermes-")
os.environ["HERMES_HOME"] = HOME
LOCAL = ("127.0.0.1", "::1", "localhost", "")

_elsewhere: list[str] = []


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect":
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else ""
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    if name not in LOCAL:
        _elsewhere.append(name)


sys.addaudithook(_watch)


@pytest.fixture(autouse=True, scope="session")
def hermes_home(own_home: object) -> Iterator[str]:
    """The folder `~/.hermes` of these tests, with the plugin in it."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("HOME", HOME)
        changed.setenv("HERMES_HOME", HOME)
        for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
            changed.delenv(name)
        yield HOME
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def nothing_is_sent_elsewhere() -> Iterator[None]:
    """Fail if something asked for another machine."""
    _elsewhere.clear()
    yield
    assert _elsewhere == []

"""Set-up for all tests: this machine can reach itself, and Ctrl-C reaches the programs that a test starts.

Without network (`unshare -n make test`) the loopback interface exists but is down. It is brought up if that
is allowed, so that the tests' own servers can be reached and nothing else. A job that a script started in the
background ignores Ctrl-C and would pass that on to every program that it starts.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import sys

import pytest
from hypothesis import settings

from tests.support.examples import ALL, FEW
from tests.support.nightly import is_nightly

settings.register_profile("few", deadline=None, max_examples=FEW)
settings.register_profile("nightly", deadline=None, max_examples=ALL)
settings.load_profile("few")
# A deadline per example measures how busy the machine is, not what is true.

GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1
"""SIOCGIFFLAGS, SIOCSIFFLAGS and IFF_UP of Linux's netdevice(7)."""
REQUEST = "16sH14x"


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            bring_up("lo")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_nightly(item.nodeid):
            item.add_marker(pytest.mark.nightly)


def bring_up(interface: str) -> None:
    """Bring a network interface up. Raise `OSError` if it does not exist, or is down and may not be
    changed."""
    import fcntl

    asked = struct.pack(REQUEST, interface.encode(), 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = struct.unpack(REQUEST, fcntl.ioctl(any_socket, GET_FLAGS, asked))[1]
        if not flags & UP:
            fcntl.ioctl(any_socket, SET_FLAGS, struct.pack(REQUEST, interface.encode(), flags | UP))

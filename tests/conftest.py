"""What every test may count on: this machine can reach itself, and Ctrl-C reaches what a test starts.

With the network cut off (`unshare -n make test`) the loopback interface is there and down: it is brought up
where we may, so that the servers the tests start can be reached and nothing else can. A job that a script put
into the background has Ctrl-C ignored, and would hand that on to every program it starts.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import sys

from hypothesis import settings

settings.register_profile("compactd", deadline=None)
settings.load_profile("compactd")
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


def bring_up(interface: str) -> None:
    """Raises `OSError` where there is no such interface, or it is down and we may not change that."""
    import fcntl

    asked = struct.pack(REQUEST, interface.encode(), 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = struct.unpack(REQUEST, fcntl.ioctl(any_socket, GET_FLAGS, asked))[1]
        if not flags & UP:
            fcntl.ioctl(any_socket, SET_FLAGS, struct.pack(REQUEST, interface.encode(), flags | UP))

"""Starts the daemon for tests of the wire: the real transport with a fake inside (`echo_daemon.py`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.raw_client import RawClient

HERE = Path(__file__).parent
ENVIRONMENT = {"PYTHONPATH": str(HERE.parents[2] / "server"), "PYTHONUNBUFFERED": ""}

Spawn = Callable[..., RawClient]


def echo_command(*options: str) -> list[str]:
    """Return the command that starts the echo daemon."""
    return [sys.executable, str(HERE / "echo_daemon.py"), *options]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Starts echo daemons with these options, in this framing; they end with the test."""
    clients: list[RawClient] = []

    def start(*options: str, framing: str = "headers") -> RawClient:
        clients.append(RawClient(echo_command(*options), env=ENVIRONMENT, framing=framing))
        return clients[-1]

    yield start
    for client in clients:
        client.__exit__()


@pytest.fixture(scope="module")
def shared() -> Iterator[RawClient]:
    """One daemon for all tests of a module that it has to survive."""
    with RawClient(echo_command("--frame-limit", "100000"), env=ENVIRONMENT) as client:
        yield client


@pytest.fixture(scope="module")
def shared_lines() -> Iterator[RawClient]:
    """Yield the shared daemon with one message per line."""
    with RawClient(echo_command("--frame-limit", "100000"), env=ENVIRONMENT, framing="lines") as client:
        yield client

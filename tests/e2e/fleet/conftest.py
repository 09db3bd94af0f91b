"""Daemons of one database: each has its own data folder, as on another machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.client import Daemon
from tests.support.postgres import Server, running_server

Node = Callable[..., Daemon]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server."""
    with running_server() as server:
        yield server


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """A new database with the schema."""
    name = server.new_database()
    yield name
    server.drop(name)


@pytest.fixture
def node(server: Server, database: str, tmp_path: Path) -> Iterator[Node]:
    """Return a function that starts a node."""
    with ExitStack() as stack:

        def start(env: Mapping[str, str] | None = None) -> Daemon:
            home = tmp_path / f"node{len(stack._exit_callbacks)}" / "home"
            home.parent.mkdir()
            given = {"COMPACTD_STORE": server.url(database), **(env or {})}
            return stack.enter_context(Daemon(home, env=given))

        yield start

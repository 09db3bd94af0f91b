"""Daemons of one database: each has its own data folder, as on another machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.client import Daemon
from tests.support.postgres import Server

Node = Callable[..., Daemon]
server, database = postgres.server, postgres.database


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

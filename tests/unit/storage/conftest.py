"""Fixtures of the store's tests: a store in a temporary folder, and child processes that use it meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compactd.storage.folder import FolderStore
from compactd.storage.protocols import Store
from tests.support import postgres
from tests.support.postgres import Relay, Server

if TYPE_CHECKING:
    from compactd.storage.postgres.store import PostgresStore

CHILDREN = Path(__file__).parent / "children"

Spawn = Callable[..., "subprocess.Popen[str]"]
server, database = postgres.server, postgres.database


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FolderStore]:
    store = FolderStore(tmp_path)
    yield store
    await store.close()


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Return a function that starts a script of `children/`. Kill what still runs when the test is over."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str, *arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(CHILDREN / script), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def make(server: Server, database: str) -> Iterator[Callable[..., PostgresStore]]:
    """Return a function that makes stores on `database`: other nodes, as far as they can tell."""
    from compactd.storage.postgres.store import PostgresStore

    made: list[PostgresStore] = []

    def make(tenant: str = "default", patience_s: float = 5.0, relay: Relay | None = None) -> PostgresStore:
        url = (relay or server).url(database)
        made.append(PostgresStore(url, tenant=tenant, patience_s=patience_s))
        return made[-1]

    yield make
    for store in made:
        asyncio.run(store.close())


@pytest.fixture
def relay(server: Server) -> Iterator[Relay]:
    """A relay between stores and the server."""
    with contextlib.closing(Relay(server)) as relay:
        yield relay


@pytest.fixture(params=["files", pytest.param("postgresql", marks=pytest.mark.system)])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store, one after the other."""
    if request.param == "postgresql":
        yield request.getfixturevalue("make")()
    else:
        store = FolderStore(tmp_path)
        yield store
        asyncio.run(store.close())

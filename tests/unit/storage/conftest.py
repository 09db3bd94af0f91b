"""Fixtures of the store's tests: a store in a temporary folder, and child processes that use it meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compactd.storage.folder import FolderStore
from compactd.storage.protocols import Store
from tests.support.postgres import Server, running_server

if TYPE_CHECKING:
    from compactd.storage.postgres.store import PostgresStore

CHILDREN = Path(__file__).parent / "children"

Spawn = Callable[..., "subprocess.Popen[str]"]


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
def make(server: Server, database: str) -> Iterator[Callable[..., PostgresStore]]:
    """Return a function that makes stores on `database`: other nodes, as far as they can tell."""
    from compactd.storage.postgres.store import PostgresStore

    made: list[PostgresStore] = []

    def make(tenant: str = "default", patience_s: float = 5.0) -> PostgresStore:
        made.append(PostgresStore(server.url(database), tenant=tenant, patience_s=patience_s))
        return made[-1]

    yield make
    for store in made:
        asyncio.run(store.close())


@pytest.fixture(params=["files", pytest.param("postgresql", marks=pytest.mark.system)])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store, one after the other."""
    if request.param == "postgresql":
        yield request.getfixturevalue("make")()
    else:
        store = FolderStore(tmp_path)
        yield store
        asyncio.run(store.close())

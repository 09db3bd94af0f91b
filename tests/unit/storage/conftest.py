"""Fixtures of the store's tests: a store in a temporary folder, and child processes that use it meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from compactd.storage.folder import FolderStore

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

"""One daemon that echoes prompts, for all tests of a module; each test has its own session."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from compactd.client import AsyncClient
from tests.unit.cli.chat.staged import client_of


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AsyncClient]:
    async with client_of(tmp_path_factory.mktemp("home")) as one:
        yield one

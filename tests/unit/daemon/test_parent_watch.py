from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from compactd.daemon.lsp.parent_watch import watch_parent

WAYS = pytest.mark.parametrize("use_pidfd", [True, False], ids=["pidfd", "polling"])


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its input ends."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@WAYS
async def test_the_end_of_a_process_is_told_once(child: subprocess.Popen[bytes], use_pidfd: bool) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    watch_parent(child.pid, lambda: told.put_nowait("gone"), asyncio.get_running_loop(), 0.001, use_pidfd)

    assert told.empty()
    child.kill()
    await asyncio.to_thread(child.wait)

    assert await asyncio.wait_for(told.get(), 10) == "gone"
    await asyncio.to_thread(lambda: None)
    assert told.empty()


@WAYS
async def test_a_process_that_is_gone_already_is_told_too(
    child: subprocess.Popen[bytes], use_pidfd: bool
) -> None:
    child.kill()
    child.wait()
    gone = asyncio.Event()

    watch_parent(child.pid, gone.set, asyncio.get_running_loop(), 0.001, use_pidfd)

    await asyncio.wait_for(gone.wait(), 10)


@WAYS
async def test_a_number_that_no_process_can_have_is_one_that_is_gone(use_pidfd: bool) -> None:
    gone = asyncio.Event()

    watch_parent(10**20, gone.set, asyncio.get_running_loop(), 0.001, use_pidfd)

    await asyncio.wait_for(gone.wait(), 10)


@WAYS
async def test_a_process_of_someone_else_is_alive(use_pidfd: bool) -> None:
    gone = asyncio.Event()

    watch_parent(1, gone.set, asyncio.get_running_loop(), 0.001, use_pidfd)
    for _ in range(20):
        await asyncio.to_thread(os.getppid)

    assert not gone.is_set()

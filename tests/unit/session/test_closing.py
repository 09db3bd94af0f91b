"""Opening and closing a session while other requests to it wait, or are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from compactd.core.history.append import AppendRequest
from compactd.protocol.errors import SessionNotFound
from compactd.session.manager import Sessions, Start
from compactd.storage.folder import FolderStore
from tests.faults.simulation.history import NoTrees
from tests.support.quiet_world import Quiet

T = TypeVar("T")


class Slow(Quiet):
    """A world whose work takes a few turns of the event loop."""

    async def in_worker(self, work: Callable[[], T]) -> T:
        for _ in range(5):
            await asyncio.sleep(0)
        return work()


@pytest.fixture
async def sessions(tmp_path: Path) -> Sessions:
    return Sessions(Slow(), FolderStore(tmp_path), lambda _: NoTrees())  # type: ignore[arg-type, return-value]


async def cancelled(task: asyncio.Task[object], after: int) -> None:
    """Cancel a task after some turns of the event loop."""
    for _ in range(after):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))


@pytest.mark.parametrize("after", range(1, 12))
async def test_a_close_that_is_cancelled_does_not_keep_the_lock(sessions: Sessions, after: int) -> None:
    await sessions.start(Start(session_id="s"))

    await cancelled(asyncio.ensure_future(sessions.close("s")), after)

    again = await sessions.start(Start(session_id="s"))
    assert again.session.journal is not None
    assert not again.session.is_closed
    await sessions.close_all()


@pytest.mark.parametrize("after", range(1, 16))
async def test_a_start_that_is_cancelled_does_not_keep_the_lock(sessions: Sessions, after: int) -> None:
    await sessions.start(Start(session_id="s"))
    await sessions.close("s")

    await cancelled(asyncio.ensure_future(sessions.start(Start(session_id="s"))), after)

    again = await sessions.start(Start(session_id="s"))
    assert again.session.journal is not None
    await sessions.close_all()


async def test_a_close_that_waited_spares_a_session_that_is_wanted_again(sessions: Sessions) -> None:
    session = (await sessions.start(Start(session_id="s"))).session

    assert await sessions.close("s", is_kept=lambda: True) is False

    assert sessions.open["s"] is session
    assert await sessions.close("s") is True


async def test_a_session_that_was_closed_meanwhile_takes_no_messages(sessions: Sessions) -> None:
    session = (await sessions.start(Start(session_id="s"))).session
    await sessions.close("s")

    with pytest.raises(SessionNotFound) as refused:
        session.append(AppendRequest(read=(), tokens=()))

    assert refused.value.data == {"session_id": "s", "exists": True}

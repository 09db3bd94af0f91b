"""Requests to a session have their turns in the order in which they came, whatever the others do."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine

import pytest

from compactd.protocol.errors import SessionNotFound
from compactd.session.manager import Sessions, Start
from compactd.session.queue import RequestQueue
from compactd.storage.protocols import Store
from tests.support.quiet_world import Quiet

Play = Callable[[RequestQueue, list[str]], Coroutine[object, object, None]]


async def settled() -> None:
    """Return when nothing can go on by itself any more."""
    for _ in range(30):
        await asyncio.sleep(0)


def short(name: str) -> Play:
    """A request that takes effect at once and then goes on, outside its turn."""

    async def play(queue: RequestQueue, told: list[str]) -> None:
        await queue.wait_turn()
        told.append(name)
        await asyncio.sleep(0.001)
        told.append(f"{name} is answered")

    return play


def long(name: str, until: asyncio.Event) -> Play:
    """A request that keeps its turn."""

    async def play(queue: RequestQueue, told: list[str]) -> None:
        await queue.wait_turn()
        async with queue.hold():
            told.append(name)
            await until.wait()
            told.append(f"{name} is done")

    return play


async def asked(queue: RequestQueue, told: list[str], *plays: Play) -> list[asyncio.Task[None]]:
    """Requests that come one after another, each as a task that has made its first step."""
    tasks = []
    for play in plays:
        tasks.append(asyncio.ensure_future(play(queue, told)))
        await asyncio.sleep(0)
    return tasks


async def test_a_request_has_its_turn_at_once_if_nobody_waits() -> None:
    queue = RequestQueue()

    waiting = queue.wait_turn()

    with pytest.raises(StopIteration):
        waiting.send(None)
    assert queue.is_idle


async def test_requests_that_come_while_one_keeps_its_turn_follow_in_their_order() -> None:
    queue, told, first, third = RequestQueue(), list[str](), asyncio.Event(), asyncio.Event()
    tasks = await asked(queue, told, long("1", first), short("2"), long("3", third), short("4"), short("5"))
    await settled()
    assert told == ["1"]
    assert not queue.is_idle

    first.set()
    await settled()
    assert told[:4] == ["1", "1 is done", "2", "3"]
    third.set()
    await asyncio.gather(*tasks)

    assert [one for one in told if "answered" not in one] == [
        "1",
        "1 is done",
        "2",
        "3",
        "3 is done",
        "4",
        "5",
    ]
    assert queue.is_idle


async def test_nobody_waits_for_what_a_request_does_after_its_turn() -> None:
    queue, told, first = RequestQueue(), list[str](), asyncio.Event()
    tasks = await asked(queue, told, long("1", first), short("2"), short("3"))

    first.set()
    await asyncio.gather(*tasks)

    assert told.index("3") < told.index("2 is answered")


@pytest.mark.parametrize("gone", [(1,), (2,), (1, 2), (1, 2, 3)])
@pytest.mark.parametrize("is_turn", [False, True])
async def test_a_request_that_is_cancelled_blocks_no_later_one(gone: tuple[int, ...], is_turn: bool) -> None:
    """Before its turn, or when its turn has come and it has not noticed yet."""
    queue, told, first, never = RequestQueue(), list[str](), asyncio.Event(), asyncio.Event()
    tasks = await asked(queue, told, long("0", first), *(long(str(n), never) for n in (1, 2, 3)), short("4"))
    if is_turn:
        first.set()
        while not tasks[0].done():
            await asyncio.sleep(0)
    for number in gone:
        tasks[number].cancel()
    first.set()
    await settled()

    kept = [str(number) for number in (0, 1, 2, 3) if number not in gone]
    assert [one for one in told if len(one) == 1][:2] == [*kept, "4"][:2]
    never.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [one for one in told if len(one) == 1] == [*kept, "4"]
    assert queue.is_idle


async def test_a_request_that_fails_or_is_cancelled_in_its_turn_gives_it_on() -> None:
    queue, told = RequestQueue(), list[str]()

    async def failing(queue: RequestQueue, told: list[str]) -> None:
        async with queue.turn():
            await asyncio.sleep(0)
            raise LookupError("of the test")

    tasks = await asked(queue, told, long("1", asyncio.Event()), failing, short("3"))
    tasks[0].cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(one) for one in done[:2]] == [asyncio.CancelledError, LookupError]
    assert told == ["1", "3", "3 is answered"]
    assert queue.is_idle


async def test_a_request_whose_turn_another_took_before_its_first_step_waits_for_it() -> None:
    """An editor's command may run between the call of a handler and the first step of its task."""
    queue, told, first, second = RequestQueue(), list[str](), asyncio.Event(), asyncio.Event()

    async def late(queue: RequestQueue, told: list[str]) -> None:
        async with queue.hold():
            told.append("late")
            await second.wait()

    tasks = await asked(queue, told, long("1", first), late, short("3"))
    await settled()
    assert told == ["1"]

    first.set()
    await settled()
    assert told == ["1", "1 is done", "late"]
    second.set()
    await asyncio.gather(*tasks)
    assert told[3:] == ["3", "3 is answered"]
    assert queue.is_idle


async def test_a_transition_is_known_from_when_it_waits_until_it_is_done() -> None:
    queue, told, first = RequestQueue(), list[str](), asyncio.Event()

    async def closing(queue: RequestQueue, told: list[str]) -> None:
        async with queue.transition():
            told.append(f"closing {queue.is_in_transition}")
            await asyncio.sleep(0)

    tasks = await asked(queue, told, long("1", first))
    assert not queue.is_in_transition
    tasks += await asked(queue, told, closing, closing)
    assert queue.is_in_transition
    tasks[1].cancel()
    await settled()
    assert queue.is_in_transition

    first.set()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert told == ["1", "1 is done", "closing True"]
    assert not queue.is_in_transition


class Nothing(Store):
    """A store without sessions."""

    def exists(self, session_id: str) -> bool:
        """None does."""
        return False


async def test_a_queue_is_kept_while_its_session_is_open_and_no_longer() -> None:
    sessions = Sessions(Quiet(), Nothing(), lambda _: None)  # type: ignore[abstract, arg-type, return-value]
    started = await sessions.start(Start(session_id="s1", persist=False))
    queue = sessions.queues["s1"]
    assert started.session.queue is queue
    assert queue.is_idle
    again = await sessions.start(Start(session_id="s1", persist=False))
    assert again.session.queue is queue

    closing = [asyncio.ensure_future(sessions.close("s1")) for _ in range(2)]
    first, second = await asyncio.gather(*closing, return_exceptions=True)

    assert first is True
    assert isinstance(second, SessionNotFound)
    assert queue.is_idle
    del started, again, queue, closing, first, second
    gc.collect()
    assert not sessions.queues

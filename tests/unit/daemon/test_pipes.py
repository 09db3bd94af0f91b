"""Pipes are read on the event loop, other inputs in a thread. Small output is written on the event loop,
large output in a thread. The order is always kept.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.daemon.rpc.checked_body import BodyCheck
from compactd.daemon.rpc.framing import Framer
from compactd.daemon.rpc.reader import PipeReader
from compactd.daemon.rpc.writer import PipeWriter
from tests.support.examples import examples

PIECES = st.lists(
    st.one_of(st.integers(1, 200), st.sampled_from([4_096, 65_536, 65_537, 200_000])), min_size=1, max_size=12
)


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def bodies_of(sizes: Sequence[int]) -> list[bytes]:
    return [b'{"%d":"%b"}' % (number, b"x" * size) for number, size in enumerate(sizes)]


class Taken:
    """What a reader delivers, taken as the connection takes it."""

    def __init__(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        self.bodies: list[bytes] = []
        self.threads: list[bool] = []
        """For each body, whether a reading thread existed."""
        self.ended = loop.create_future()
        self._count = loop.create_future()
        self._wanted = 0
        self._others = set(threading.enumerate())
        self.reader = PipeReader(fd, Framer(), loop, self._ready)
        self.reader.start()

    def new_threads(self) -> list[str]:
        """The names of those that came since."""
        return [one.name for one in set(threading.enumerate()) - self._others]

    async def until(self, count: int) -> None:
        """Returns when so many bodies were taken."""
        if len(self.bodies) < count:
            self._count, self._wanted = asyncio.get_running_loop().create_future(), count
            await self._count

    def _ready(self) -> None:
        while self.reader.frames:
            frame = self.reader.frames.popleft()
            if frame is None:
                self.ended.set_result(None)
                break
            assert isinstance(frame, bytes | bytearray | BodyCheck)
            self.bodies.append(bytes(frame.text if isinstance(frame, BodyCheck) else frame))
            self.threads.append("compactd-reader" in self.new_threads())
            if len(self.bodies) == self._wanted and not self._count.done():
                self._count.set_result(None)
        self.reader.resume()


def write_all(fd: int, pieces: Sequence[bytes]) -> None:
    for piece in pieces:
        view = memoryview(piece)
        while view:
            view = view[os.write(fd, view) :]


@settings(max_examples=examples(25), deadline=None)
@given(sizes=PIECES, cuts=PIECES)
def test_what_comes_is_handed_over_in_order_however_long_it_is_and_however_it_was_cut(
    sizes: list[int], cuts: list[int]
) -> None:
    bodies = bodies_of(sizes)
    data = b"".join(map(framed, bodies))
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        pieces.append(data[at : at + cuts[len(pieces) % len(cuts)] * 97])
        at += len(pieces[-1])

    async def run() -> list[bytes]:
        fd, end = os.pipe()
        taken = Taken(fd)
        await asyncio.to_thread(write_all, end, pieces)
        os.close(end)
        await taken.ended
        os.close(fd)
        return taken.bodies

    assert asyncio.run(run()) == bodies


def test_no_thread_is_needed_for_a_pipe_however_large_the_messages_are() -> None:
    small, large = bodies_of([20])[0], bodies_of([3_000_000])[0]
    seen: list[bool] = []

    async def run() -> list[bytes]:
        fd, end = os.pipe()
        taken = Taken(fd)
        for number in range(3):
            os.write(end, framed(small))
            await taken.until(number + 1)
        await asyncio.to_thread(write_all, end, [framed(large)])
        await taken.until(4)
        for number in range(4, 9):
            os.write(end, framed(small))
            await taken.until(number + 1)
        seen.append(any(taken.threads))
        os.close(end)
        await taken.ended
        os.close(fd)
        return taken.bodies

    bodies = asyncio.run(run())

    assert bodies == [small] * 3 + [large] + [small] * 5
    assert seen == [False]


def test_nothing_is_read_from_a_pipe_between_pause_and_resume() -> None:
    bodies = bodies_of([20, 20])
    seen: list[int] = []

    async def run() -> list[bytes]:
        fd, end = os.pipe()
        taken = Taken(fd)
        os.write(end, framed(bodies[0]))
        await taken.until(1)
        taken.reader.pause()
        os.write(end, framed(bodies[1]))
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append(len(taken.bodies))
        taken.reader.resume()
        await taken.until(2)
        os.close(end)
        await taken.ended
        os.close(fd)
        return taken.bodies

    assert asyncio.run(run()) == bodies
    assert seen == [1]


def test_a_file_as_input_is_read_to_its_end(tmp_path: Path) -> None:
    bodies = bodies_of([10, 100_000, 10])
    file = tmp_path / "input"
    file.write_bytes(b"".join(map(framed, bodies)))

    async def run() -> list[bytes]:
        with file.open("rb") as opened:
            taken = Taken(opened.fileno())
            await taken.ended
            return taken.bodies

    assert asyncio.run(run()) == bodies


@pytest.mark.parametrize("kind", ["pipe", "socket"])
@settings(max_examples=examples(15), deadline=None)
@given(sizes=st.lists(st.sampled_from([1, 4_096, 4_097, 40_000, 65_536, 300_000]), min_size=1, max_size=8))
def test_what_is_written_arrives_whole_and_in_order_while_nobody_reads_at_first(
    kind: str, sizes: list[int]
) -> None:
    pieces = [bytes((number,)) * size for number, size in enumerate(sizes)]

    async def run() -> bytes:
        loop = asyncio.get_running_loop()
        if kind == "pipe":
            fd, end = os.pipe()
        else:
            fd, end = (one.detach() for one in socket.socketpair())
        writer = PipeWriter(end, loop, lambda: None)
        for piece in pieces:
            writer.write(piece)
            writer.flush()  # the loop is never held, however full it is

        def read() -> bytes:
            found = bytearray()
            while len(found) < sum(sizes):
                found += os.read(fd, 1 << 16)
            return bytes(found)

        data = await asyncio.to_thread(read)
        sent = asyncio.Event()
        writer.when_below(0, sent.set)
        await sent.wait()
        os.close(fd)
        os.close(end)
        return data

    assert asyncio.run(run()) == b"".join(pieces)

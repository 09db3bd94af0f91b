"""The user's keys and limits: read in a thread, not in the event loop; the values read last are used."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from time import monotonic

import pytest

from compactd.models.access import ModelAccess
from compactd.protocol.errors import NoProvider

FOREVER_S = 30.0


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return path


def test_a_key_in_the_file_counts_once_it_was_read_and_a_new_one_at_the_next_reading(tmp_path: Path) -> None:
    access = ModelAccess({}, tmp_path)
    with pytest.raises(NoProvider):
        access.provider("groq/llama", None, None)

    written(tmp_path, "keys.toml", 'groq = "gsk-1"')
    asyncio.run(access.read(FOREVER_S))

    assert access.provider("groq/llama", None, None)[1] == "llama"


def test_a_limit_that_is_no_number_is_told_and_nobody_is_asked(tmp_path: Path) -> None:
    written(tmp_path, "config.toml", '[providers]\nidle_s = "soon"\n')
    access = ModelAccess({"OPENAI_API_KEY": "sk-1"}, tmp_path)
    asyncio.run(access.read(FOREVER_S))

    with pytest.raises(NoProvider, match="idle_s"):
        access.provider("openai/gpt-4.1", None, None)


@pytest.mark.parametrize("name", ["keys.toml", "config.toml"])
def test_a_file_that_hangs_does_not_hold_the_loop_and_the_environments_key_stands(
    tmp_path: Path, name: str
) -> None:
    pipe = tmp_path / name
    os.mkfifo(pipe, 0o600)
    access = ModelAccess({"OPENAI_API_KEY": "sk-1"}, tmp_path)
    ticks = 0

    async def run() -> None:
        nonlocal ticks
        reading = asyncio.ensure_future(access.read(0.05))
        while not reading.done():
            ticks += 1
            await asyncio.sleep(0)
        reading.result()

    began = monotonic()
    asyncio.run(run())
    assert ticks > 10
    assert monotonic() - began < FOREVER_S
    assert access.provider("openai/gpt-4.1", None, None)[1] == "gpt-4.1"
    # Open and close the pipe's writing end, so that the thread that still reads it ends.
    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


def test_those_who_ask_at_once_share_a_look_that_began_after_they_asked(tmp_path: Path) -> None:
    access = ModelAccess({}, tmp_path)
    named: list[str] = []

    async def asked() -> None:
        await access.read(FOREVER_S)
        named.append(access.provider("groq/llama", None, None)[1])

    async def run() -> int:
        first = asyncio.ensure_future(access.read(FOREVER_S))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        written(tmp_path, "keys.toml", 'groq = "gsk-1"')
        tasks = [asyncio.ensure_future(asked()) for _ in range(100)]
        await asyncio.sleep(0)
        beside = len(asyncio.all_tasks()) - len(tasks) - 1
        await asyncio.gather(first, *tasks)
        return beside

    beside = asyncio.run(run())

    assert named == 100 * ["llama"]
    assert beside <= 3  # the first, and two looks


def test_whoever_gives_up_waiting_for_a_look_leaves_it_to_the_others(tmp_path: Path) -> None:
    written(tmp_path, "keys.toml", 'groq = "gsk-1"')
    access = ModelAccess({}, tmp_path)

    async def run() -> None:
        tasks = [asyncio.ensure_future(access.read(FOREVER_S)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.gather(*tasks[1:])
        await access.read(FOREVER_S)

    asyncio.run(run())

    assert access.provider("groq/llama", None, None)[1] == "llama"

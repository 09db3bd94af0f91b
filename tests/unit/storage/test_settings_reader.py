"""Settings from files: read in a thread, not in the event loop, and only when a session is opened."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from threading import enumerate as enumerate_threads

import pytest

from compactd.protocol.settings import GivenSettings
from compactd.storage.settings_reader import SettingsSources, run_in_own_thread

HANGS_S = 0.05


def said(outside: SettingsSources, folder: Path) -> dict[str, int | None]:
    """Return the `prune_minimum` that each file sets."""
    layers: dict[str, GivenSettings] = dict(outside.layers(str(folder)))
    return {name: layer.prune_minimum for name, layer in layers.items() if name != "environment"}


def write(folder: Path, minimum: int, name: str = ".compactd.toml") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"[compaction]\nprune_minimum = {minimum}\n")


async def test_files_are_read_when_asked_and_the_workspaces_goes_before_the_users(tmp_path: Path) -> None:
    work, config = tmp_path / "work", tmp_path / "config"
    write(work, 5001)
    write(config, 2, "config.toml")
    outside = SettingsSources({}, config, data=tmp_path)
    unread = said(outside, work)

    await outside.read(str(work))
    write(work, 5003)

    assert unread == {}
    assert said(outside, work) == {".compactd.toml": 5001, "config.toml": 2}
    assert said(outside, tmp_path) == {"config.toml": 2}
    await outside.read(str(work))
    assert said(outside, work) == {".compactd.toml": 5003, "config.toml": 2}
    assert outside.warnings(str(work)) == ()


async def test_a_folders_file_that_hangs_is_told_of_and_what_it_said_before_is_not_in_force(
    tmp_path: Path,
) -> None:
    write(tmp_path, 5001)
    os.mkfifo(tmp_path / "pipe")  # reading it blocks: it never gets a writer
    outside = SettingsSources({}, tmp_path, HANGS_S, tmp_path)
    await outside.read(str(tmp_path))

    (tmp_path / "pipe").replace(tmp_path / ".compactd.toml")
    await outside.read(str(tmp_path))

    assert said(outside, tmp_path) == {}
    (told,) = outside.warnings(str(tmp_path))
    assert told == ".compactd.toml could not be read within 0.05 seconds: it is ignored"


async def test_the_users_file_that_hangs_is_told_of_and_what_it_said_before_stays(tmp_path: Path) -> None:
    write(tmp_path, 5001, "config.toml")
    os.mkfifo(tmp_path / "pipe")
    outside = SettingsSources({}, tmp_path, HANGS_S, tmp_path)
    await outside.read(None)

    (tmp_path / "pipe").replace(tmp_path / "config.toml")
    await outside.read(None)
    await outside.read(None)

    assert said(outside, tmp_path) == {"config.toml": 5001}
    assert outside.warnings(None) == (
        "config.toml could not be read within 0.05 seconds: its earlier settings stay in force",
    )


async def test_a_users_file_that_hangs_from_the_start_lets_no_model_be_asked(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    outside = SettingsSources({}, tmp_path, HANGS_S, tmp_path)

    await outside.read(None)
    await outside.read(None)

    ((_, given),) = (layer for layer in outside.layers(None) if layer[0] == "config.toml")
    assert (given.strategy, given.max_cost) == ("extract", 0.0)
    assert "no model is asked" in outside.warnings(None)[0]


async def test_a_file_that_hangs_holds_one_thread_however_many_ask_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".compactd.toml")
    before = set(enumerate_threads())
    outside = SettingsSources({}, tmp_path / "config", HANGS_S, tmp_path)

    await asyncio.gather(*(outside.read(str(tmp_path)) for _ in range(4)))
    for _ in range(4):
        await outside.read(str(tmp_path))

    ours = [one for one in set(enumerate_threads()) - before if one.name == "compactd-settings"]
    assert len(ours) == 1


async def test_what_is_read_is_no_older_than_the_question(tmp_path: Path) -> None:
    """The first read blocks on a pipe. A second read that is asked for meanwhile sees the file that replaces
    the pipe."""
    os.mkfifo(tmp_path / ".compactd.toml")
    outside = SettingsSources({}, tmp_path / "config", 20, tmp_path)
    first = asyncio.ensure_future(outside.read(str(tmp_path)))
    writer = await asyncio.to_thread(os.open, tmp_path / ".compactd.toml", os.O_WRONLY)
    second = asyncio.ensure_future(outside.read(str(tmp_path)))
    _file(tmp_path, 5003).replace(tmp_path / ".compactd.toml")
    os.write(writer, b"[compaction]\nprune_minimum = 5001\n")
    os.close(writer)

    await asyncio.gather(first, second)

    assert said(outside, tmp_path) == {".compactd.toml": 5003}


def _file(folder: Path, minimum: int) -> Path:
    write(folder, minimum, "new.toml")
    return folder / "new.toml"


async def test_what_a_thread_raises_reaches_who_waits_for_it() -> None:
    def broken() -> None:
        raise LookupError("a mistake of ours")

    with pytest.raises(LookupError, match="of ours"):
        await run_in_own_thread(broken)


async def test_a_file_that_hangs_from_the_start_sets_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".compactd.toml")
    outside = SettingsSources({}, tmp_path / "config", HANGS_S, tmp_path)

    await outside.read(str(tmp_path))

    assert said(outside, tmp_path) == {}
    assert "it is ignored" in outside.warnings(str(tmp_path))[0]


@pytest.mark.parametrize("folder", ["somewhere", "", "/nul\0byte", "/not/there"])
async def test_a_folder_that_cannot_have_a_file_says_nothing(tmp_path: Path, folder: str) -> None:
    outside = SettingsSources({}, tmp_path, data=tmp_path)

    await outside.read(folder)

    assert (said(outside, Path(folder)), outside.warnings(folder)) == ({}, ())

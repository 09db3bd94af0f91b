"""The simulation itself: the same seed gives the same history, and it finds the faults that it should find.

docs/proof.md says how many steps were played and which breaks were found.
"""

from __future__ import annotations

import errno
import gc
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import CoroutineType

import pytest

from compactd.storage import files
from tests.faults.simulation.history import Failed, History
from tests.faults.simulation.machine import Machine
from tests.faults.simulation.platter import Platter
from tests.faults.simulation.sharing.history import SharedHistory, bury


@pytest.fixture(autouse=True)
def _dead_coroutines() -> Iterator[None]:
    """Free what dead daemons leave, without warnings about their coroutines. A record that pytest keeps of a
    logged error would hold it until another test runs.
    """
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    logger = logging.getLogger("compactd")
    logger.propagate = False
    yield
    bury()
    logger.propagate = True
    sys.unraisablehook = before


def unfinished() -> set[CoroutineType[object, object, object]]:
    """Return the coroutines of daemons that have not ended."""
    found = [one for one in gc.get_objects() if isinstance(one, CoroutineType) and one.cr_frame is not None]
    return {one for one in found if "/compactd/" in one.cr_code.co_filename}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(1, 9))
def test_a_history_of_sessions_is_clean(seed: int) -> None:
    played = History(seed, 250).play()

    assert played.steps >= 250


@pytest.mark.filterwarnings("ignore")
def test_nothing_of_a_daemon_that_died_is_left_to_end_in_another_test() -> None:
    before = unfinished()
    SharedHistory(11, 300).play()
    bury()

    assert not unfinished() - before


@pytest.mark.filterwarnings("ignore")
def test_a_seed_plays_again_alike() -> None:
    first, again = History(11, 300), History(11, 300)

    assert first.play() == again.play()
    assert first.digest == again.digest


@pytest.mark.filterwarnings("ignore")
def test_a_history_that_loses_something_fails_at_a_step_that_it_names() -> None:
    history = History(11, 300)
    history.play()
    for kept in history._reference.sessions.values():
        kept.acknowledged.append(b'{"type":"message","id":"never"}')
        kept.durability = "disk"
    history._most_steps = 2_000

    with pytest.raises(Failed) as failed:
        history.play()

    assert failed.value.step > 300
    assert f"seed 11, step {failed.value.step}" in str(failed.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(1, 6))
def test_a_history_of_shared_daemons_is_clean(seed: int) -> None:
    played = SharedHistory(seed, 250).play()

    assert played.steps >= 250
    assert played.messages > 100


@pytest.mark.filterwarnings("ignore")
def test_a_seed_of_shared_daemons_plays_again_alike() -> None:
    first, again = SharedHistory(11, 300), SharedHistory(11, 300)

    assert first.play() == again.play()
    assert first.digest == again.digest


@pytest.mark.filterwarnings("ignore")
def test_a_message_that_a_shared_session_does_not_have_fails_its_history() -> None:
    history = SharedHistory(11, 100)
    history.play()
    history._sessions["s1"].said["e1"] = b"never"
    history._most_steps = 2_000

    with pytest.raises(Failed) as failed:
        history.play()

    assert f"seed 11, step {failed.value.step}" in str(failed.value)


def machine(dice: Random) -> Machine:
    """A process on an empty disk that has a folder /there."""
    platter = Platter()
    platter.root.change(("there", platter.folder()))
    platter.root.sync()
    return Machine(platter, dice, lambda _: None)


def written(disk: Machine, *, is_synced: bool, is_named: bool) -> Path:
    path = Path("/there/file")
    fd = disk.open(path, 0o102)
    files.write_all(fd, [b"x" * 9_000], disk)
    if is_synced:
        disk.sync(fd)
    if is_named:
        disk.sync_folder(path.parent)
    return path


def left(disk: Machine, path: Path) -> bytes | None:
    disk.die("power")
    found = disk.platter.at(path)
    return None if found is None else bytes(getattr(found, "data", b""))


def test_a_power_cut_leaves_what_was_synced_and_anything_of_the_rest() -> None:
    ends = set()
    for seed in range(60):
        safe = machine(Random(seed))
        assert left(safe, written(safe, is_synced=True, is_named=True)) == b"x" * 9_000

        torn = machine(Random(seed))
        ends.add(left(torn, written(torn, is_synced=False, is_named=True)))
        nameless = machine(Random(seed))
        ends.add(left(nameless, written(nameless, is_synced=True, is_named=False)))

    assert {None, b"", b"x" * 9_000} <= ends
    assert any(end is not None and b"\0" in end and b"x" in end for end in ends)


def test_a_sync_that_failed_says_yes_when_it_is_asked_again() -> None:
    ends = set()
    for seed in range(20):
        disk = machine(Random(seed))
        path = Path("/there/file")
        fd = disk.open(path, 0o102)
        disk.sync_folder(path.parent)
        disk.write(fd, b"x" * 100)
        disk.refuses_in = (0, errno.EIO)
        with pytest.raises(OSError, match="Input/output"):
            disk.sync(fd)
        disk.sync(fd)
        ends.add(left(disk, path))

    assert b"" in ends

"""After a compaction, files below the working directory are compared with the disk, for a limited time."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from compactd.compaction.reread_advice import READ_BYTES, check_files
from compactd.core.extract.recent_files import SeenFile
from compactd.protocol.messages import RereadAdvice

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes as POSIX has them")


def advice(folder: Path, *seen: SeenFile, deadline_s: float = 5.0) -> Sequence[RereadAdvice]:
    return asyncio.run(check_files(seen, str(folder), deadline_s))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src/same.py").write_text("a\nb\n")
    (folder / "changed.py").write_text("x\n")
    (tmp_path / "outside.py").write_text("secret")
    return folder


def test_each_file_is_told_as_it_is_on_disk(work: Path) -> None:
    seen = (
        SeenFile("src/same.py", "a\nb"),
        SeenFile(f"{work}/changed.py", "y"),
        SeenFile("gone.py", "z"),
        SeenFile("./changed.py", None),
    )

    assert advice(work, *seen) == (
        RereadAdvice(path="src/same.py", state="unchanged", size_bytes=4),
        RereadAdvice(path=f"{work}/changed.py", state="changed", size_bytes=2),
        RereadAdvice(path="gone.py", state="missing"),
        RereadAdvice(path="./changed.py", state="unknown", size_bytes=2),
    )


@pytest.mark.parametrize(
    "path",
    [
        "../outside.py",
        "/etc/passwd",
        "~/x",
        "src/../../outside.py",
        "link.py",
        "folder/outside.py",
        "",
        "a\0b",
    ],
)
def test_nothing_outside_the_working_directory_is_looked_at(work: Path, path: str) -> None:
    (work / "link.py").symlink_to(work.parent / "outside.py")
    (work / "folder").symlink_to(work.parent)

    assert advice(work, SeenFile(path, "secret")) == ()


def test_the_folder_may_be_known_by_another_of_its_names(work: Path) -> None:
    (work.parent / "alias").symlink_to(work)
    by_alias = work.parent / "alias"

    seen = advice(by_alias, SeenFile(f"{by_alias}/src/same.py", "a\nb"))

    assert [one.state for one in seen] == ["unchanged"]


def test_what_is_no_file_or_too_large_is_unknown(work: Path) -> None:
    os.mkfifo(work / "pipe.py")
    (work / "large.py").write_bytes(b"x" * (READ_BYTES + 1))

    found = advice(work, SeenFile("pipe.py", "x"), SeenFile("large.py", "x"), SeenFile("src", "x"))

    assert found == (
        RereadAdvice(path="pipe.py", state="unknown"),
        RereadAdvice(path="large.py", state="unknown", size_bytes=READ_BYTES + 1),
        RereadAdvice(path="src", state="unknown"),
    )


def test_bytes_that_are_no_text_differ_from_what_was_seen(work: Path) -> None:
    (work / "data.py").write_bytes(b"\xff\xfe\x00")

    assert [one.state for one in advice(work, SeenFile("data.py", "text"))] == ["changed"]


def test_at_its_deadline_what_was_not_looked_at_is_unknown(work: Path) -> None:
    found = advice(work, *(SeenFile(f"f{n}.py", "x") for n in range(20)), deadline_s=0.0)

    assert len(found) == 20
    assert {one.state for one in found} <= {"unknown", "missing"}

"""The load tests of `benchmarks.load`, small: nothing is lost, every request is answered. No time limits."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from benchmarks.load.__main__ import PARTS, measured
from benchmarks.load.bench import SIZES, Bench
from benchmarks.load.soak import soak
from benchmarks.peers import environment

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux tells of a process so")

NONE_OF = ("  answers not given, once it reads", "  messages lost", "  not compacted", "  descriptors more")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a measurement, but with existing bytecode, because time does not matter
    here."""
    made = environment(tmp_path, tmp_path / "home")
    made.pop("PYTHONPYCACHEPREFIX")
    kept = {name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX",) if name in os.environ}
    return {**made, **kept}


def test_a_daemon_under_load_answers_everything_and_loses_nothing(
    tmp_path: Path, env: dict[str, str]
) -> None:
    rows = asyncio.run(measured(Bench(SIZES["smoke"], tmp_path, env), PARTS))

    assert len([row for row in rows if row.what.startswith(NONE_OF)]) == len(NONE_OF)
    assert [row.what for row in rows if row.what.startswith(NONE_OF) and row.value] == []


def test_a_soak_with_kills_finds_every_acknowledged_message(tmp_path: Path, env: dict[str, str]) -> None:
    found = asyncio.run(soak(tmp_path, env, minutes=0.03, file=tmp_path / "soak.json", kill_s=0.8))

    assert found.kills
    assert found.looked_at > 0
    assert found.lost == 0

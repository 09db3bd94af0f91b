"""The picture of the package's rooms matches the imports and is small enough to read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "dev" / "house.svg"


def test_the_picture_of_the_house_is_drawn_from_the_imports_of_today() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "house_picture.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_picture_has_at_most_twelve_rooms_and_every_arrow_points_down() -> None:
    lines = PICTURE.read_text("utf-8").splitlines()
    arrows = [line.split('"') for line in lines if line.startswith("<line ")]

    assert len([line for line in lines if line.startswith("<rect ")]) <= 12
    assert len(arrows) > 10
    assert all(int(arrow[3]) < int(arrow[7]) for arrow in arrows)

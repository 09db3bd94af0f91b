"""The pictures in docs/ show what the program shows now. If not, the tool says how to draw them again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("tool", ["pictures.py", "chat_picture.py", "terminal_picture.py"])
def test_a_picture_is_what_the_program_draws_now(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / tool, "--check"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("picture", ["inspect.svg", "chat.svg", "first-day.svg"])
def test_a_picture_fetches_nothing(picture: str) -> None:
    svg = (ROOT / "docs" / picture).read_text("utf-8")

    assert [one for one in ("@font-face", "url(http", "<image", "<script", "@import") if one in svg] == []

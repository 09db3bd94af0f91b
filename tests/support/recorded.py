"""Finds the recorded sessions that tests read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def folder() -> Path | None:
    """The folder with `MANIFEST.json`; none where the data is not on this machine."""
    data = Path(os.environ["COMPACTD_TEST_DATA"]) if "COMPACTD_TEST_DATA" in os.environ else _BESIDE
    sessions = data / "sessions"
    return sessions if (sessions / "MANIFEST.json").exists() else None


def sessions(*formats: str) -> list[dict[str, Any]]:
    """The manifest's rows of these formats; none where the data is not on this machine."""
    found = folder()
    if found is None:
        return []
    rows = json.loads((found / "MANIFEST.json").read_text())
    return [row for row in rows if row["format"] in formats]

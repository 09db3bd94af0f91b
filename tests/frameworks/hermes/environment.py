"""The environment of Hermes Agent: outside the tree, with pinned versions. Used by setup.sh too, so it
needs only Python.

    python tests/frameworks/hermes/environment.py   prints its folder, whether it exists or not

compactd is not installed in it. It is imported from this checkout.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LOCK = HERE / "requirements.lock"
INSTALLED = ".installed"
"""The file that setup.sh writes last."""


def folder() -> Path:
    """Return the folder of the environment for this lock file and this version of Python."""
    key = hashlib.sha256(LOCK.read_bytes() + repr(sys.version_info[:3]).encode()).hexdigest()[:12]
    cache = os.environ.get("COMPACTD_TEST_CACHE") or Path.home() / ".cache" / "compactd-tests"
    return Path(cache) / f"hermes-{key}"


def python() -> Path | None:
    """Return the environment's Python; None if setup.sh has not installed it."""
    place = folder()
    return place / "bin" / "python" if (place / INSTALLED).exists() else None


def command(*arguments: str) -> list[str]:
    """Return the command that runs the tests of this folder with Hermes' Python."""
    return [str(python()), "-m", "pytest", "-rs", "-m", "framework", str(HERE.relative_to(ROOT)), *arguments]


if __name__ == "__main__":
    print(folder())

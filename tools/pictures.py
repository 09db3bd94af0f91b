"""Draws docs/inspect.svg, the picture of the README, with the real program and the session in examples/.

    python tools/pictures.py [--check]

`--check` writes nothing and exits with 1 if the picture is out of date.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SESSION = ROOT / "examples" / "session.jsonl"
PICTURE = ROOT / "docs" / "inspect.svg"
MODEL = "anthropic/claude-sonnet-4-5"
"""The example names no model. With this one, the picture shows a known window."""


def drawn() -> bytes:
    """Draws the picture in a temporary home folder, so that no setting of this machine has an effect."""
    with tempfile.TemporaryDirectory() as home:
        target = Path(home) / "inspect.svg"
        env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": home,
            "COMPACTD_HOME": f"{home}/data",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "server"), os.environ.get("PYTHONPATH", "")]),
        }
        command = [sys.executable, "-m", "compactd", "inspect", str(SESSION), "--model", MODEL]
        subprocess.run([*command, "--svg", str(target)], env=env, check=True, stdout=subprocess.DEVNULL)
        return target.read_bytes()


def main(arguments: list[str]) -> int:
    """Writes or checks the picture. Returns the exit code."""
    picture = drawn()
    if arguments == ["--check"]:
        if not PICTURE.is_file() or PICTURE.read_bytes() != picture:
            print("docs/inspect.svg is out of date; run: python tools/pictures.py", file=sys.stderr)
            return 1
        return 0
    PICTURE.write_bytes(picture)
    print(f"wrote {PICTURE.relative_to(ROOT)}, {len(picture):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

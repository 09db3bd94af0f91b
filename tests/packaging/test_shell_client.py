"""Twenty lines of shell and jq can be a client: examples/session.sh."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.client import environment

pytestmark = pytest.mark.system

SCRIPT = Path(__file__).parents[2] / "examples" / "session.sh"


def test_a_shell_script_runs_a_session(tmp_path: Path) -> None:
    env = environment(tmp_path / "home", {"COMPACTD": f"{sys.executable} -m compactd serve"})

    done = subprocess.run(["sh", str(SCRIPT)], env=env, capture_output=True, timeout=60, text=True)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "the next request: over",
        "compacted: true",
        "to send: 7 messages, the first by the user, below 10,000 tokens: true",
        "refused: the undone conversation would not fit",
        "ended well",
    ]
    assert "cannot fit" in done.stderr, "an undo that would not fit is refused"

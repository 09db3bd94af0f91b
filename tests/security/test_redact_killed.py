"""After a kill during a redaction, a secret is in no file any more, or the session still shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.client import Daemon, environment
from tests.support.redacted import PASTED, SECRET, on_disk, started
from tests.support.talk import turns

ROOT = Path(__file__).resolve().parents[2]


def test_at_no_touch_of_the_disk_does_a_kill_leave_the_secret_where_nobody_looks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Daemon(home) as daemon:
        session = started(daemon, [PASTED, *turns(5, 20)])
        assert daemon.call("session/search", query="root", limit=1)["hits"]
        assert daemon.stop() == 0
    assert len(on_disk(home, SECRET)) >= 2, "the journal and the index"

    done = subprocess.run(
        [sys.executable, "-m", "tests.security.children_redact", str(home), session, "e1"],
        capture_output=True,
        env={**environment(home), "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
        timeout=100,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    kills = int(done.stdout)
    left = [on_disk(tmp_path / f"home-{number}", SECRET) for number in range(kills + 1)]
    has_journal = [any(name.endswith(".jsonl") for name in names) for names in left]
    assert kills > 8
    assert (has_journal[0], left[-1]) == (True, [])
    # From one place on it is gone, and before it nothing hides it: what the session says is what is there.
    assert has_journal == sorted(has_journal, reverse=True)
    assert [names for names, has in zip(left, has_journal, strict=True) if names and not has] == []

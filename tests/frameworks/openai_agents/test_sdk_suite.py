"""The SDK's own tests of sessions and runs, with our session instead of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.frameworks.environment import ROOT, variables


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_sdks_own_tests_pass_with_our_session() -> None:
    command = [sys.executable, "-m", "tests.frameworks.openai_agents.sdk_suite"]
    done = subprocess.run(command, cwd=ROOT, env=variables(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4_000:]
    assert " passed" in done.stdout

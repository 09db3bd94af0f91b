"""What tests of git are marked with: `make test` runs them where git is; `make test-system` installs it.

None of them is skipped: where there is no git they are not among those that `make test` chooses, and the
tests of what the daemon does without git are (e2e/test_diff_without_git.py).
"""

from __future__ import annotations

import shutil
from typing import TypeVar

import pytest

T = TypeVar("T")

needs_git = [pytest.mark.git] if shutil.which("git") else [pytest.mark.git, pytest.mark.system]
"""For `pytestmark`."""


def of_git(test: T) -> T:
    """The same for a single test."""
    for mark in needs_git:
        test = mark(test)
    return test

"""The pytest marks of tests that need git. `make test` runs them if git is installed.

Without git they are not skipped but deselected: `make test` does not choose them, and `make test-system`,
which installs git, does. Tests of the daemon without git are in e2e/test_diff_without_git.py.
"""

from __future__ import annotations

import shutil
from typing import TypeVar

import pytest

T = TypeVar("T")

needs_git = [pytest.mark.git] if shutil.which("git") else [pytest.mark.git, pytest.mark.system]
"""The marks, as a value for `pytestmark`."""


def of_git(test: T) -> T:
    """Mark a single test as one that needs git."""
    for mark in needs_git:
        test = mark(test)
    return test

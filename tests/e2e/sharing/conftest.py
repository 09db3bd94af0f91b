"""Shared daemons for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.sharing import Shared

Share = Callable[..., Shared]


@pytest.fixture
def share(tmp_path: Path) -> Iterator[Share]:
    """Starts shared daemons on this test's data folder."""
    with ExitStack() as stack:

        def make(**options: object) -> Shared:
            return stack.enter_context(Shared(tmp_path / "home", **options))  # type: ignore[arg-type]

        yield make


@pytest.fixture
def shared(share: Share) -> Shared:
    """A shared daemon with its defaults."""
    return share()

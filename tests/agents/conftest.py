"""For tests in real agents: a model on loopback, and long timeouts for busy machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.claude_code.driven import Model

HERE = Path(__file__).parent
LONGEST_S = 900
"""Seconds for one test. Each wait in it gives up long before, and says what it waited for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONGEST_S))


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    with made.server:
        yield made

"""Each framework's own ways run on the provider of these tests, as benchmarks/frameworks measures them."""

from __future__ import annotations

import pytest

from benchmarks.frameworks.measure import have, runners
from benchmarks.frameworks.runners import Runner
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.talk import talk

APART = ("Hermes Agent", "OpenClaw")
"""Frameworks that have environments and tests of their own."""
OWN = [runner for runner in runners() if runner.kind != "compactd" and runner.framework not in APART]
TOO_LARGE = ("maximum context length", "context window", "maximum number of tokens allowed")
"""What the providers' errors say."""
SMALL = talk(lots=2, parts=7)


@pytest.mark.parametrize("runner", OWN, ids=lambda runner: f"{runner.framework}: {runner.name}")
def test_with_room_for_all_of_it_the_conversation_is_finished(runner: Runner) -> None:
    with Provider(SMALL, window=30_000) as provider:
        had = have(runner, provider)

    assert had.error == ""
    assert (had.totals.tasks, had.totals.turns, had.totals.rejections) == (2, 14, 0)


@pytest.mark.parametrize(
    "runner",
    [runner for runner in OWN if runner.kind == "alone"],
    ids=lambda runner: runner.framework,
)
def test_alone_a_framework_keeps_the_laws_until_the_provider_refuses(runner: Runner) -> None:
    with Provider(SMALL) as provider:
        had = have(runner, provider)

    assert had.faults == ()
    assert (had.totals.tasks, had.totals.rejections) == (1, 1)
    assert any(words in had.error for words in TOO_LARGE)

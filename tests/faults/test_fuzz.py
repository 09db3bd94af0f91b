"""Each fuzz target accepts the inputs that once broke it, and some random ones."""

from __future__ import annotations

from random import Random

import pytest

from tests.faults.fuzz.mutating import mutated
from tests.faults.fuzz.targets import TARGETS, seeds


@pytest.mark.parametrize("name", TARGETS)
def test_bytes_of_any_kind_are_taken_or_refused_in_so_many_words(name: str) -> None:
    real = seeds(name)

    for one in real:
        TARGETS[name](one)
    for number in range(40):
        TARGETS[name](mutated(real, Random(f"{name} {number}")))

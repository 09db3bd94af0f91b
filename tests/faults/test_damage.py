"""Real journals of every version, cut and damaged. `make test` tries a few cases, `make proof` many."""

from __future__ import annotations

import random

import pytest

from tests.faults.real import damage

JOURNALS = damage.journals()


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda one: one.session_id)
def test_a_journal_that_is_cut_at_any_byte_is_what_stood_before(journal: damage.Journal) -> None:
    dice = random.Random(1)
    places = [*damage.every_byte(journal), *(dice.randrange(len(journal.data)) for _ in range(100))]

    assert damage.cut(journal, places)["cut"] == len(places)


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda one: one.session_id)
def test_a_bit_or_a_block_that_is_wrong_is_told(journal: damage.Journal) -> None:
    dice = random.Random(2)

    assert damage.flipped(journal, dice, 100)["flip"] == 100
    assert damage.zeroed(journal, dice, 20)["zeros"] == 20

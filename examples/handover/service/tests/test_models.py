"""Limits of the fields."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import ValidationError

from lend.models import NewLoan

LOAN = {"memberNo": "M-0042", "toolId": "drill-7", "fromDay": "2026-11-02", "dueDay": "2026-11-09"}


@pytest.mark.parametrize("deposit", ["-1", "50.01", "much"])
def test_a_deposit_outside_the_limits_is_refused(deposit: str) -> None:
    with pytest.raises(ValidationError):
        NewLoan.model_validate({**LOAN, "deposit": deposit})


def test_the_largest_deposit_is_accepted() -> None:
    assert NewLoan.model_validate({**LOAN, "deposit": "50"}).deposit == Decimal(50)


def test_a_note_has_at_most_200_characters() -> None:
    with pytest.raises(ValidationError):
        NewLoan.model_validate({**LOAN, "note": "x" * 201})

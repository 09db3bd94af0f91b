"""Each deliberate break still matches exactly one place in the source, so that `make breaks` applies it."""

from __future__ import annotations

import pytest

from tests.faults.breaks import BREAKS, SOURCE, Break


@pytest.mark.parametrize("one", BREAKS, ids=lambda one: one.name)
def test_the_place_of_a_break_is_in_the_source_once(one: Break) -> None:
    text = (SOURCE / one.file).read_text(encoding="utf-8")

    assert text.count(one.old) == 1
    assert one.new not in text or one.new in one.old or not one.new.strip()

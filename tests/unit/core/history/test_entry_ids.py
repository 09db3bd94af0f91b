"""Entry ids with a number that the daemon gave, and ids that only look like them."""

from __future__ import annotations

import pytest

from compactd.core.extract.conversation import conversation_order
from compactd.core.history.entries import Item, number_of
from compactd.protocol.messages import Message


@pytest.mark.parametrize(
    ("entry_id", "number"),
    [
        ("e1", 1),
        ("e12", 12),
        ("e", None),
        ("", None),
        ("x1", None),
        ("e-1", None),
        ("e²", None),
        ("e١", None),
        ("e" + "9" * 5_000, None),
    ],
)
def test_an_id_has_the_number_that_a_daemon_gave_it(entry_id: str, number: int | None) -> None:
    assert number_of(entry_id) == number


def test_messages_with_ids_that_nobody_numbered_stay_in_their_order() -> None:
    strange, plain = (
        Item(entry_id=entry_id, body=Message(role="user", content=()), tokens=1)
        for entry_id in ("e" + "9" * 5_000, "e2")
    )

    assert conversation_order([strange], [plain]) == [(strange, True), (plain, False)]

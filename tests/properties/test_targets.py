"""The laws with `target_tokens` from 1k to 100k, over the recorded sessions. (issue 6, Show 7)"""

from __future__ import annotations

import pytest

from compactd.core.planning.request import CompactRequest
from compactd.protocol.settings import GivenSettings
from tests.properties.life import Life, opened, whole
from tests.properties.recorded_parts import FILES, first_messages
from tests.support.quiet_world import Quiet

TARGETS = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 100_000)
MESSAGES = 80
"""Messages of a session that are used: with whole ones, each step takes seconds."""
LARGE = GivenSettings(context_window=1_000_000)

pytestmark = pytest.mark.skipif(not FILES, reason="the recorded sessions are not here")


@pytest.mark.parametrize(("at", "name"), list(enumerate(FILES)))
def test_a_real_session_keeps_the_laws_at_any_target(at: int, name: str) -> None:
    """Each session at two targets in turn, another pair for the next; larger than it is: nothing happens."""
    life = Life(opened(Quiet(), "default", LARGE))
    life.append(first_messages(name, MESSAGES))
    size = whole(life.session)

    for target in (TARGETS[at % 4 + 4], TARGETS[at % 4]):
        result = life.compact(CompactRequest(target_tokens=target), twice=target < 3_000)
        life.laws_hold()
        if result is not None:
            assert result.compacted or result.reason
            assert not result.compacted or result.tokens_after <= target < size

    while life.session.state.in_force.last is not None:
        life.change("undo")
    assert [item.entry_id for item in life.session.state.items] == list(life.said)

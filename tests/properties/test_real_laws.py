"""The laws under every profile on real sessions, in windows that are too small for them.
(docs/dev/behaviour.md, "Laws"; whole sessions, over the wire: tests/e2e/test_real_sessions.py.)"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from compactd.agent.recovery import FailedRequest
from compactd.core.budget.profiles import PROFILES
from compactd.core.planning.request import CompactRequest
from compactd.formats.files.detect import read
from compactd.protocol.messages import Message
from compactd.protocol.settings import GivenSettings
from tests.properties.life import Life, opened, whole
from tests.support.quiet_world import Quiet
from tests.support.recorded import folder, sessions

FORMATS = ("claude-code", "gemini-cli", "pi", "openhands-log", "cline")
ROWS = {row["name"]: row["file"] for row in sessions(*FORMATS)}
MESSAGES = 14
"""Messages of a session that are used at a time: with whole ones, each step takes seconds."""
LARGE = GivenSettings(context_window=1_000_000)
"""A window so large that everything fits after an undo."""
REJECTED = FailedRequest(status=400, code="context_length_exceeded", text="too long")

pytestmark = pytest.mark.skipif(not ROWS, reason="the recorded sessions are not here")


@cache
def messages_of(name: str) -> tuple[Message, ...]:
    """A session's messages, without the ids that its program gave them."""
    within = folder()
    assert within is not None
    return tuple(replace(message, id=None) for message, _ in read(Path(within) / ROWS[name]).messages)


def part_of(name: str, profile: str) -> tuple[Message, ...]:
    """Another part of the session for each profile; it may begin with results of calls before it."""
    said = messages_of(name)
    parts = max(1, len(said) // MESSAGES)
    start = list(PROFILES).index(profile) % parts * MESSAGES
    return said[start : start + MESSAGES]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ROWS)
def test_a_real_session_keeps_the_laws_under_every_profile(name: str, profile: str) -> None:
    said = part_of(name, profile)
    life = Life(opened(Quiet(), profile, LARGE))
    half = len(said) // 2

    life.append(said[:half])
    life.laws_hold()
    done = [life.compact(CompactRequest(keep_recent=whole(life.session) // 4))]
    life.append(said[half:])
    life.change("prune")
    life.laws_hold()
    done.append(life.compact(CompactRequest(target_tokens=max(600, whole(life.session) // 2)), twice=False))
    done.append(life.compact(CompactRequest(keep_messages=3), twice=False))
    life.laws_hold()
    while life.session.state.in_force.last is not None:
        life.change("undo")

    assert any(one is not None and one.compacted for one in done)
    assert [item.entry_id for item in life.session.state.items] == list(life.said)

    life.configure(GivenSettings(context_window=max(600, whole(life.session) // 2)))
    life.begin()
    life.laws_hold()
    life.rejected(REJECTED)
    life.laws_hold()

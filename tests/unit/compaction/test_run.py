"""A compaction is carried out on what its plan was made from, whatever comes while the client's hook runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec import Raw, Struct

from compactd.compaction.run import compact
from compactd.core.planning.request import CompactRequest
from compactd.protocol.errors import StorageFailed
from compactd.protocol.messages import CompactionResult, Message, Role, Text
from compactd.session.host import ClientRef
from compactd.session.session import Session
from tests.properties.life import Life, opened
from tests.support.quiet_world import Quiet, done

ROLES: tuple[Role, Role] = ("user", "assistant")
LATE = Message(role="user", content=(Text(text="A late word: never touch src/late.py."),))

KEEP_SOME = CompactRequest(keep_recent=200, strategy="extract")
KEEP_NONE = CompactRequest(target_tokens=660, strategy="extract")
"""A request after which no message is in the tail."""


class Asked(Quiet):
    """A world with a client whose hook calls `meanwhile` and then changes nothing."""

    meanwhile: Callable[[], None]

    async def ask_client(
        self, session_id: str, first: ClientRef | None, method: str, params: Struct, timeout_s: float
    ) -> tuple[Raw, ClientRef]:
        self.meanwhile()
        return Raw(b"null"), Nobody()


class Nobody:
    """A client without a name."""

    is_connected = True

    def name_in(self, session_id: str) -> None:
        return None


@pytest.fixture
def world() -> Asked:
    return Asked()


@pytest.fixture
def life(world: Asked) -> Life:
    life = Life(opened(world, "default"))
    life.session.has_compaction_hook = True
    texts = [Text(text=f"word {number} " * 120) for number in range(12)]
    life.append([Message(role=ROLES[at % 2], content=(text,)) for at, text in enumerate(texts)])
    return life


def compacted(session: Session, request: CompactRequest) -> CompactionResult:
    return done(compact(session, request))


@pytest.mark.parametrize("request_", [KEEP_SOME, KEEP_NONE], ids=["with a tail", "without a tail"])
def test_a_message_that_comes_during_the_hook_follows_the_summary(
    world: Asked, life: Life, request_: CompactRequest
) -> None:
    session = life.session
    world.meanwhile = lambda: life.append([LATE])

    result = compacted(session, request_)

    late = list(life.said)[-1]
    assert result.compacted
    assert (result.first_kept_entry_id is None) == (request_ is KEEP_NONE)
    assert result.messages_before == len(life.said) - 1
    assert "late" not in result.summary
    assert session.state.items[0].kind == "summary"
    assert session.state.items[-1].entry_id == late
    assert [item.entry_id for item in session.state.path_items()] == list(life.said)


def test_messages_that_are_lost_during_the_hook_end_the_compaction(world: Asked, life: Life) -> None:
    session = life.session
    before = [item.entry_id for item in session.state.items]
    world.meanwhile = session.reload  # as after the journal could not store records

    with pytest.raises(StorageFailed, match="changed nothing"):
        compacted(session, KEEP_SOME)

    assert [item.entry_id for item in session.state.items] == before
    assert session.facts is None


def test_a_message_that_comes_before_the_task_of_the_compaction_runs_follows_the_summary(
    world: Asked, life: Life
) -> None:
    async def append_at_once() -> CompactionResult:
        task = asyncio.ensure_future(compact(life.session, KEEP_SOME))
        await asyncio.sleep(0)  # the first step of `compact`, but not yet of the task that it begins
        life.append([LATE])
        return await task

    world.meanwhile = lambda: None

    result = done(append_at_once())

    assert result.messages_before == len(life.said) - 1
    assert life.session.state.items[-1].entry_id == list(life.said)[-1]

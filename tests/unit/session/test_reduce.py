"""Reductions of outputs while the session changes, and what is remembered of the view."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from msgspec import Raw

from compactd.core.reduce.marks import find_marks
from compactd.protocol.messages import Message, Text, ToolResult
from compactd.session import undo
from compactd.session.given_output import GivenOutput
from compactd.session.memory import free_memory
from compactd.session.reduce import reduce_given
from compactd.session.session import Session
from tests.properties.life import Life, opened
from tests.support.outputs import log
from tests.support.quiet_world import Quiet, done

T = TypeVar("T")

FILE = "\n".join(f"step_{at} = walk(first, second, depth={at * 7919})" for at in range(40))


class Busy(Quiet):
    """A world in which something else happens while a worker runs."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], object]] = []

    async def in_worker(self, work: Callable[[], T]) -> T:
        made = work()
        if self.meanwhile:
            self.meanwhile.pop()()
        return made


def started(world: Quiet) -> Life:
    life = Life(opened(world, "default"))
    life.append([Message(role="user", content=(Text(text="Start the workers."),))])
    return life


def given(text: str, name: str = "bash") -> GivenOutput:
    return GivenOutput(name=name, arguments=Raw(b"{}"), text=text)


def test_the_marks_name_the_entry_that_has_the_original_whatever_came_meanwhile() -> None:
    world = Busy()
    life = started(world)
    said = Message(role="user", content=(Text(text="And now?"),))
    world.meanwhile += [lambda: life.append([said]), lambda: life.append([said])]

    made = done(reduce_given(life.session, given(log()), "default", observe=False))

    assert made.entry_id == "e4"
    assert {mark.entry_id for mark in find_marks(made.text)} == {"e4"}
    assert life.session.state.outputs.entries["e4"].shown == made.text
    assert list(life.session.state.originals) == ["e1", "e2", "e3"]


def test_lines_that_left_the_view_meanwhile_are_not_left_out() -> None:
    world = Busy()
    life = started(world)
    life.append([Message(role="tool", content=(ToolResult(call_id="c1", content=FILE),))])
    world.meanwhile.append(lambda: undo.branch(life.session, "e1"))

    made = done(reduce_given(life.session, given(FILE, "read_file"), "default", observe=False))

    assert (made.text, made.entry_id) == (FILE, None)
    again = started(Quiet())
    again.append([Message(role="tool", content=(ToolResult(call_id="c1", content=FILE),))])
    kept = done(reduce_given(again.session, given(FILE, "read_file"), "default", observe=False))
    assert "as in e2" in kept.text


def test_a_cancelled_reduction_leaves_no_half_read_view() -> None:
    world = Busy()
    life = started(world)

    def stop() -> None:
        raise asyncio.CancelledError

    world.meanwhile.append(stop)
    before = life.session.shown_view()
    with pytest.raises(asyncio.CancelledError):
        done(reduce_given(life.session, given(log()), "default", observe=False))

    assert life.session.shown_view() is not before
    assert not life.session.reducing.locked()
    assert done(reduce_given(life.session, given(log()), "default", observe=False)).entry_id == "e2"


def test_the_index_of_the_view_is_freed_with_the_memory_of_a_compaction() -> None:
    session: Session = started(Quiet()).session
    before = session.shown_view()

    done(free_memory(session))

    assert session.shown_view() is not before

"""After five compactions in a row, the view still says what the user demanded, what is open, and how the last
check ended. On every recorded session. (issue 22, Show 4)"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from msgspec.structs import replace

from compactd.compaction.run import compact
from compactd.core.constraints.constraints import constraints_of
from compactd.core.extract.story import ENDINGS
from compactd.core.planning.request import CompactRequest
from compactd.core.text.quoting import neutralise
from compactd.core.text.tool_results import text_of_result
from compactd.formats.files.detect import read
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import Text, ToolCall, ToolResult
from compactd.protocol.settings import GivenSettings
from compactd.session.session import Session
from tests.properties.life import Life, opened
from tests.properties.recorded_parts import FORMATS
from tests.support.quiet_world import Quiet, done
from tests.support.recorded import folder, sessions

ROUNDS = 5
TARGETS = (4_000, 8_000, 16_000, 32_000, 64_000)
"""The smallest that the newest request, which stays whole, leaves room in."""

FILES = sorted(row["file"] for row in sessions(*FORMATS, "swe-agent", "mini-swe-agent", "aider-md"))

pytestmark = pytest.mark.skipif(not FILES, reason="the recorded sessions are not here")


@pytest.mark.parametrize("file", FILES)
def test_constraints_open_tasks_and_the_last_check_survive(file: str) -> None:
    within = folder()
    assert within is not None
    said = [replace(message, id=None) for message, _ in read(within / file).messages]
    life = Life(opened(Quiet(), "default", GivenSettings(context_window=10_000_000)))
    step = -(-len(said) // ROUNDS)
    for n in range(ROUNDS):
        life.append(said[n * step : (n + 1) * step])
        compacted(life.session)

    session = life.session
    view = "\n".join(shown(session))
    path = session.state.path_items()
    state = session.work().after(path)
    there = {item.entry_id for item in session.state.items}
    for one in constraints_of(path).in_force:
        assert one.entry_id in there or one.text in view
    for task in state.work.plan:
        if task.status in ("open", "in_progress"):
            assert task.entry_id in there or told(session, task.text) in view
    if state.work.checks:
        last = state.work.checks[-1]
        command = told(session, last.command)
        assert last.entry_id in there or any(
            command in line and (ENDINGS[last.outcome] in line or "failed" in line)
            for line in view.split("\n")
        )


def compacted(session: Session) -> None:
    """Compact to the smallest target that is possible."""
    for target in TARGETS:
        with suppress(CannotFit):
            done(compact(session, CompactRequest(target_tokens=target)))
            return


def told(session: Session, text: str) -> str:
    """Return a text as a summary shows it: on one line, without the working folder in its paths."""
    folder = session.shown_dir or ""
    shorter = text.replace(folder.rstrip("/") + "/", "") if folder else text
    return neutralise(shorter)


def shown(session: Session) -> Iterator[str]:
    """Yield every text of the view, results and arguments included."""
    for item in session.state.items:
        for block in item.message.content:
            match block:
                case Text(text=text):
                    yield text
                case ToolCall(arguments=arguments):
                    yield bytes(arguments).decode()
                case ToolResult():
                    yield text_of_result(block)
                case _:
                    pass

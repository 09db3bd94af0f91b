"""compactd's summaries contain no path, name, literal, number or command that the past does not contain: for
all recorded sessions and every strategy without a model. (issue 6, "Fidelity")"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from compactd.compaction.run import compact
from compactd.core.planning.request import CompactRequest
from compactd.core.text.atoms import atoms, commands
from compactd.core.text.tool_results import text_of_result
from compactd.core.work.file_operations import Json, arguments_of
from compactd.protocol.messages import Document, Message, Text, ToolCall, ToolResult
from compactd.protocol.settings import GivenSettings
from tests.properties.life import Life, opened
from tests.properties.recorded_parts import FILES, first_messages
from tests.support.quiet_world import Quiet, done

MESSAGES = 120
LARGE = GivenSettings(context_window=1_000_000)
OURS = re.compile(
    r"\[e\d+\]|\[e\d+ |^- (?:\[x\] )?e\d+ |^\d+\. |^\(\d+ (?:more|of the|messages|earlier)[^)]*\)"
    r"|^\[Compacted \d+ messages?: [^\]]*\]|^\[End Summary - \d+ messages compacted\]",
    re.MULTILINE,
)
"""What compactd itself writes around quotes: entry ids, counts, list numbers."""
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")

pytestmark = pytest.mark.skipif(not FILES, reason="the recorded sessions are not here")


def strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from strings(one)
        case dict():
            for name, one in value.items():
                yield name
                yield from strings(one)
        case None:
            pass
        case number:
            yield str(number)


def texts(said: tuple[Message, ...]) -> Iterator[str]:
    """Yield every text of the conversation, and for each tool call the decoded strings of its arguments."""
    for message in said:
        for block in message.content:
            match block:
                case Text(text=text):
                    yield text
                case ToolCall(name=name):
                    yield " ".join((name, *strings(arguments_of(block))))
                    yield bytes(block.arguments).decode()
                case Document(text=str() as text):
                    yield text
                case ToolResult():
                    yield text_of_result(block)
                case _:
                    pass


@pytest.mark.parametrize(("at", "name"), list(enumerate(FILES)))
def test_a_summary_of_ours_holds_nothing_that_the_past_does_not(at: int, name: str) -> None:
    said = first_messages(name, MESSAGES)
    past = "\n".join(texts(said))
    folded = " ".join(past.split())
    known = {value for _, value in atoms(past)}
    paths = {value for kind, value in atoms(past) if kind == "path"}
    profile = ("default", "opal", "klaude", "evmts", "opencode")[at % 5]
    life = Life(opened(Quiet(), profile, LARGE))
    life.append(said)
    ways = (
        CompactRequest(strategy="extract", target_tokens=3_000 + 2_000 * (at % 4)),
        CompactRequest(strategy="extract", keep_messages=5, force=True),
        CompactRequest(strategy="truncate", keep_messages=5, force=True),
    )

    for request in ways:
        result = done(compact(life.session, request))
        if not result.compacted:
            continue
        # What a quotation broke up reads as before.
        summary = OURS.sub(" ", result.summary.replace("‹", "<").replace("·", ""))
        for kind, value in atoms(summary):
            held = value in known or (kind == "path" and any(one.endswith("/" + value) for one in paths))
            assert held, (request.strategy, kind, value)
        for number in NUMBER.findall(summary):
            assert number in past, (request.strategy, number)
        for line in summary.split("\n"):
            for span in re.findall(r"`([^`]+)`", line):
                assert all(command in folded for command in commands(span)), (request.strategy, span)
        life.change("undo")

"""Which part of a request differs first from the request before, in the order in which providers read it."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from compactd.core.history.entries import Item
from compactd.core.history.projection import project
from compactd.core.tokens.counting import script_aware
from compactd.formats.messages.base import render
from compactd.formats.messages.sent_request import SentRequest, fingerprint, first_change
from compactd.protocol.messages import Message, Role, Text, Tool

ROLES: tuple[Role, Role] = ("user", "assistant")


def sent(*texts: str, system: str = "Be brief.", tool: str = "run") -> SentRequest:
    counter = script_aware("claude")
    items = tuple(
        Item(entry_id=f"e{n}", body=Message(role=ROLES[n % 2], content=(Text(text=text),)), tokens=1)
        for n, text in enumerate(texts)
    )
    tools = (Tool(name=tool, input_schema=Raw(msgspec.json.encode({"type": "object"}))),)
    return fingerprint(render("anthropic", system, tools, project(items, counter), None), 10)


@pytest.mark.parametrize(
    ("before", "now", "part"),
    [
        (sent("a"), sent("a"), None),
        (sent("a"), sent("a", "b"), None),
        (sent("a", "b"), sent("a"), "messages"),
        (sent("a", "b"), sent("a", "c", "d"), "messages"),
        (sent("a"), sent("b", system="Be long."), "system"),
        (sent("a"), sent("a", system="Be long.", tool="read"), "tools"),
        (None, sent("a"), None),
    ],
)
def test_the_first_part_that_differs(before: SentRequest | None, now: SentRequest, part: str | None) -> None:
    assert first_change(before, now) == part

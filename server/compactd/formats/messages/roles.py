"""Repair wrong roles in a list of messages: role names of other programs, and roles that may not have a block
of their message, such as a user message with a tool call.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec
from msgspec import Raw

from compactd.formats.files.documents import open_document
from compactd.formats.files.json_lines import records
from compactd.formats.messages.json_parts import elements, fields
from compactd.formats.messages.lenient_json import Given, is_list, is_object, text_in
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import NULL

NAMES = {
    "human": "user",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "tool_result": "tool",
    "developer_message": "system",
}
"""Name of a role in other programs (LangChain, ShareGPT, Gemini) -> its name in OpenAI's and Anthropic's
messages.
"""

_CALLS = ("tool_use", "tool_call")
_RESULTS = ("tool_result",)

RoleChange = tuple[int, str]
"""(the message's number, what is wrong with its role)."""


def with_roles(data: bytes) -> tuple[bytes, tuple[RoleChange, ...]]:
    """Return (the list of messages in the file `data`, with valid roles; what was changed). O(bytes).

    Raise `InvalidParams` if `data` contains no list of messages.
    """
    about, messages = _open(data)
    changed: list[RoleChange] = []
    rows: list[Raw] = []
    for number, raw in enumerate(messages, start=1):
        made = list(_mend(fields(raw, "$", "a message"), number, changed)) if is_object(raw) else []
        rows += made if changed and changed[-1][0] == number else [raw]
    return msgspec.json.encode({**about, "messages": rows}), tuple(changed)


def _open(data: bytes) -> tuple[Given, list[Raw]]:
    try:
        about, listed = open_document(data, _ignore, "messages")
        return about, list(listed)
    except CompactdError:
        return {}, [Raw(msgspec.json.encode(record)) for _, record in records(data, _ignore)]


def _ignore(text: str) -> None:
    """Ignore a warning, because the file's reader has already reported it."""


def _mend(given: Given, number: int, changed: list[RoleChange]) -> Iterator[Raw]:
    name = text_in(given, "role")
    role = NAMES.get(name.lower(), name.lower())
    if role != name:
        changed.append((number, f"the role is called {role!r}, not {name!r}"))
    content = given.get("content", NULL)
    given_blocks = elements(content, "$.content") if is_list(content) else ()
    runs = [(needed, list(run)) for needed, run in groupby(given_blocks, lambda b: _needed_role(b, role))]
    if len(runs) <= 1 and (not runs or runs[0][0] == role):
        yield Raw(msgspec.json.encode({**given, "role": role}))
        return
    changed.append((number, f"a message with the role {role!r} cannot have all the blocks of this one"))
    for needed, blocks in runs:
        yield Raw(msgspec.json.encode({**given, "role": needed, "content": blocks}))


def _needed_role(block: Raw, role: str) -> str:
    tag = text_in(fields(block, "$", "a block"), "type") if is_object(block) else ""
    if tag in _CALLS:
        return "assistant"
    return "user" if tag in _RESULTS and role not in ("user", "tool") else role

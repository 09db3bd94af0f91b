"""What an agent's `session/update` says, as far as the proxy looks at it. Whatever cannot be read is None."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from compactd.integrations.acp import commands, wire


class Update(Struct, frozen=True, kw_only=True, rename="camel"):
    """A `session/update`, as far as it is looked at."""

    session_update: str = ""
    content: Raw = Raw(b"null")
    tool_call_id: str = ""
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    raw_input: Raw = Raw(b"null")
    raw_output: Raw = Raw(b"null")
    used: int | None = None
    size: int | None = None


class Named(Struct, frozen=True, rename="camel"):
    """The params of a request or notification, as far as they say which session is meant."""

    session_id: str = ""
    update: Raw = Raw(b"null")


class _Command(Struct, frozen=True):
    name: str = ""


def named(params: Raw) -> Named:
    """With an empty id where no session is named."""
    try:
        return msgspec.json.decode(params, type=Named)
    except wire.UNREADABLE:
        return Named()


def update_of(raw: Raw) -> Update | None:
    """None where it cannot be read."""
    try:
        return msgspec.json.decode(raw, type=Update)
    except wire.UNREADABLE:
        return None


def with_ours(update: Raw) -> dict[str, object]:
    """A list of commands with compactd's after the agent's; of two with one name, compactd's."""
    ours = [one["name"] for one in commands.COMMANDS]
    found: dict[str, object] = {**wire.fields(update)}
    theirs = wire.elements(wire.fields(update).get("availableCommands")) or ()
    kept = (one for one in theirs if _command_name(one) not in ours)
    found["availableCommands"] = (*kept, *commands.COMMANDS)
    return found


def _command_name(raw: Raw) -> str:
    try:
        return msgspec.json.decode(raw, type=_Command).name
    except wire.UNREADABLE:
        return ""

"""Parse an agent's `session/update` notifications, as far as the proxy needs them."""

from __future__ import annotations

from msgspec import Raw, Struct

from compactd.integrations.acp import acp_lines, commands
from compactd.protocol.messages import NULL


class Update(Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a `session/update` that are used."""

    session_update: str = ""
    content: Raw = NULL
    tool_call_id: str = ""
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    raw_input: Raw = NULL
    raw_output: Raw = NULL
    used: int | None = None
    size: int | None = None


class NamedSession(Struct, frozen=True, rename="camel"):
    """The params of a request or notification, as far as they name the session."""

    session_id: str = ""
    """The session's id; empty if the params name no session."""
    update: Raw = NULL


class _Command(Struct, frozen=True):
    name: str = ""


def add_commands(update: Raw) -> dict[str, object]:
    """Return the fields of an `available_commands_update`, with compactd's commands added at the end of its
    list. A command of the agent with the same name as one of compactd's is left out.
    """
    ours = [one["name"] for one in commands.COMMANDS]
    found: dict[str, object] = {**acp_lines.fields(update)}
    theirs = acp_lines.decode_as(acp_lines.fields(update).get("availableCommands"), list[Raw]) or ()
    kept = (one for one in theirs if (acp_lines.decode_as(one, _Command) or _Command()).name not in ours)
    found["availableCommands"] = (*kept, *commands.COMMANDS)
    return found

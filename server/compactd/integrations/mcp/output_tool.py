"""The tool that a wrapped MCP server gets: it shows an output of which a part was left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from compactd.core.reduce.marks import defuse
from compactd.integrations.mcp.recall_text import TOKEN_CHARS, around
from compactd.integrations.outputs.references import PREFIX, Reference, read_reference

NAMES = ("compactd_expand_output", "compactd_expand_output_2", "compactd_expand_output_3")
"""The tool's names. It gets the first one that no tool of the server has: that may be a wrapper, too."""
MAX_TOKENS = 20_000
USUAL_TOKENS = 4_000
ABOUT = """\
Shows the whole output of an earlier tool call of this server. Use it if an output says that a part was left \
out, and you need that part: of `[… 1,240 lines left out, expand k3f7q2-e41]`, give the id k3f7q2-e41. Give \
`find` if you look for a certain place."""


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool."""

    id: str
    find: str = ""
    start: int = 0
    budget: int = USUAL_TOKENS


def tool(name: str) -> Mapping[str, object]:
    """Return the tool as an entry of `tools/list`."""
    return {
        "name": name,
        "title": "Show a whole output",
        "description": ABOUT,
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The id in the mark, such as k3f7q2-e41."},
                "find": {
                    "type": "string",
                    "description": "Show the first place at or after `start` with this.",
                },
                "start": {"type": "integer", "minimum": 0, "description": "The first character to show (0)."},
                "budget": {
                    "type": "integer",
                    "minimum": 100,
                    "maximum": MAX_TOKENS,
                    "description": f"Tokens of the answer, about ({USUAL_TOKENS:,} if left out).",
                },
            },
            "required": ["id"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    }


def free_name(taken: Sequence[str]) -> str | None:
    """Return a name for the tool that is not taken; None if all are."""
    return next((name for name in NAMES if name not in taken), None)


def show(arguments: bytes, session_name: str, read: Callable[[Reference], str | None]) -> tuple[str, bool]:
    """Return (the answer to a call of the tool, whether it is an error).

    `session_name`: the name of the sessions with this server's outputs; others are not read. `read` returns
    an original; None if it is not stored.
    """
    try:
        asked = msgspec.json.decode(arguments, type=Arguments, strict=False)
    except (msgspec.MsgspecError, UnicodeError) as error:
        return f"{error}", True
    where = read_reference(asked.id.strip())
    is_own = where is not None and where.session_id.removeprefix(PREFIX).partition(".")[0] == session_name
    text = read(where) if where is not None and is_own else None
    if text is None:
        return (
            "No output of this server has this id. A mark names it: `[… 40 lines left out, expand ID]`.",
            True,
        )
    return _page(asked, text), False


def _page(asked: Arguments, text: str) -> str:
    """Return the part of an output that was asked for, below a line that says which part it is."""
    most = min(MAX_TOKENS, max(100, asked.budget)) * TOKEN_CHARS
    start = min(max(0, asked.start), len(text))
    if asked.find:
        rest = text[start:]
        if asked.find.casefold() not in rest.casefold():
            return f"Nothing at or after character {start:,} of {len(text):,} is {asked.find!r}."
        start += around(rest, (asked.find.casefold(),), most)[0]
    stop = min(len(text), start + most)
    more = f"; `start` {stop} shows more" if stop < len(text) else ""
    # A mark in an original is not compactd's.
    return f"Characters {start:,} to {stop:,} of {len(text):,}{more}:\n{defuse(text[start:stop])}"

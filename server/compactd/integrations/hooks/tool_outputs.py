"""Take the text out of a Claude Code tool's output, and put a shorter text back in the same shape.

Claude Code passes a tool's output to the event `PostToolUse` as `tool_response`, in a shape of its own for
each tool. An answer of another shape is ignored in silence (2.1.197, 2.1.240 and 2.1.330, run 2026-11). Every
field that is not named here stays byte for byte. Unknown tools and shapes are left alone, and so are images
and what Claude Code itself wrote to a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

NUMBER: Final = re.compile(r"(\d{1,9})\t")
"""Matches the number that Claude Code writes before a line of a file (2.1.197 to 2.1.330, run 2026-11)."""
_MCP: Final = "mcp__"
_OWN_TOOL: Final = re.compile(r"compactd|__(?:search_history|expand|context_state)$", re.IGNORECASE)
"""Matches the name of an MCP tool that recalls what was left out."""
_OWN_COMMAND: Final = re.compile(r"(?<![^\s;&|(/])compactd\s+(?:sessions|search|reduce|inspect|mcp)\b")
"""Matches a shell command that does the same."""
_COUNTS: Final = ("numFiles", "totalMatches")
_encode = msgspec.json.Encoder().encode


class OutputPart(Struct, frozen=True):
    """One text of a tool's output."""

    part: int | None
    """The index of the text in the blocks of the result; None if the result is one text."""
    text: str
    """The text as the model gets it. A file has its line numbers."""


class ToolUse(Struct, frozen=True, kw_only=True):
    """A finished call of a tool."""

    name: str
    call_id: str
    arguments: Raw
    response: Raw
    """The output in the shape of the tool."""
    parts: tuple[OutputPart, ...]


class _Given(Struct, frozen=True):
    tool_name: str
    tool_use_id: str
    tool_response: Raw
    tool_input: Raw = Raw(b"{}")


class _ReadFile(Struct, frozen=True, rename="camel"):
    content: str
    start_line: int = 1


class _Read(Struct, frozen=True):
    type: str
    file: _ReadFile


class _Bash(Struct, frozen=True, rename="camel"):
    stdout: str
    is_image: bool = False
    persisted_output_path: str | None = None
    """Where the output is, if the model only gets its beginning."""


class _Shell(Struct, frozen=True):
    command: str = ""


class _Found(Struct, frozen=True):
    filenames: list[str] = []
    content: str = ""


class _Block(Struct, frozen=True):
    type: str
    text: str = ""


def tool_use_of(data: bytes) -> ToolUse | None:
    """Return the call in the event `data` with the texts of its output; None if it has no texts that can be
    replaced. O(bytes).
    """
    try:
        given = msgspec.json.decode(data, type=_Given)
        parts = _parts(given.tool_name, given.tool_input, given.tool_response)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not parts or not given.tool_use_id:
        return None
    arguments = given.tool_input if bytes(given.tool_input).lstrip().startswith(b"{") else Raw(b"{}")
    return ToolUse(
        name=given.tool_name,
        call_id=given.tool_use_id,
        arguments=arguments,
        response=given.tool_response,
        parts=tuple(parts),
    )


def _parts(name: str, arguments: Raw, response: Raw) -> Sequence[OutputPart]:
    match name:
        case "Bash" if _OWN_COMMAND.search(_command(arguments)):
            return ()
        case "Bash":
            run = msgspec.json.decode(response, type=_Bash)
            return () if run.is_image or run.persisted_output_path else (OutputPart(None, run.stdout),)
        case "Read":
            read = msgspec.json.decode(response, type=_Read)
            if read.type != "text":
                return ()
            return (OutputPart(None, numbered(read.file.content.split("\n"), read.file.start_line)),)
        case "Grep" | "Glob":
            found = msgspec.json.decode(response, type=_Found)
            if any("\n" in one for one in found.filenames):
                return ()
            return (OutputPart(None, found.content or "\n".join(found.filenames)),)
        case _ if name.startswith(_MCP) and not _OWN_TOOL.search(name):
            return _mcp_parts(response)
        case _:
            return ()


def _command(arguments: Raw) -> str:
    return msgspec.json.decode(arguments, type=_Shell).command


def _mcp_parts(response: Raw) -> Sequence[OutputPart]:
    match bytes(response).lstrip()[:1]:
        case b'"':
            return (OutputPart(None, msgspec.json.decode(response, type=str)),)
        case b"[":
            blocks = msgspec.json.decode(response, type=list[_Block])
            return [OutputPart(at, block.text) for at, block in enumerate(blocks) if block.type == "text"]
        case _:
            return ()


def response_with(use: ToolUse, texts: Mapping[int | None, str]) -> Raw:
    """Return the output of a call with the texts `texts`, by part, in place of its own. O(bytes)."""
    if use.name.startswith(_MCP):
        if None in texts:
            return Raw(_encode(texts[None]))
        blocks = msgspec.json.decode(use.response, type=list[dict[str, Raw]])
        for part, text in texts.items():
            if part is not None:
                blocks[part]["text"] = Raw(_encode(text))
        return Raw(_encode(blocks))
    fields = msgspec.json.decode(use.response, type=dict[str, Raw])
    text = texts[None]
    match use.name:
        case "Bash":
            fields["stdout"] = Raw(_encode(text))
        case "Read":
            file = msgspec.json.decode(fields["file"], type=dict[str, Raw])
            content, start = without_numbers(text)
            file |= {"content": Raw(_encode(content)), "startLine": Raw(_encode(start))}
            fields["file"] = Raw(_encode(file))
        case _ if bytes(fields.get("content", b'""')) != b'""':
            fields["content"] = Raw(_encode(text))
        case _:
            lines, before = text.split("\n"), msgspec.json.decode(use.response, type=_Found).filenames
            for count in _COUNTS if use.name == "Glob" else ():
                # Otherwise Claude Code says that the list is cut off (2.1.330, run 2026-11).
                if bytes(fields.get(count, b"")) == b"%d" % len(before):
                    fields[count] = Raw(_encode(len(lines)))
            fields["filenames"] = Raw(_encode(lines))
    return Raw(_encode(fields))


def numbered(lines: Sequence[str], start: int) -> str:
    """Return the lines of a file as Claude Code shows them, the first with the number `start`."""
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, start))


def without_numbers(text: str) -> tuple[str, int]:
    """Return (the lines of a numbered text without their numbers, the number of the first)."""
    lines = text.split("\n")
    first = NUMBER.match(lines[0])
    return "\n".join(NUMBER.sub("", line, count=1) for line in lines), int(first[1]) if first else 1


def renumbered(reduced: str, start: int) -> str:
    """Return a reduced file as Claude Code will show it. `start` is the number of the first line of the
    original. Marks in `reduced` have no numbers.

    Claude Code numbers the lines one by one, so the numbers after a mark would be too low. If the text begins
    with a mark, the numbers begin later instead. Other marks say which line follows. O(characters).
    """
    lines: list[str] = []
    real: list[int | None] = []
    for line in reduced.split("\n"):
        found = NUMBER.match(line)
        real.append(int(found[1]) if found else None)
        lines.append(line[found.end() :] if found else line)
    if real[0] is None and len(real) > 1 and real[1] is not None:
        start = real[1] - 1
    for at in range(1, len(lines)):
        number = real[at]
        if real[at - 1] is None and number is not None and number != start + at:
            lines[at - 1] += f" (line {number} follows)"
    return numbered(lines, start)

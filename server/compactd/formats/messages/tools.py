"""Tools offered to the model: read from any provider's shape, given out in each."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.formats.messages.parts import elements, fields, first_byte, string
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Tool

NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')
"""The schema of a tool that was given without one: every provider accepts it."""

_DECLARATIONS = ("functionDeclarations", "function_declarations")
_SCHEMAS = ("input_schema", "parameters", "inputSchema", "parametersJsonSchema", "parameters_json_schema")


def decode_tool(raw: bytes | Raw, path: str = "$") -> Tool:
    """The one tool that `raw` describes: ours, OpenAI's (chat or responses), Anthropic's, MCP's, or Gemini's.

    Raises `InvalidParams` with the path of the bad field, also where a Gemini list holds several: those are
    read by `decode_tools`. The schema stays its own bytes.
    """
    tools = decode_tools(raw, path)
    if len(tools) != 1:
        raise InvalidParams(f"one tool is wanted here, {len(tools)} are declared", path)
    return tools[0]


def decode_tools(raw: bytes | Raw, path: str = "$") -> tuple[Tool, ...]:
    """The tools that `raw` describes, as `decode_tool`; one element of Gemini's `tools` declares many."""
    given = fields(raw, path, "a tool")
    for name in _DECLARATIONS:
        if name in given:
            if first_byte(given[name]) != b"[":
                raise InvalidParams("a list of declarations is wanted", f"{path}.{name}")
            return tuple(
                _tool(fields(part, place, "a declaration"), place)
                for index, part in enumerate(elements(given[name], f"{path}.{name}"))
                for place in (f"{path}.{name}[{index}]",)
            )
    if "function" in given:
        path = f"{path}.function"
        given = fields(given["function"], path, "a function")
    return (_tool(given, path),)


def _tool(given: dict[str, Raw], path: str) -> Tool:
    if "name" not in given:
        raise InvalidParams("a tool needs a name", f"{path}.name")
    name = string(given["name"], f"{path}.name")
    if not name:
        raise InvalidParams("a tool's name is not empty", f"{path}.name")
    description = string(given["description"], f"{path}.description") if "description" in given else None
    for key in _SCHEMAS:
        if key in given:
            if first_byte(given[key]) != b"{":
                raise InvalidParams("a JSON schema, an object, is wanted", f"{path}.{key}")
            return Tool(name=name, description=description, input_schema=given[key])
    return Tool(name=name, description=description, input_schema=NO_PARAMETERS)


def encode_tool(tool: Tool) -> Raw:
    """`tool` in our own shape, the schema byte for byte."""
    return Raw(msgspec.json.encode(tool))

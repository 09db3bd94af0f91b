"""Read tool definitions in any provider's format, and encode them in neutral form."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.formats.messages.json_parts import elements, fields, first_byte, optional_string, string
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Tool

NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')
"""The schema of a tool that was defined without a schema. Every provider accepts it."""

_DECLARATIONS = ("functionDeclarations", "function_declarations")
_SCHEMAS = ("input_schema", "parameters", "inputSchema", "parametersJsonSchema", "parameters_json_schema")


def decode_tool(raw: bytes | Raw, path: str = "$") -> Tool:
    """Return the one tool that `raw` describes, in the format of compactd (neutral), OpenAI (chat or
    Responses), Anthropic, MCP or Gemini. The schema keeps its bytes.

    Raise `InvalidParams` with the path of the bad field, which begins with `path`. An element of Gemini's
    `tools` that declares several tools also raises it; use `decode_tools` for those.
    """
    tools = decode_tools(raw, path)
    if len(tools) != 1:
        raise InvalidParams(f"give exactly one tool; this value declares {len(tools)}", path)
    return tools[0]


def decode_tools(raw: bytes | Raw, path: str = "$") -> tuple[Tool, ...]:
    """Return all tools that `raw` describes, in the same formats as `decode_tool`. One element of Gemini's
    `tools` may declare several.
    """
    given = fields(raw, path, "a tool")
    for name in _DECLARATIONS:
        if name in given:
            if first_byte(given[name]) != b"[":
                raise InvalidParams("the function declarations must be a list", f"{path}.{name}")
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
        raise InvalidParams("a tool's name must not be empty", f"{path}.name")
    description = optional_string(given, "description", path)
    for key in _SCHEMAS:
        if key in given:
            if first_byte(given[key]) != b"{":
                raise InvalidParams(
                    "the schema of a tool's parameters must be a JSON object", f"{path}.{key}"
                )
            return Tool(name=name, description=description, input_schema=given[key])
    return Tool(name=name, description=description, input_schema=NO_PARAMETERS)


def encode_tool(tool: Tool) -> Raw:
    """Encode `tool` in neutral form. The schema keeps its bytes."""
    return Raw(msgspec.json.encode(tool))

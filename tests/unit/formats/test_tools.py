from __future__ import annotations

import pytest
from msgspec import Raw

from compactd.formats.messages.tools import NO_PARAMETERS, decode_tool, decode_tools, encode_tool
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Tool

SCHEMA = b'{"type":"object" ,"properties":{"n":{"minimum":1.0}}}'
READ = Tool(name="read", description="Reads", input_schema=Raw(SCHEMA))


@pytest.mark.parametrize(
    "shape",
    [
        b'{"name":"read","description":"Reads","input_schema":%s}',
        b'{"type":"custom","name":"read","description":"Reads","input_schema":%s,"cache_control":null}',
        b'{"type":"function","function":{"name":"read","description":"Reads","parameters":%s}}',
        b'{"type":"function","name":"read","description":"Reads","parameters":%s,"strict":true}',
        b'{"functionDeclarations":[{"name":"read","description":"Reads","parameters":%s}]}',
        b'{"function_declarations":[{"name":"read","description":"Reads","parametersJsonSchema":%s}]}',
        b'{"name":"read","description":"Reads","inputSchema":%s}',
    ],
)
def test_a_tool_is_read_from_every_providers_shape_with_its_schema_byte_for_byte(shape: bytes) -> None:
    assert decode_tool(shape % SCHEMA) == READ


def test_one_gemini_tool_declares_many() -> None:
    tools = decode_tools(b'{"functionDeclarations":[{"name":"a"},{"name":"b","description":null}]}')

    assert tools == (Tool(name="a", input_schema=NO_PARAMETERS), Tool(name="b", input_schema=NO_PARAMETERS))


def test_a_tool_of_ours_comes_back_as_it_was() -> None:
    assert decode_tool(encode_tool(READ)) == READ
    assert SCHEMA in bytes(encode_tool(READ))


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b'"read"', "$.tools[0]"),
        (b"{}", "$.tools[0].name"),
        (b'{"name":""}', "$.tools[0].name"),
        (b'{"name":5}', "$.tools[0].name"),
        (b'{"name":"a","description":5}', "$.tools[0].description"),
        (b'{"name":"a","input_schema":"{}"}', "$.tools[0].input_schema"),
        (b'{"type":"function","function":{"description":"x"}}', "$.tools[0].function.name"),
        (b'{"functionDeclarations":{}}', "$.tools[0].functionDeclarations"),
        (b'{"functionDeclarations":[{"name":"a"},{}]}', "$.tools[0].functionDeclarations[1].name"),
        (b'{"functionDeclarations":[]}', "$.tools[0]"),
    ],
)
def test_a_wrong_tool_is_refused_with_the_path_of_the_bad_field(data: bytes, path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        decode_tool(data, "$.tools[0]")

    assert caught.value.data == {"path": path}

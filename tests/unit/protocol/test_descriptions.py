"""Every field of the protocol is described, in each form in which the protocol is published."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tools.codegen.json_schema import json_schema, open_rpc

Node = dict[str, "Node"] | list["Node"] | str | int | float | bool | None


def fields_in(node: Node, place: str = "") -> Iterator[tuple[str, str, dict[str, Node]]]:
    """(place, name, schema) of each property of each type, and of each param of a method."""
    match node:
        case dict():
            properties = node.get("properties")
            if isinstance(properties, dict) and place.startswith(("/$defs", "/components")):
                for name, schema in properties.items():
                    if isinstance(schema, dict):
                        yield place, name, schema
            for key, value in node.items():
                if key not in ("examples", "not"):
                    yield from fields_in(value, f"{place}/{key}")
        case list():
            for index, value in enumerate(node):
                if isinstance(value, dict) and place.endswith("/params"):
                    yield place, str(value["name"]), value
                yield from fields_in(value, f"{place}/{index}")


def is_described(name: str, schema: dict[str, Node]) -> bool:
    """Return whether the description says more than the name does."""
    if "const" in schema:
        return True
    words = re.findall(r"\w+", str(schema.get("description", "")).lower())
    return bool(set(words) - set(name.split("_")) - {"the", "a", "an", "of"})


def undescribed(text: str) -> list[str]:
    return [
        f"{place}/{name}"
        for place, name, schema in fields_in(json.loads(text))
        if not is_described(name, schema)
    ]


def test_each_field_of_the_json_schema_has_a_description() -> None:
    text = json_schema()

    assert len(list(fields_in(json.loads(text)))) > 550
    assert undescribed(text) == []


def test_each_field_of_openrpc_has_a_description() -> None:
    text = open_rpc()

    assert len(list(fields_in(json.loads(text)))) > 550
    assert undescribed(text) == []


def test_a_field_without_words_or_with_its_name_alone_is_found() -> None:
    schema = {
        "$defs": {
            "One": {
                "properties": {
                    "type": {"const": "one"},
                    "size_bytes": {"type": "integer"},
                    "call_id": {"type": "string", "description": "The id of the call."},
                    "name": {"type": "string", "description": "Name of the tool."},
                }
            }
        }
    }

    assert undescribed(json.dumps(schema)) == ["/$defs/One/size_bytes", "/$defs/One/call_id"]

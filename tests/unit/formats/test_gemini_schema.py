from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.formats.messages.gemini_schema import parameters
from tests.support.examples import examples
from tests.support.rules.gemini_contents import schema_problems


def converted(schema: dict[str, Any]) -> Any:
    return parameters(Raw(json.dumps(schema).encode()))


def of_property(schema: dict[str, Any], **root: Any) -> Any:
    made = converted({"type": "object", "properties": {"p": schema}, **root})
    assert schema_problems(made, "schema") == []
    return made["properties"]["p"]


@pytest.mark.parametrize(
    ("schema", "seen"),
    [
        ({"type": "string", "description": "A path"}, {"type": "string", "description": "A path"}),
        ({}, {"type": "string"}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"enum": [1, 2]}, {"type": "string", "enum": ["1", "2"]}),
        ({"type": "integer", "enum": [1]}, {"type": "string", "enum": ["1"]}),
        ({"type": "string", "enum": ["a", "", "a"]}, {"type": "string", "enum": ["a"]}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"items": {"type": "number"}}, {"type": "array", "items": {"type": "number"}}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
        ({"type": "string", "properties": {"a": {}}, "required": ["a"]}, {"type": "string"}),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 9}, {"type": "integer", "maximum": 9}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}], "title": "T"},
            {"title": "T", "anyOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
    ],
)
def test_a_property_is_written_in_geminis_subset(schema: dict[str, Any], seen: dict[str, Any]) -> None:
    assert of_property(schema) == seen


def test_a_reference_is_written_out_and_one_to_itself_ends() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}

    seen = of_property({"$ref": "#/$defs/node", "description": "D"}, **{"$defs": {"node": node}})

    assert seen == {
        "description": "D",
        "type": "object",
        "properties": {"name": {"type": "string"}, "next": {"type": "object"}},
    }
    assert of_property({"$ref": "#/$defs/gone"}) == {"type": "string"}
    assert of_property({"$ref": "https://example.org/schema"}) == {"type": "string"}


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}, {"type": "string"}]
)
def test_a_tool_without_parameters_declares_none(schema: dict[str, Any]) -> None:
    assert converted(schema) is None


def test_what_is_required_but_not_described_is_left_out() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]}

    assert converted(schema) == {**schema, "required": ["a"]}


def test_alternatives_at_the_root_give_the_properties_of_all() -> None:
    a, b = {"type": "string"}, {"type": "integer"}
    branches = [
        {"type": "object", "properties": {"a": a, "b": b}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": a}, "required": ["a"]},
    ]

    assert converted({"anyOf": branches}) == {
        "type": "object",
        "properties": {"a": a, "b": b},
        "required": ["a"],
    }


def test_a_schema_that_doubles_at_each_level_stays_small() -> None:
    branches = [{"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/$defs/d0"}}}]
    defs = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2 + [{"type": "number"}]} for n in range(30)}

    made = converted({"type": "object", "properties": {"p": {"anyOf": branches}}, "$defs": defs})

    assert schema_problems(made, "schema") == []
    assert len(json.dumps(made)) < 1_000_000


WORDS = st.sampled_from(("a", "b", "", "type", "null"))
VALUES = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | WORDS
)
TYPES = st.sampled_from(
    ("string", "number", "integer", "boolean", "array", "object", "null", "Object", "any")
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    many = st.lists(inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, max_size=3) | VALUES,
            "properties": st.dictionaries(WORDS, inner, max_size=3) | VALUES,
            "required": st.lists(WORDS, max_size=3) | VALUES,
            "items": inner | VALUES,
            "anyOf": many | VALUES,
            "oneOf": many,
            "allOf": many | VALUES,
            "enum": st.lists(VALUES, max_size=3) | VALUES,
            "const": VALUES,
            "format": st.sampled_from(("date-time", "uri", "int32", "double")) | VALUES,
            "$ref": st.sampled_from(("#", "#/properties/a", "#/gone", "x")) | VALUES,
            "minimum": VALUES,
            "minLength": VALUES,
            "description": VALUES,
            "nullable": VALUES,
            "additionalProperties": VALUES,
        },
    )


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(60))
@given(st.recursive(VALUES | _schemas(VALUES), _schemas, max_leaves=6))
def test_whatever_a_tool_declares_becomes_a_schema_that_gemini_takes(schema: Any) -> None:
    made = parameters(Raw(json.dumps(schema).encode()))

    assert made is None or schema_problems(made, "schema") == []

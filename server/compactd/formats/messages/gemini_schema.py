"""Convert a tool's JSON schema to Gemini's `parameters`, a subset of OpenAPI's schema.

Gemini (API reference, `Schema`, seen 2026-11) rejects a request that contains anything outside the subset:
"Unknown name "additionalProperties" … Cannot find field", "type: must be specified when not using one_of,
any_of or all_of fields", "enum: only allowed for STRING type", "enum[1]: cannot be empty", "items: missing
field", "required[0]: property is not defined", "properties: only allowed for OBJECT type", "properties:
should be non-empty for OBJECT type" (400s, seen 2025-04 to 2026-09). What has no equivalent is left out; the
tool itself still checks its arguments.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.formats.messages.json_parts import first_byte
from compactd.formats.messages.rendering import Json

_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")

# (field, type of its value) for any type, and for each type.
_ANY = (("title", str), ("description", str))
_OF_TYPE: dict[str, tuple[tuple[str, type], ...]] = {
    "string": (("pattern", str), ("minLength", int), ("maxLength", int)),
    "number": (("minimum", float), ("maximum", float)),
    "integer": (("minimum", float), ("maximum", float)),
    "array": (("minItems", int), ("maxItems", int)),
    "object": (("minProperties", int), ("maxProperties", int)),
}
_FORMATS = {
    "string": ("date-time", "enum"),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}

_MAX_DEPTH = 24
"""The maximum depth of a converted schema. A schema below this depth, and a schema inside itself, becomes
`{"type": "object"}`."""
_MAX_NODES = 4000
"""The maximum number of nodes of a converted schema. Each further node becomes `{"type": "object"}`."""


def parameters(schema: Raw) -> Json | None:
    """Return `schema` as Gemini's `parameters`; None for a tool without parameters. O(nodes), at most
    `_MAX_NODES`.
    """
    given = _object(schema)
    if given is None:
        return None
    node = _SchemaConverter(given).convert_root()
    return node if node.get("properties") else None


def _object(raw: Raw) -> Json | None:
    if first_byte(raw) != b"{":
        return None
    try:
        return msgspec.json.decode(raw, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return None


def _json(value: object) -> Json | None:
    """Return the decoded JSON `value` with its type narrowed if it is an object; otherwise None."""
    return {str(key): inner for key, inner in value.items()} if isinstance(value, dict) else None


class _SchemaConverter:
    """The conversion of one schema. It keeps the root schema, to which references refer, and counts nodes."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._nodes = 0
        self._open: list[str] = []

    def convert_root(self) -> Json:
        """Return the root schema as one object schema. If the root has alternatives, the result has the
        properties of all of them.
        """
        given, _ = self._merge_references(self._root)
        branches = _alternatives(given)
        if "properties" not in given and branches:
            parts = [self._merge_references(one)[0] for one in branches]
            wanted = [_names(one.get("required")) for one in parts]
            for part in parts:
                given = _together(given, part)
            given["required"] = [name for name in wanted[0] if all(name in names for names in wanted)]
        return self.convert_node({**given, "type": "object"}, 0)

    def convert_node(self, given: Json, depth: int) -> Json:
        """Return the schema `given` in Gemini's form. It is never empty and always has a type or `anyOf`."""
        self._nodes += 1
        given, references = self._merge_references(given)
        is_again = any(reference in self._open for reference in references)
        if is_again or depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            return {"type": "object"}
        self._open.extend(references)
        node = self._convert_members(given, depth)
        del self._open[len(self._open) - len(references) :]
        return node

    def _convert_members(self, given: Json, depth: int) -> Json:
        node: Json = {
            name: given[name] for name, kind in _ANY if isinstance(given.get(name), kind) and given[name]
        }
        types, nullable = _types(given)
        branches = _alternatives(given)
        # If a schema has both a type and alternatives, the alternatives only narrow the type and are left
        # out.
        if branches and not isinstance(given.get("type"), str) and "properties" not in given:
            converted, has_null = self._branches(branches, depth)
            nullable = nullable or has_null
            if len(converted) == 1:
                node = {**converted[0], **node}
            elif converted:
                node["anyOf"] = converted
        elif len(types) > 1:
            node["anyOf"] = [self._convert_type(given, kind, depth) for kind in types]
        else:
            node.update(self._convert_type(given, types[0], depth))
        if "type" not in node and "anyOf" not in node:
            node["type"] = "string"
        if nullable:
            node["nullable"] = True
        return node

    def _merge_references(self, given: Json) -> tuple[Json, list[str]]:
        """Return (`given` merged with the schemas that it refers to and with all parts of its `allOf`, the
        references that were followed).
        """
        seen: list[str] = []
        while isinstance(reference := given.get("$ref"), str):
            found = None if reference in seen else self._resolve_reference(reference)
            seen.append(reference)
            given = {**(found or {}), **{name: value for name, value in given.items() if name != "$ref"}}
        parts = given.get("allOf")
        if isinstance(parts, list):
            merged = {name: value for name, value in given.items() if name != "allOf"}
            for part in parts:
                one = _json(part)
                if one is None:
                    continue
                reference = one.get("$ref")
                if isinstance(reference, str):
                    seen.append(reference)
                    one = {**(self._resolve_reference(reference) or {}), **one}
                merged = _together(merged, one)
            given = {name: value for name, value in merged.items() if name not in ("$ref", "allOf")}
        return given, seen

    def _resolve_reference(self, reference: str) -> Json | None:
        """Return the schema that a reference such as `#/$defs/name` means; None for an external reference."""
        at: object = self._root
        if not reference.startswith("#"):
            return None
        for step in reference[1:].split("/")[1:]:
            if not isinstance(at, dict):
                return None
            at = at.get(step.replace("~1", "/").replace("~0", "~"))
        return _json(at)

    def _branches(self, branches: list[Json], depth: int) -> tuple[list[Json], bool]:
        """Return (the converted alternatives without those of the type null, whether there was a null)."""
        kept = [one for one in branches if one.get("type") != "null"]
        return [self.convert_node(one, depth + 1) for one in kept], len(kept) < len(branches)

    def _convert_type(self, given: Json, kind: str, depth: int) -> Json:
        """Return the part of the schema `given` that applies to values of the type `kind`, in
        Gemini's form.
        """
        values = given.get("enum", [given["const"]] if "const" in given else None)
        if isinstance(values, list) and kind in ("string", "number", "integer"):
            # Only strings may be enumerated.
            words = [_word(value) for value in values if value is not None]
            words = list(dict.fromkeys(word for word in words if word))
            if words:
                return {"type": "string", "enum": words}
        node: Json = {"type": kind}
        if given.get("format") in _FORMATS.get(kind, ()):
            node["format"] = given["format"]
        for name, wanted in _OF_TYPE.get(kind, ()):
            value = given.get(name)
            if isinstance(value, (int, float) if wanted is float else wanted) and not isinstance(value, bool):
                node[name] = value
        if kind == "array":
            items = _json(given.get("items"))
            node["items"] = {"type": "string"} if items is None else self.convert_node(items, depth + 1)
        if kind == "object":
            properties = self._properties(given, depth)
            if properties:
                node["properties"] = properties
                required = [name for name in _names(given.get("required")) if name in properties]
                if required:
                    node["required"] = required
        return node

    def _properties(self, given: Json, depth: int) -> Json:
        properties = _json(given.get("properties")) or {}
        converted = {name: _json(value) for name, value in properties.items()}
        return {name: self.convert_node(value or {}, depth + 1) for name, value in converted.items()}


def _types(given: Json) -> tuple[list[str], bool]:
    """Return (the types that `given` allows except null, at least one; whether null is allowed)."""
    named = given.get("type")
    listed = named if isinstance(named, list) else [named]
    kinds = [kind.lower() for kind in listed if isinstance(kind, str) and kind.lower() in _TYPES]
    nullable = "null" in kinds or given.get("nullable") is True
    kinds = [kind for kind in dict.fromkeys(kinds) if kind != "null"]
    if kinds:
        return kinds, nullable
    for kind, name in (("object", "properties"), ("array", "items")):
        if name in given:
            return [kind], nullable
    return ["string"], nullable


def _alternatives(given: Json) -> list[Json]:
    """Return the branches of `anyOf` or `oneOf`."""
    branches = given.get("anyOf") or given.get("oneOf")
    if not isinstance(branches, list):
        return []
    return [one for one in map(_json, branches) if one is not None]


def _names(value: object) -> list[str]:
    """Return the strings of a list; empty for anything else."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _together(one: Json, other: Json) -> Json:
    """Merge two schemas that both apply. The result has the properties and required names of both. If both
    have another field, the result has the one of `other`.
    """
    merged = {**one, **other}
    both = (_json(one.get("properties")), _json(other.get("properties")))
    if both[0] is not None and both[1] is not None:
        merged["properties"] = {**both[0], **both[1]}
    wanted = [*_names(one.get("required")), *_names(other.get("required"))]
    if wanted:
        merged["required"] = list(dict.fromkeys(wanted))
    return merged


def _word(value: object) -> str:
    """Return a value of an `enum` as a string, because Gemini allows no other values."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

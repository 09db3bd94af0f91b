"""The *shape* of a field of the protocol: the type of its JSON value, for any programming language."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator

import msgspec
from msgspec import Meta, Raw, Struct


class AnyJson(Struct, frozen=True):
    """Any JSON value."""


class Plain(Struct, frozen=True):
    """A string, a number, a boolean or null."""

    name: str
    """`string`, `integer`, `number`, `boolean` or `null`."""
    limits: tuple[tuple[str, int | float | str], ...] = ()
    """(name in JSON Schema, limit) of each limit of the value."""


class StringChoice(Struct, frozen=True):
    """One of the strings in `values`."""

    values: tuple[str, ...]
    is_open: bool = False
    """True if a later version may accept more values. Typed languages then use a string."""


class NamedType(Struct, frozen=True):
    """A reference to a type of the protocol."""

    kind: type[Struct]

    @property
    def name(self) -> str:
        """The type's name."""
        return self.kind.__name__


class ListOf(Struct, frozen=True):
    """A list whose items all have the same shape."""

    item: TypeShape


class MapOf(Struct, frozen=True):
    """An object with any keys, whose values all have the same shape."""

    value: TypeShape


class OneOf(Struct, frozen=True):
    """A value that has any of these shapes."""

    choices: tuple[TypeShape, ...]


TypeShape = AnyJson | Plain | StringChoice | NamedType | ListOf | MapOf | OneOf

NULL = Plain("null")
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LIMITS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}


def shape_of_annotation(kind: object) -> TypeShape:
    """Return the shape of an annotation in `protocol/wire.py` or `protocol/messages.py`. Raise `TypeError`
    for an annotation that the protocol does not use.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _with_limits(shape_of_annotation(arguments[0]), arguments[1:])
    if origin is typing.Literal:
        return StringChoice(arguments)
    if origin in (typing.Union, types.UnionType):
        choices = [shape_of_annotation(one) for one in arguments if one is not msgspec.UnsetType]
        return choices[0] if len(choices) == 1 else OneOf(tuple(choices))
    if origin is tuple:
        return ListOf(shape_of_annotation(arguments[0]))
    if origin is dict:
        return MapOf(shape_of_annotation(arguments[1]))
    if kind is Raw or kind is object or kind is typing.Any:
        return AnyJson()
    if isinstance(kind, type) and issubclass(kind, Struct):
        return NamedType(kind)
    if isinstance(kind, type) and kind in _PLAIN:
        return Plain(_PLAIN[kind])
    raise TypeError(f"cannot describe the type {kind!r}: no field of the protocol has it; add it here")


def annotation_text(kind: object) -> str:
    """Return the description in an annotation (`Meta(description=…)`); empty if there is none."""
    for one in typing.get_args(kind):
        if isinstance(one, Meta):
            return one.description or ""
    return ""


def structs_in(shape: TypeShape) -> Iterator[type[Struct]]:
    """Yield the structs that a field's shape refers to, directly or inside lists, objects and unions."""
    match shape:
        case NamedType(kind):
            yield kind
        case OneOf(choices):
            for one in choices:
                yield from structs_in(one)
        case ListOf(inner) | MapOf(inner):
            yield from structs_in(inner)
        case _:
            pass


def _with_limits(shape: TypeShape, said: tuple[object, ...]) -> TypeShape:
    if not isinstance(shape, Plain):
        return shape
    metas = [one for one in said if isinstance(one, Meta)]
    found = [
        (name, getattr(meta, ours))
        for meta in metas
        for ours, name in _LIMITS.items()
        if getattr(meta, ours) is not None
    ]
    for meta in metas:
        extra = meta.extra_json_schema or {}
        if "enum" in extra:
            return StringChoice(tuple(extra["enum"]), is_open=True)
        found += extra.items()
    return Plain(shape.name, tuple(found))

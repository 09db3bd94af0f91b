"""What a field of the protocol may hold, told apart from how any language writes it."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator

import msgspec
from msgspec import Meta, Raw, Struct


class Json(Struct, frozen=True):
    """Any JSON value."""


class Plain(Struct, frozen=True):
    """A value without parts."""

    name: str
    """`string`, `integer`, `number`, `boolean` or `null`."""
    limits: tuple[tuple[str, int | float | str], ...] = ()
    """By their names in JSON Schema."""


class Exactly(Struct, frozen=True):
    """One of these strings."""

    values: tuple[str, ...]
    is_open: bool = False
    """A later version may take more: typed languages see a text."""


class Named(Struct, frozen=True):
    """Another type of the protocol."""

    kind: type[Struct]

    @property
    def name(self) -> str:
        """As it is called everywhere."""
        return self.kind.__name__


class ListOf(Struct, frozen=True):
    """A list of one shape."""

    item: Shape


class MapOf(Struct, frozen=True):
    """An object with any keys and values of one shape."""

    value: Shape


class OneOf(Struct, frozen=True):
    """Any of these."""

    choices: tuple[Shape, ...]


Shape = Json | Plain | Exactly | Named | ListOf | MapOf | OneOf

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


def shape_of(kind: object) -> Shape:
    """The shape of an annotation of `protocol/wire.py` or `messages.py`. Raises `TypeError` for any other."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _limited(shape_of(arguments[0]), arguments[1:])
    if origin is typing.Literal:
        return Exactly(arguments)
    if origin in (typing.Union, types.UnionType):
        choices = [shape_of(one) for one in arguments if one is not msgspec.UnsetType]
        return choices[0] if len(choices) == 1 else OneOf(tuple(choices))
    if origin is tuple:
        return ListOf(shape_of(arguments[0]))
    if origin is dict:
        return MapOf(shape_of(arguments[1]))
    if kind is Raw or kind is object or kind is typing.Any:
        return Json()
    if isinstance(kind, type) and issubclass(kind, Struct):
        return Named(kind)
    if isinstance(kind, type) and kind in _PLAIN:
        return Plain(_PLAIN[kind])
    raise TypeError(f"the protocol has no shape for {kind!r}")


def words_of(kind: object) -> str:
    """What an annotation says of itself (`Meta(description=…)`); empty if nothing."""
    for one in typing.get_args(kind):
        if isinstance(one, Meta):
            return one.description or ""
    return ""


def structs_in(shape: Shape) -> Iterator[type[Struct]]:
    """The types named in a shape."""
    match shape:
        case Named(kind):
            yield kind
        case OneOf(choices):
            for one in choices:
                yield from structs_in(one)
        case ListOf(inner) | MapOf(inner):
            yield from structs_in(inner)
        case _:
            pass


def _limited(shape: Shape, said: tuple[object, ...]) -> Shape:
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
            return Exactly(tuple(extra["enum"]), is_open=True)
        found += extra.items()
    return Plain(shape.name, tuple(found))

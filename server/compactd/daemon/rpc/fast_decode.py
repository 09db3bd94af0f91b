"""Calls as most of them are: the methods a client has called before, read in one pass with their params.

What does not fit (a method not called yet, a field that is not known, null where a value belongs, a response,
what is no JSON at all) is looked at again by `envelope.py` and `params.py`, which know what to say about it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.rpc.params import ParamsReader
from compactd.protocol.methods import Method

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for a body."""


class Call(Struct, kw_only=True):
    """A call, params and all. Each method has a subclass of its own, which `method` tells from the others."""

    jsonrpc: Literal["2.0"]
    id: Raw | UnsetType = UNSET
    params: Struct


class _Nobodys(Call, tag_field="method", tag="rpc."):
    """Of no method, beside the others: msgspec lets a tag be missing where there is one type (0.22)."""


class KnownCalls:
    """How calls of the methods it has learned are read."""

    def __init__(self) -> None:
        self.decode: Callable[[bytes | bytearray], Call] = msgspec.json.Decoder(_Nobodys).decode
        """Reads a body that holds such a call; any other raises, or gives back what is in no table.

        `Raw` in the params shares the body's memory. What msgspec does not look at is left to the caller:
        what kind of value the id is, UTF-8 and depth.
        """
        self.methods: dict[type[Call], Method] = {}
        """The method of each type of call."""
        self._types: dict[str, type[Call]] = {}
        self._called: set[str] = set()

    def learn(self, method: Method, reader: ParamsReader) -> None:
        """To be told of each call that was read in another way: the second one of a method makes it known.

        A client that sends fields we do not know, or nulls, would have each of its calls read twice: where
        one did, the method is not known any more.
        """
        name = method.name
        if not reader.is_strict:
            if name in self._types:
                del self.methods[self._types.pop(name)]
                self._choose()
        elif name not in self._called:
            self._called.add(name)
        elif name not in self._types:
            made = self._types[name] = _call_of(name, reader.strict)
            self.methods[made] = method
            self._choose()

    def _choose(self) -> None:
        decoder: msgspec.json.Decoder[Call] = msgspec.json.Decoder(
            reduce(or_, self._types.values(), _Nobodys)
        )
        self.decode = decoder.decode


def _call_of(name: str, params: type[Struct]) -> type[Call]:
    try:
        params()
    except TypeError:
        field = msgspec.field()
    else:
        field = msgspec.field(default_factory=params)
    made = msgspec.defstruct(
        "KnownCall", [("params", params, field)], bases=(Call,), tag_field="method", tag=name, kw_only=True
    )
    assert issubclass(made, Call)
    return made

"""The fast path for usual calls: decode the envelope and the params of a known method in one pass.

A method is known after a client has called it twice. For any other message (with an unknown field, null for a
value, invalid JSON, or a response), the decoder raises. `envelope.py` and `params.py` then decode the message
again, or answer with an error.
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
"""The exceptions that msgspec raises for a body that it cannot decode."""


class DecodedCall(Struct, kw_only=True):
    """A call with its params. Each method has its own subclass, which the `method` field selects."""

    jsonrpc: Literal["2.0"]
    id: Raw | UnsetType = UNSET
    params: Struct


class _NoMethod(DecodedCall, tag_field="method", tag="rpc."):
    """A call of a method that does not exist. It makes the decoder's union have two types at least: with only
    one type, msgspec would accept a missing tag (0.22).
    """


class FastDecoder:
    """The known methods, and a decoder for calls of them."""

    def __init__(self) -> None:
        self.decode: Callable[[bytes | bytearray], DecodedCall] = msgspec.json.Decoder(_NoMethod).decode
        """The decoder of calls of known methods. For any other body it raises, or returns a type that is not
        in `methods`.

        `Raw` fields in the params share the body's memory. The caller must check what msgspec does not: the
        kind of the id, UTF-8 and depth."""
        self.methods: dict[type[DecodedCall], Method] = {}
        """The method for each call type."""
        self._types: dict[str, type[DecodedCall]] = {}
        self._called: set[str] = set()

    def learn(self, method: Method, reader: ParamsReader) -> None:
        """Note a call that was decoded on the slow path. The second such call makes its method known.

        If a client sends unknown fields or nulls, its calls fail on the fast path and are decoded twice. So
        such a call makes its method unknown again.
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
        decoder: msgspec.json.Decoder[DecodedCall] = msgspec.json.Decoder(
            reduce(or_, self._types.values(), _NoMethod)
        )
        self.decode = decoder.decode


def _call_of(name: str, params: type[Struct]) -> type[DecodedCall]:
    try:
        params()
    except TypeError:
        field = msgspec.field()
    else:
        field = msgspec.field(default_factory=params)
    made = msgspec.defstruct(
        "KnownCall",
        [("params", params, field)],
        bases=(DecodedCall,),
        tag_field="method",
        tag=name,
        kw_only=True,
    )
    assert issubclass(made, DecodedCall)
    return made

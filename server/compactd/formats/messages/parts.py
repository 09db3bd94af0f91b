"""JSON read part by part, so that what is not ours stays its own bytes and each error knows its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

import msgspec
from msgspec import Raw

from compactd.protocol.errors import InvalidParams, LimitExceeded

T = TypeVar("T")

NULL = Raw(b"null")

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_list = msgspec.json.Decoder(tuple[Raw, ...]).decode
_decode_string = msgspec.json.Decoder(str).decode


def first_byte(raw: bytes | Raw) -> bytes:
    """The byte that tells a JSON value's kind: `{`, `[`, `"`, a digit …; empty where there is none.

    O(1) unless white space comes first.
    """
    view = memoryview(raw)
    first = bytes(view[:1])
    return bytes(view).lstrip()[:1] if first in b" \t\r\n" else first


def decoded(decode: Callable[[bytes | Raw], T], raw: bytes | Raw, path: str) -> T:
    """What `decode` makes of `raw`, which stands at `path`; raises as `refuse`."""
    try:
        return decode(raw)
    except (RecursionError, msgspec.DecodeError, UnicodeDecodeError) as error:
        refuse(error, path)


def fields(raw: bytes | Raw, path: str, what: str) -> dict[str, Raw]:
    """The fields of the JSON object `raw`, without those that are null. `what` names it in the error."""
    if first_byte(raw) != b"{":
        raise InvalidParams(f"{what} is an object", path)
    return {name: value for name, value in decoded(_decode_object, raw, path).items() if value != NULL}


def elements(raw: bytes | Raw, path: str) -> tuple[Raw, ...]:
    """The elements of the JSON list `raw`."""
    return decoded(_decode_list, raw, path)


def string(raw: bytes | Raw, path: str) -> str:
    """The JSON string `raw`."""
    return decoded(_decode_string, raw, path)


def refuse(error: Exception, path: str) -> NoReturn:
    """Raises what `error`, from msgspec, is on the wire.

    `LimitExceeded` for nesting; else `InvalidParams` at `path` followed by msgspec's own path, which for a
    missing field is that of the object: the field's name is added.
    """
    if isinstance(error, RecursionError):
        raise LimitExceeded(f"JSON nested deeper than the limit - at `{path}`", path=path) from None
    if isinstance(error, UnicodeDecodeError):
        raise InvalidParams(f"not valid UTF-8 at byte {error.start}", path) from None
    text, found, inner = str(error).rpartition(" - at `$")
    if not found:
        text, inner = str(error), "`"
    place = path + inner.removesuffix("`")
    if text.startswith("Object missing required field `"):
        place += "." + text.split("`")[1]
    raise InvalidParams(text, place) from None


def one_line(data: bytes) -> bytes:
    """`data`, valid JSON, with its line breaks turned into spaces, for a peer that reads one value a line.

    Only between tokens can there be any: inside a string they are escaped.
    """
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data

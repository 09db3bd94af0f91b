"""Decode JSON part by part, so that user JSON keeps its bytes and each error has a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

import msgspec
from msgspec import Raw

from compactd.protocol.errors import InvalidParams, LimitExceeded
from compactd.protocol.messages import NULL

T = TypeVar("T")


_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_list = msgspec.json.Decoder(tuple[Raw, ...]).decode
_decode_string = msgspec.json.Decoder(str).decode


def first_byte(raw: bytes | Raw) -> bytes:
    """Return the byte that shows a JSON value's type: `{`, `[`, `"`, a digit …; empty if there is none.

    O(1) unless white space comes first.
    """
    view = memoryview(raw)
    first = bytes(view[:1])
    return bytes(view).lstrip()[:1] if first in b" \t\r\n" else first


def decode_part(decode: Callable[[bytes | Raw], T], raw: bytes | Raw, path: str) -> T:
    """Return `decode(raw)`. Raise the errors of `refuse`. `path` is the path of `raw`, for these errors."""
    try:
        return decode(raw)
    except (RecursionError, msgspec.DecodeError, UnicodeDecodeError) as error:
        refuse(error, path)


def fields(raw: bytes | Raw, path: str, what: str) -> dict[str, Raw]:
    """Return the fields of the JSON object `raw`, without those that are null. Raise the errors of `refuse`,
    and `InvalidParams` if `raw` is not an object. In errors, `path` is the path of `raw`, and `what` its
    name.
    """
    if first_byte(raw) != b"{":
        raise InvalidParams(f"{what} must be an object", path)
    return {name: value for name, value in decode_part(_decode_object, raw, path).items() if value != NULL}


def json_object(text: bytes | Raw | str) -> dict[str, Raw] | None:
    """Return the fields of the JSON object `text`; None if it is something else, broken, or nested too
    deeply.
    """
    try:
        return _decode_object(text)
    except (RecursionError, msgspec.DecodeError, UnicodeError):
        return None


def elements(raw: bytes | Raw, path: str) -> tuple[Raw, ...]:
    """Return the elements of the JSON list `raw`."""
    return decode_part(_decode_list, raw, path)


def string(raw: bytes | Raw, path: str) -> str:
    """Return the JSON string `raw`."""
    return decode_part(_decode_string, raw, path)


def required_string(given: Mapping[str, Raw], name: str, path: str) -> str:
    """Return the string `given[name]`. Raise `InvalidParams` if it is missing or something else. `path` is
    the path of `given`, for errors.
    """
    if name not in given:
        raise InvalidParams(f"{name} is missing", f"{path}.{name}")
    return string(given[name], f"{path}.{name}")


def optional_string(given: Mapping[str, Raw], name: str, path: str) -> str | None:
    """Return the string `given[name]`; None if it is missing. Raise `InvalidParams` if it is something else.
    `path` is the path of `given`, for errors.
    """
    return string(given[name], f"{path}.{name}") if name in given else None


def refuse(error: Exception, path: str) -> NoReturn:
    """Raise the protocol's error for `error`, which msgspec raised: `LimitExceeded` for too deep nesting,
    otherwise `InvalidParams`.

    The raised error contains `path`, followed by msgspec's own path and, for a missing field, by the field's
    name.
    """
    if isinstance(error, RecursionError):
        raise LimitExceeded(f"the JSON is nested too deeply - at `{path}`", path=path) from None
    if isinstance(error, UnicodeDecodeError):
        raise InvalidParams(f"the text is not valid UTF-8 at byte {error.start}", path) from None
    text, found, inner = str(error).rpartition(" - at `$")
    if not found:
        text, inner = str(error), "`"
    place = path + inner.removesuffix("`")
    if text.startswith("Object missing required field `"):
        place += "." + text.split("`")[1]
    raise InvalidParams(text, place) from None


def one_line(data: bytes) -> bytes:
    """Return valid JSON with its line breaks replaced by spaces, for a peer that reads one value per line.

    Line breaks can only be between tokens, because they are escaped inside strings.
    """
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data

"""Tolerant access to the fields of a provider's JSON. A field that is missing or has another type counts
as absent."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from compactd.formats.files.json_lines import repair_surrogates
from compactd.formats.messages.json_parts import json_object
from compactd.protocol.messages import NULL

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_number = msgspec.json.Decoder(float).decode

_BROKEN = (msgspec.MsgspecError, RecursionError, UnicodeError)
"""What msgspec raises for JSON that is wrong, nested too deeply, or not valid UTF-8."""


class NoJson(Exception):
    """The error that bytes are not a JSON object."""


class Fields:
    """One JSON object. Values are decoded only when they are asked for. O(bytes) per level."""

    def __init__(self, raw: bytes | Raw) -> None:
        """Decode one level of the object. Broken UTF-8 and lone surrogates become U+FFFD. Raises `NoJson`
        if `raw` is not an object."""
        try:
            self._fields = _decode_object(raw)
        except _BROKEN:
            try:
                self._fields = _decode_object(_mend(bytes(raw)))
            except _BROKEN as error:
                raise NoJson from error

    def raw(self, name: str) -> Raw | None:
        """Return the JSON of the value, unchanged; None if it is missing or null."""
        value = self._fields.get(name)
        return None if value is None or value == NULL else value

    def text(self, name: str) -> str:
        """Return the value if it is a string, otherwise an empty string."""
        return read_text(self._fields.get(name))

    def number(self, name: str) -> float | None:
        """Return the value if it is a number, or a string that contains one; otherwise None."""
        value = self._fields.get(name)
        if value is None:
            return None
        try:
            return _decode_number(value)
        except msgspec.MsgspecError:
            try:
                return float(read_text(value))
            except ValueError:
                return None

    def is_true(self, name: str) -> bool:
        """Return whether the value is `true`."""
        return self._fields.get(name) == _TRUE

    def object(self, *names: str) -> Fields:
        """Return the first object among the values of `names`; an empty object if there is none."""
        for name in names:
            if (found := read_object(self._fields.get(name))) is not None:
                return found
        return Fields(b"{}")

    def items(self, name: str) -> Sequence[Raw]:
        """Return the JSON of each item if the value is a list, otherwise an empty sequence."""
        return read_list(self._fields.get(name))

    def objects(self, name: str) -> list[Fields]:
        """Return the objects in the value if it is a list; otherwise an empty list."""
        return [found for raw in self.items(name) if (found := read_object(raw)) is not None]

    def __contains__(self, name: str) -> bool:
        return self.raw(name) is not None


_TRUE = Raw(b"true")


def read_text(raw: Raw | None) -> str:
    """Return the string that `raw` encodes; an empty string if it is not a JSON string. Invalid text
    becomes U+FFFD."""
    if raw is None or not is_json_string(raw):
        return ""
    try:
        return _decode_text(raw)
    except (msgspec.MsgspecError, UnicodeError):
        try:
            return _decode_text(_mend(bytes(raw)))
        except (msgspec.MsgspecError, UnicodeError):
            return ""


def is_json_string(raw: Raw) -> bool:
    """Return whether `raw` is a JSON string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def read_list(raw: bytes | Raw | None) -> Sequence[Raw]:
    """Return the JSON of each item of the list `raw`; an empty sequence if it is not a JSON list."""
    if raw is None:
        return ()
    try:
        return _decode_list(raw)
    except _BROKEN:
        return ()


def read_object(raw: Raw | None) -> Fields | None:
    """Return the fields of `raw`; None if it is not a JSON object."""
    if raw is None:
        return None
    try:
        return Fields(raw)
    except NoJson:
        return None


def object_bytes(text: str) -> Raw | None:
    """Return `text` as JSON, byte for byte, if it is an object; otherwise None. Empty text and `null`
    count as `{}`."""
    bare = text.strip()
    if bare in ("", "null"):
        return Raw(b"{}")
    return None if json_object(bare) is None else Raw(bare.encode())


def _mend(body: bytes) -> bytes:
    """Return `body` with U+FFFD for broken UTF-8 and for lone surrogates. O(bytes)."""
    return repair_surrogates(body.decode("utf-8", "replace").encode())

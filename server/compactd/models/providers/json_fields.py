"""JSON of a provider, field by field: what is missing or of another type than asked for counts as absent."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_number = msgspec.json.Decoder(float).decode

Nested = RecursionError
"""What msgspec raises for JSON that is nested too deeply."""


class NoJson(Exception):
    """The bytes are no JSON object."""


class Fields:
    """One JSON object. Values stay bytes until they are asked for. O(bytes) for each level."""

    def __init__(self, raw: bytes | Raw) -> None:
        """Raises `NoJson` for what is no object. Broken UTF-8 and lone surrogates become U+FFFD."""
        try:
            self._fields = _decode_object(raw)
        except (msgspec.MsgspecError, Nested, UnicodeError):
            try:
                self._fields = _decode_object(_mended(bytes(raw)))
            except (msgspec.MsgspecError, Nested, UnicodeError) as error:
                raise NoJson from error

    def raw(self, name: str) -> Raw | None:
        """The value as it came; None where it is missing or null."""
        value = self._fields.get(name)
        return None if value is None or value == _NULL else value

    def text(self, name: str) -> str:
        """A string; empty where there is none."""
        return text_in(self._fields.get(name))

    def number(self, name: str) -> float | None:
        """A number, also one that is written as a string."""
        value = self._fields.get(name)
        if value is None:
            return None
        try:
            return _decode_number(value)
        except msgspec.MsgspecError:
            try:
                return float(text_in(value))
            except ValueError:
                return None

    def is_true(self, name: str) -> bool:
        """Whether the value is `true`."""
        return self._fields.get(name) == _TRUE

    def object(self, *names: str) -> Fields:
        """The first of `names` that holds an object; an empty one where none does."""
        for name in names:
            if (found := object_in(self._fields.get(name))) is not None:
                return found
        return Fields(b"{}")

    def items(self, name: str) -> Sequence[Raw]:
        """The values of a list; none where there is none."""
        return list_in(self._fields.get(name))

    def objects(self, name: str) -> list[Fields]:
        """The objects of a list; none where there is none."""
        return [found for raw in self.items(name) if (found := object_in(raw)) is not None]

    def __contains__(self, name: str) -> bool:
        return self.raw(name) is not None


_NULL = Raw(b"null")
_TRUE = Raw(b"true")


def text_in(raw: Raw | None) -> str:
    """The string that `raw` is; empty where it is none. What is no text in it becomes U+FFFD."""
    if raw is None or not is_text(raw):
        return ""
    try:
        return _decode_text(raw)
    except (msgspec.MsgspecError, UnicodeError):
        try:
            return _decode_text(_mended(bytes(raw)))
        except (msgspec.MsgspecError, UnicodeError):
            return ""


def is_text(raw: Raw) -> bool:
    """Whether `raw` is a JSON string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def list_in(raw: bytes | Raw | None) -> Sequence[Raw]:
    """The values of the list that `raw` is; none where it is none."""
    if raw is None:
        return ()
    try:
        return _decode_list(raw)
    except (msgspec.MsgspecError, Nested, UnicodeError):
        return ()


def object_in(raw: Raw | None) -> Fields | None:
    """The object that `raw` is; None where it is none."""
    if raw is None:
        return None
    try:
        return Fields(raw)
    except NoJson:
        return None


def object_bytes(text: str) -> Raw | None:
    """`text` as the JSON object it is, byte for byte; None where it is none. Empty text is `{}`."""
    bare = text.strip()
    if bare in ("", "null"):
        return Raw(b"{}")
    try:
        raw = Raw(bare.encode())
        _decode_object(raw)
    except (msgspec.MsgspecError, Nested, UnicodeError):
        return None
    return raw


def _mended(body: bytes) -> bytes:
    """`body` with U+FFFD for broken UTF-8 and for lone surrogates (`\\ud83d` alone). O(bytes)."""
    import re  # rare

    text = body.decode("utf-8", "replace")
    halves = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
    whole = rf"(\\[^u]|{halves}\\u[dD][c-fC-F][0-9a-fA-F]{{2}})|\\u[dD][89a-fA-F][0-9a-fA-F]{{2}}"
    return re.sub(whole, lambda match: match.group(1) or "\\ufffd", text).encode()

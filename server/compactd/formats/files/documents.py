"""Session files that are one JSON document: opened whole, or as far as one goes that was cut off."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Raw

from compactd.formats.files.lines import Warn, mend_surrogates, utf8
from compactd.formats.messages.lenient_json import Given, is_list
from compactd.formats.messages.parts import NULL, elements, first_byte
from compactd.protocol.errors import InvalidParams, LimitExceeded

# A text that was cut off goes to the end: else each quote in it would begin another one, as long.
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+|[{}\[\]]', re.S)
_CLOSES = {b"{": b"}", b"[": b"]"}
_BOM = b"\xef\xbb\xbf"

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode


def opened(data: bytes, warn: Warn, *names: str) -> tuple[Given, Sequence[Raw]]:
    """(what the document says beside its list, the list's elements).

    The document is a list, or an object with a list under the first of `names` that it has. One that was cut
    off is read up to its last whole element, with a warning. Raises `InvalidParams` where there is no such
    list, `LimitExceeded` for nesting. Cost: O(bytes).
    """
    about = document(data, warn)
    if not isinstance(about, dict):
        return {}, about
    for name in names:
        if is_list(about.get(name, NULL)):
            listed = elements(about[name], f"$.{name}")
            return {key: raw for key, raw in about.items() if key != name}, listed
    raise InvalidParams(f"the file holds no list of {names[0]}", f"$.{names[0]}")


def document(data: bytes, warn: Warn) -> Given | tuple[Raw, ...]:
    """The object's fields, or the list's elements. Raises as `opened`. Cost: O(bytes)."""
    text = utf8(data.removeprefix(_BOM).strip(), "the file", warn)
    for attempt in (text, mend_surrogates(text)):
        found = _decoded(attempt)
        if found is not None:
            return found
    whole = closed(mend_surrogates(text))
    found = None if whole is None else _decoded(whole)
    if found is None:
        raise InvalidParams("the file is no JSON document", "$")
    warn("the file is cut off: what followed its last whole message was left out")
    return found


def is_whole(data: bytes) -> bool:
    """True for one JSON object or list, whole. O(bytes)."""
    try:
        return _decoded(mend_surrogates(data.removeprefix(_BOM).strip())) is not None
    except LimitExceeded:
        return False


def _decoded(text: bytes) -> Given | tuple[Raw, ...] | None:
    try:
        match first_byte(text):
            case b"{":
                return _decode_object(text)
            case b"[":
                return elements(text, "$")
            case _:
                return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidParams):
        return None


def closed(text: bytes) -> bytes | None:
    """`text`, JSON that was cut off, up to the last whole element of its outermost lists, and closed.

    None where there is no such element, or `text` is not cut off but broken. Cost: O(bytes), about 20 MB/s:
    only damaged files come here.
    """
    stack: list[bytes] = []
    best: tuple[int, bytes] | None = None
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in _CLOSES:
            stack.append(token)
        elif token[:1] != b'"':
            if not stack or _CLOSES[stack[-1]] != token:
                return None
            stack.pop()
            if not stack:
                return None
            if stack[-1] == b"[" and len(stack) <= 2:
                best = found.end(), b"".join(_CLOSES[one] for one in reversed(stack))
    return None if best is None else text[: best[0]] + best[1]

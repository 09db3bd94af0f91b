"""Read session files that are one JSON document, complete or cut off."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Raw

from compactd.formats.files.json_lines import Warn, repair_surrogates, utf8
from compactd.formats.messages.json_parts import elements, first_byte
from compactd.formats.messages.lenient_json import Given, is_list
from compactd.protocol.errors import InvalidParams, LimitExceeded
from compactd.protocol.messages import NULL

# A string without its closing quote is matched up to the end of the text. If it were not matched, the search
# would try again at each quote inside the string, and each attempt would read to the end.
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+|[{}\[\]]', re.S)
_CLOSES = {b"{": b"}", b"[": b"]"}
_BOM = b"\xef\xbb\xbf"

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode


def open_document(data: bytes, warn: Warn, *names: str) -> tuple[Given, Sequence[Raw]]:
    """Return (the fields of the document without its list, the elements of the list). O(bytes).

    The document is a list, or an object with a list in the first of `names` that it has. A document that was
    cut off is read up to its last complete element, with a warning. Raise `InvalidParams` if there is no such
    list, and `LimitExceeded` if it is nested too deeply.
    """
    about = document(data, warn)
    if not isinstance(about, dict):
        return {}, about
    for name in names:
        if is_list(about.get(name, NULL)):
            listed = elements(about[name], f"$.{name}")
            return {key: raw for key, raw in about.items() if key != name}, listed
    raise InvalidParams(f"the file has no list `{names[0]}`", f"$.{names[0]}")


def document(data: bytes, warn: Warn) -> Given | tuple[Raw, ...]:
    """Return the fields of the JSON object in `data`, or the elements of the JSON list. O(bytes).

    A document that was cut off is read up to its last complete element, with a warning. Raise `InvalidParams`
    if `data` is no JSON document, and `LimitExceeded` if it is nested too deeply.
    """
    text = utf8(data.removeprefix(_BOM).strip(), "the file", warn)
    for attempt in (text, repair_surrogates(text)):
        found = _decode(attempt)
        if found is not None:
            return found
    whole = close_json(repair_surrogates(text))
    found = None if whole is None else _decode(whole)
    if found is None:
        raise InvalidParams("the file is not a JSON document", "$")
    warn("the file is cut off: what followed its last whole message was left out")
    return found


def is_complete(data: bytes) -> bool:
    """Return whether `data` is one complete JSON object or list. O(bytes)."""
    try:
        return _decode(repair_surrogates(data.removeprefix(_BOM).strip())) is not None
    except LimitExceeded:
        return False


def _decode(text: bytes) -> Given | tuple[Raw, ...] | None:
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


def close_json(text: bytes) -> bytes | None:
    """Return cut-off JSON up to the last complete element of its outermost lists, with the brackets closed.

    None if there is no such element, or if `text` is broken rather than cut off. O(bytes), about 20 MB/s;
    only used for damaged files.
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

"""Read session files with one JSON object per line, including ones that are cut off or wrongly encoded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Raw

Warn = Callable[[str], None]

# Matches a surrogate pair, a lone surrogate, or any other escape, in this order, so that `\\ud83d` (an
# escaped backslash and five letters) is not taken for a surrogate.
_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.S
)

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode


def records(data: bytes, warn: Warn) -> Iterator[tuple[int, dict[str, Raw]]]:
    """Yield (line number from 1, the object's fields) for each line of `data` that is a JSON object.
    O(bytes).

    Other lines are skipped with a warning. If the last line is one of them, the warning says that it is cut
    off. Invalid UTF-8 and lone surrogates become U+FFFD, with a warning.
    """
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        line = data[start:end].strip()
        start = end + 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            continue
        fields = _fields(line, f"line {number}", warn)
        if fields is not None:
            yield number, fields
        elif start >= len(data):
            warn(f"line {number}, the last one, is cut off and was left out")
        else:
            warn(f"line {number} is not a JSON object and was left out")


def _fields(line: bytes, where: str, warn: Warn) -> dict[str, Raw] | None:
    if not line.startswith(b"{"):
        return None
    line = utf8(line, where, warn)
    try:
        return _decode_object(line)
    except (msgspec.DecodeError, RecursionError):
        mended = repair_surrogates(line)
    if mended == line:
        return None
    try:
        fields = _decode_object(mended)
    except (msgspec.DecodeError, RecursionError):
        return None
    warn(f"{where}: a lone surrogate was replaced by U+FFFD")
    return fields


def utf8(data: bytes, where: str, warn: Warn) -> bytes:
    """Return `data` as valid UTF-8. Invalid bytes become U+FFFD, with a warning."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        warn(f"{where}: invalid UTF-8 was replaced by U+FFFD")
        return data.decode("utf-8", "replace").encode()
    return data


def repair_surrogates(data: bytes) -> bytes:
    r"""Return JSON `data` with each lone surrogate escape, such as `\ud83d`, replaced by
    `\ufffd`. O(bytes).
    """
    if b"\\ud" not in data and b"\\uD" not in data:
        return data
    return _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)

"""How a record stands in a journal: one line, numbered and checksummed.

    {"seq":9,"type":"message",…,"crc":"1c291ca3"}

`crc` is the CRC-32 of the line's bytes before `,"crc"`, in eight lower-case hex digits. A record may hold
line ends between its tokens, where a client sent its JSON so; they are written as spaces and their places
noted after `seq`, as `"nl":[17,40]`, so that the record is read back byte for byte.

Records that were written at once say so, all but the first: `"with":7` after `seq` is the number of that
first one. A power cut may leave a later page of such a write and not an earlier one (Pillai et al., "All File
Systems Are Not Created Equal", OSDI 2014): it was never acknowledged then, and its rest is torn, not damage.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

_START = b'{"seq":'
_NEWLINES = b'"nl":['
_WITH = b'"with":'
_MARK = b',"crc":"'
_TAIL_BYTES = len(b',"crc":"00000000"}')
_NEVER_BEGUN_BYTES = 65_536
"""A file this small that holds no line and no record is a creation that was cut off."""
_NUMBER_DIGITS = 20
"""Most of one in front of a record."""


class Damage(Struct, frozen=True, kw_only=True):
    """Something that no cut-off can have caused, with whole records behind it."""

    line: int
    """Counted from 1."""
    after: tuple[memoryview, ...]
    """The records behind it that can be read, by rising `seq`."""


class Scan(Struct, frozen=True, kw_only=True):
    """What stands in the bytes of a journal."""

    records: tuple[memoryview, ...]
    """Whole and without a gap, from the first one on; `seq` and `crc` still in them."""
    end: int
    """Where the last of `records` ends, its line end included if it has one."""
    needs_newline: bool
    """True where it has none."""
    damage: Damage | None

    @property
    def is_never_begun(self) -> bool:
        """True where not even the first record was written whole, and nothing else was."""
        return not self.records and self.damage is None


class _Plain(Struct, frozen=True):
    """Any JSON object, looked at for nothing but its syntax."""


_is_whole_json = msgspec.json.Decoder(_Plain).decode


def check(record: bytes) -> None:
    """Raises `ValueError` unless `record` looks like a record. O(1)."""
    if not record.startswith(b'{"type":"') or not record.endswith(b"}"):
        raise ValueError('a record is one JSON object and begins with {"type":"')


def frame(seq: int, record: bytes, first: int | None = None) -> tuple[bytes, memoryview, bytes]:
    """The line of a record, in three pieces so that a large one is not copied. O(bytes).

    `first`: the number of the first record that is written with this one; none where that is this one.
    """
    head = b'{"seq":%d,' % seq if first is None else b'{"seq":%d,"with":%d,' % (seq, first)
    if b"\n" in record:
        head += b'"nl":[%s],' % ",".join(map(str, _newlines(record))).encode()
        record = record.replace(b"\n", b" ")
    middle = memoryview(record)[1:-1]
    return head, middle, b',"crc":"%08x"}\n' % zlib.crc32(middle, zlib.crc32(head))


def line(seq: int, record: bytes) -> bytes:
    """The line of a record, its line end included."""
    return b"".join(frame(seq, record))


def bare(record: bytes | memoryview) -> bytes:
    """A record as it was appended: without the `seq`, `with` and `crc` that `scan` leaves in it. O(bytes)."""
    whole = bytes(record)
    if not whole.startswith(_START):
        return whole
    return b"{" + whole[_own(whole, 0) : -_TAIL_BYTES] + b"}"


def scan(data: bytes, first_seq: int = 0) -> Scan:
    """The records in `data`, of which the first has to have `first_seq`. O(bytes); copies nothing.

    What follows the last whole record is torn, and left out, unless a whole record stands behind it:
    that is damage. Looks at checksums and numbers only; what a record means is not decoded.
    """
    view = memoryview(data)
    records: list[memoryview] = []
    pos, size = 0, len(data)
    find, starts, crc32, add = data.find, data.startswith, zlib.crc32, records.append
    seq, stop = first_seq, -1
    while pos < size:
        stop = find(0x0A, pos)
        end = size if stop < 0 else stop
        tail = end - _TAIL_BYTES
        is_plain = starts(b'{"seq":%d,"type":' % seq, pos, tail)
        if (
            not (is_plain or starts(b'{"seq":%d,' % seq, pos, tail))
            or not starts(b',"crc":"%08x"}' % crc32(view[pos:tail]), tail, end)
            or (stop < 0 and not _is_json(view[pos:end]))  # see _is_json: only the last can be cut off
        ):
            return _scan_rest(data, pos, first_seq, records)
        is_whole = is_plain or not starts(_NEWLINES, _own(data, pos))
        add(view[pos:end] if is_whole else _with_newlines(data[pos:end]))
        pos, seq = end + 1, seq + 1
    needs_newline = bool(records) and stop < 0
    return Scan(
        records=tuple(records), end=size if needs_newline else pos, needs_newline=needs_newline, damage=None
    )


def _scan_rest(data: bytes, pos: int, first_seq: int, records: list[memoryview]) -> Scan:
    """The scan of a file whose line at `pos` is not the record that belongs there."""
    line_number = first_seq + len(records) + 1
    end, needs_newline = pos, False
    after: list[memoryview] = []
    firsts: list[int | None] = []
    gap_ends = -1
    last_seq = first_seq + len(records) - 1
    for start, stop in _lines(data, pos):
        for record_start, record_end, seq in _whole_records(data, start, stop):
            if seq <= last_seq:
                continue
            record = _with_newlines(data[record_start:record_end])
            if record_start == pos and seq == last_seq + 1:
                # Whole, but something stands where its line end should: what follows decides.
                records.append(record)
                end, needs_newline = record_end, True
            else:
                gap_ends = record_start if gap_ends < 0 else gap_ends
                after.append(record)
                firsts.append(_first(data, record_start))
            last_seq = seq
    gap = first_seq + len(records)
    is_one_write = all(first is not None and first <= gap for first in firsts)
    is_torn = is_one_write and _is_unwritten(data[end:gap_ends])
    damage = Damage(line=line_number, after=tuple(after)) if after and not is_torn else None
    if damage is None and not after and not records and first_seq == 0 and not _is_cut_off_creation(data):
        damage = Damage(line=1, after=())
    return Scan(records=tuple(records), end=end, needs_newline=needs_newline, damage=damage)


def _is_unwritten(gap: bytes) -> bool:
    # A page or sector of a write that was never synced reads as zeros: many, or it began with the gap. One
    # zero elsewhere is a space that lost its bit.
    return b"\0\0" in gap or 0 in gap[:2]


def _is_cut_off_creation(data: bytes) -> bool:
    return b"\n" not in data and (len(data) <= _NEVER_BEGUN_BYTES or data.startswith(_START))


def _lines(data: bytes, pos: int) -> Iterator[tuple[int, int]]:
    while pos < len(data):
        stop = data.find(b"\n", pos)
        stop = len(data) if stop < 0 else stop
        yield pos, stop
        pos = stop + 1


def _whole_records(data: bytes, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, seq) of the records in a line that is not one record.

    Looks behind a record for another, where a line end was lost; never inside something that is no
    whole record, because a client's own JSON may hold what looks like one.
    """
    while start >= 0:
        found = _record_at(data, start, stop)
        if found is None:
            return
        end, seq = found
        yield start, end, seq
        start = data.find(_START, end, stop)


def _record_at(data: bytes, start: int, stop: int) -> tuple[int, int] | None:
    """(end, seq) of the whole record that begins at `start`, if one does."""
    comma = data.find(b",", start, min(stop, start + 32))
    if comma < 0 or not data.startswith(_START, start):
        return None
    digits = data[start + len(_START) : comma]
    if not digits.isdigit():
        return None
    view = memoryview(data)
    crc, done = 0, start
    mark = data.find(_MARK, start, stop)
    while mark >= 0:
        crc, done = zlib.crc32(view[done:mark], crc), mark
        end = mark + _TAIL_BYTES
        if end <= stop and data[mark:end] == b',"crc":"%08x"}' % crc and _is_json(view[start:end]):
            return end, int(digits)
        mark = data.find(_MARK, mark + 1, stop)
    return None


def _is_json(text: memoryview) -> bool:
    # No object is the beginning of a longer one: what parses was not cut off inside. A checksum alone
    # does not tell: a client may have put the right one into its own JSON.
    try:
        _is_whole_json(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _newlines(record: bytes) -> list[int]:
    places = []
    at = record.find(b"\n")
    while at >= 0:
        places.append(at)
        at = record.find(b"\n", at + 1)
    return places


def _with_newlines(whole: bytes) -> memoryview:
    """`whole`, a good line, with the line ends put back that `frame` took out, and their list left out.

    A place where no space stands is passed over: only a forger writes one, and white space is all it changes.
    """
    after_seq = _own(whole, 0)
    close = whole.find(b"],", after_seq)
    if not whole.startswith(_NEWLINES, after_seq) or close < 0:
        return memoryview(whole)
    places = whole[after_seq + len(_NEWLINES) : close].split(b",")
    restored = bytearray(whole[:after_seq] + whole[close + 2 :])
    for place in places:
        # Places count from the record's `{`, whose place the comma after `seq` has taken here.
        at = after_seq - 1 + (_number(place) or 0)
        if restored[at : at + 1] == b" ":
            restored[at] = 0x0A
    return memoryview(bytes(restored))


def _number(digits: bytes) -> int | None:
    """What `frame` wrote as a number; none for what it never writes (`int` refuses thousands of digits)."""
    return int(digits) if digits.isdigit() and len(digits) <= _NUMBER_DIGITS else None


def _own(data: bytes, start: int) -> int:
    """Where a record's own members, or the list of its line ends, begin in the line at `start`."""
    at = data.index(b",", start) + 1
    return data.index(b",", at) + 1 if data.startswith(_WITH, at) else at


def _first(data: bytes, start: int) -> int | None:
    """The number of the first record that was written with the one at `start`; none where that is itself."""
    at = data.index(b",", start) + 1
    if not data.startswith(_WITH, at):
        return None
    return _number(data[at + len(_WITH) : data.index(b",", at)])


def lines(records: Sequence[bytes]) -> Iterator[bytes]:
    """A whole journal, line by line, of records as they were appended."""
    return (line(seq, record) for seq, record in enumerate(records))

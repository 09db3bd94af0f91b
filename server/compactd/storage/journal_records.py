"""The format of a journal: one record per line, numbered and checksummed.

    {"seq":9,"type":"message",…,"crc":"1c291ca3"}

`crc` is the CRC-32 of the line's bytes before `,"crc"`, in eight lower-case hex digits. A client's JSON can
have line breaks between its tokens. They are written as spaces, and their positions are listed after `seq`,
as `"nl":[17,40]`, so that the record is read back byte for byte.

If several records are written at once, all except the first name the first one: after their `seq` they have
`"with":7` if the first record's `seq` is 7. A power cut may keep a later page of such a write and lose an
earlier page (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014). Such a write was never
acknowledged, so what is left of it counts as a torn end of the file, not as damage.
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
"""If a file of at most this many bytes has no line end and no whole record, its creation was interrupted. A
larger file that does not begin like a record is damaged."""
_NUMBER_DIGITS = 20
"""The most digits of a number that `frame` writes. Longer numbers are ignored."""


class Damage(Struct, frozen=True, kw_only=True):
    """A damaged place in a journal. Whole records follow it, or the file contains no record at all; otherwise
    the place would be a torn end.
    """

    line: int
    """The number of the damaged line, counted from 1."""
    after: tuple[memoryview, ...]
    """The readable records after the damaged line, by rising `seq`."""


class JournalScan(Struct, frozen=True, kw_only=True):
    """The records that were found in the bytes of a journal."""

    records: tuple[memoryview, ...]
    """The whole records from the first one on, without a gap. They still contain `seq` and `crc`."""
    end: int
    """The offset after the last of `records`, including its line end if it has one."""
    needs_newline: bool
    """True if the last record has no line end."""
    damage: Damage | None

    @property
    def is_never_begun(self) -> bool:
        """True if the journal's creation was interrupted: not even the first record was
        completely written.
        """
        return not self.records and self.damage is None


class _Plain(Struct, frozen=True):
    """Any JSON object. Only its syntax is checked."""


_is_whole_json = msgspec.json.Decoder(_Plain).decode


def check_record(record: bytes) -> None:
    """Raise `ValueError` unless `record` begins and ends like a record. O(1)."""
    if not record.startswith(b'{"type":"') or not record.endswith(b"}"):
        raise ValueError('a record is one JSON object and begins with {"type":"')


def frame(seq: int, record: bytes, first: int | None = None) -> tuple[bytes, memoryview, bytes]:
    """Return the journal line of a record, in three pieces, so that a large record is not copied. O(bytes).

    `first` is the `seq` of the first record in the same write, or None if this record is the first.
    """
    head = b'{"seq":%d,' % seq if first is None else b'{"seq":%d,"with":%d,' % (seq, first)
    if b"\n" in record:
        head += b'"nl":[%s],' % ",".join(map(str, _newlines(record))).encode()
        record = record.replace(b"\n", b" ")
    middle = memoryview(record)[1:-1]
    return head, middle, b',"crc":"%08x"}\n' % zlib.crc32(middle, zlib.crc32(head))


def encode_record(seq: int, record: bytes) -> bytes:
    """Return the journal line of a record, including its line end."""
    return b"".join(frame(seq, record))


def as_appended(record: bytes | memoryview) -> bytes:
    """Return a record as it was appended, without `seq`, `with` and `crc`. O(bytes)."""
    whole = bytes(record)
    if not whole.startswith(_START):
        return whole
    return b"{" + whole[_members_start(whole, 0) : -_TAIL_BYTES] + b"}"


def scan(data: bytes, first_seq: int = 0) -> JournalScan:
    """Return the records in `data`. The first one must have the number `first_seq`. O(bytes); copies nothing.

    Unreadable bytes after the last whole record are a torn end and are left out. An unreadable place before a
    whole record is damage, unless both are left of one interrupted write. Only checksums and numbers are
    checked; records are not decoded.
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
            or (stop < 0 and not _is_json(view[pos:end]))  # see _is_json: only the last line can be cut off
        ):
            return _scan_rest(data, pos, first_seq, records)
        is_whole = is_plain or not starts(_NEWLINES, _members_start(data, pos))
        add(view[pos:end] if is_whole else _with_newlines(data[pos:end]))
        pos, seq = end + 1, seq + 1
    needs_newline = bool(records) and stop < 0
    return JournalScan(
        records=tuple(records), end=size if needs_newline else pos, needs_newline=needs_newline, damage=None
    )


def _scan_rest(data: bytes, pos: int, first_seq: int, records: list[memoryview]) -> JournalScan:
    """Scan a journal from `pos` on, where `scan` did not find the record after `records`. Decide whether the
    place is damage or a torn end.
    """
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
                # The record is whole but has no line end. It is damage only if more records follow.
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
    return JournalScan(records=tuple(records), end=end, needs_newline=needs_newline, damage=damage)


def _is_unwritten(gap: bytes) -> bool:
    # An unsynced page or sector reads as zeros: several of them, or some at the gap's beginning. A single
    # zero elsewhere is a space with a flipped bit.
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
    """Yield (start, end, seq) of the whole records in a line that is not exactly one record.

    After a record, search for the next one, since a line end may be lost. Never search inside something that
    is not a whole record, because a client's JSON can contain what looks like a record.
    """
    while start >= 0:
        found = _record_at(data, start, stop)
        if found is None:
            return
        end, seq = found
        yield start, end, seq
        start = data.find(_START, end, stop)


def _record_at(data: bytes, start: int, stop: int) -> tuple[int, int] | None:
    """Return (end, seq) of the whole record that begins at `start`, or None."""
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
    # No JSON object is a prefix of a longer one, so a text that parses was not cut off. The checksum alone is
    # not enough, because a client can put the right one into its own JSON.
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
    """Return the record in the valid line `whole`, with its line breaks restored and the list of their
    positions removed.

    A listed position at which there is no space is ignored: compactd never writes such a position. A forged
    position can change only white space.
    """
    after_seq = _members_start(whole, 0)
    close = whole.find(b"],", after_seq)
    if not whole.startswith(_NEWLINES, after_seq) or close < 0:
        return memoryview(whole)
    places = whole[after_seq + len(_NEWLINES) : close].split(b",")
    restored = bytearray(whole[:after_seq] + whole[close + 2 :])
    for place in places:
        # Positions count from the record's `{`. In the line, the comma after `seq` is in its place.
        at = after_seq - 1 + (_number(place) or 0)
        if restored[at : at + 1] == b" ":
            restored[at] = 0x0A
    return memoryview(bytes(restored))


def _number(digits: bytes) -> int | None:
    """Return the number that `digits` mean, or None if `frame` cannot have written them: no digits, or more
    than `_NUMBER_DIGITS` (`int` raises for thousands of digits).
    """
    return int(digits) if digits.isdigit() and len(digits) <= _NUMBER_DIGITS else None


def _members_start(data: bytes, start: int) -> int:
    """Return the offset after `seq` and `with` in the line that begins at `start`. There the list of line
    breaks begins, or the record's own members.
    """
    at = data.index(b",", start) + 1
    return data.index(b",", at) + 1 if data.startswith(_WITH, at) else at


def _first(data: bytes, start: int) -> int | None:
    """Return the `seq` of the first record of the write that contains the record at `start`, or None if the
    record at `start` is the first.
    """
    at = data.index(b",", start) + 1
    if not data.startswith(_WITH, at):
        return None
    return _number(data[at + len(_WITH) : data.index(b",", at)])


def encode_journal(records: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines of a whole journal. `records` are the records as they were appended, from `seq`
    0 on.
    """
    return (encode_record(seq, record) for seq, record in enumerate(records))

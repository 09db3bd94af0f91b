"""A journal's bytes: whole records are read, a torn one at the end is dropped, a damaged one is an error."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.storage.journal_records import (
    JournalScan,
    as_appended,
    check_record,
    encode_journal,
    encode_record,
    scan,
)
from tests.support.examples import examples


def journal(records: list[bytes]) -> bytes:
    return b"".join(encode_journal(records))


def read(found: JournalScan) -> list[bytes]:
    return [as_appended(record) for record in found.records]


def behind(found: JournalScan) -> list[bytes]:
    return [as_appended(record) for record in found.damage.after] if found.damage is not None else []


def is_prefix(some: list[bytes], of: list[bytes]) -> bool:
    return some == of[: len(some)]


FOUR = [
    b'{"type":"session","v":1,"id":"s1"}',
    b'{"type":"message","text":"\xc3\xa4"}',
    b'{"type":"tool",\n "arguments":{"a":\n1}}',
    b'{"type":"usage","n":[1]}',
]

FOUR_LINES = journal(FOUR)

sealed = st.integers(0, 12).map(
    # What a client's own JSON may hold: something that looks like a line of a journal, checksum and all.
    lambda seq: encode_record(seq, b'{"type":"fake"}').decode().rstrip("\n")
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    value = json.dumps(draw(values), indent=draw(st.sampled_from([None, 0, 2])), ensure_ascii=False)
    value = draw(st.sampled_from([value, value, draw(sealed)]))
    return b'{"type":"r","value":%s}' % value.encode()


many = st.lists(records(), min_size=1, max_size=8)


def test_a_line_is_the_record_with_its_number_in_front_and_its_checksum_behind() -> None:
    record = b'{"type":"session","v":1,"id":"s1"}'

    written = encode_record(0, record)

    start = b'{"seq":0,"type":"session","v":1,"id":"s1"'
    assert written == start + b',"crc":"%08x"}\n' % zlib.crc32(start)
    assert json.loads(written)["id"] == "s1"


def test_what_is_no_record_is_refused() -> None:
    for wrong in (b"", b"{}", b"[]", b'{"seq":1,"type":"x"}', b'{"type":"x"', b'{"type":"x"}\n'):
        with pytest.raises(ValueError, match="a record is"):
            check_record(wrong)


def test_an_empty_file_holds_no_record_and_was_never_begun() -> None:
    found = scan(b"")

    assert found == JournalScan(records=(), end=0, needs_newline=False, damage=None)
    assert found.is_never_begun


@given(many)
@settings(deadline=None)
def test_records_are_read_byte_for_byte_as_they_were_appended(appended: list[bytes]) -> None:
    data = journal(appended)

    found = scan(data)

    assert read(found) == appended
    assert (found.end, found.needs_newline, found.damage) == (len(data), False, None)
    assert data.count(b"\n") == len(appended)


@given(many, st.data())
@settings(deadline=None)
def test_a_journal_cut_at_any_byte_is_a_prefix(appended: list[bytes], data: st.DataObject) -> None:
    whole = journal(appended)
    cut = data.draw(st.integers(0, len(whole)))

    found = scan(whole[:cut])

    ends = [len(journal(appended[: count + 1])) - 1 for count in range(len(appended))]
    assert read(found) == appended[: sum(end <= cut for end in ends)]
    assert found.damage is None
    assert found.end == max([0, *(min(end + 1, cut) for end in ends if end <= cut)])


@given(many, st.data())
@settings(deadline=None)
def test_whatever_follows_a_cut_changes_no_record(appended: list[bytes], data: st.DataObject) -> None:
    whole = journal(appended)
    cut = data.draw(st.integers(1, len(whole)))
    tail = data.draw(st.binary(min_size=1, max_size=60) | st.integers(1, 5000).map(bytes))

    found = scan(whole[:cut] + tail)

    assert is_prefix(read(found), appended)
    assert is_prefix(read(scan(whole[:cut])), read(found))
    assert behind(found) == []


@given(many, st.data())
@settings(max_examples=examples(200), deadline=None)
def test_a_flipped_bit_is_damage_or_costs_the_last_record_alone(
    appended: list[bytes], data: st.DataObject
) -> None:
    whole = bytearray(journal(appended))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))

    found = scan(bytes(whole))

    assert is_prefix(read(found), appended)
    assert found.damage is not None or len(found.records) >= len(appended) - 1
    assert all(record in appended for record in behind(found))


def test_every_single_flip_in_a_small_journal_is_told_from_a_cut() -> None:
    whole = journal(FOUR)
    begin_of_last = len(journal(FOUR[:3]))

    for at in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            found = scan(bytes(flipped))
            assert is_prefix(read(found), FOUR)
            if at < begin_of_last:
                assert found.damage is not None, (at, bit)
                assert len(read(found) + behind(found)) >= 3
            else:
                assert found.damage is None
                assert read(found) == (FOUR if at == len(whole) - 1 else FOUR[:3])


def test_damage_says_its_line_and_what_can_be_read_behind_it() -> None:
    broken = journal(FOUR).replace(b'"text"', b'"tixt"')

    found = scan(broken)

    assert read(found) == FOUR[:1]
    assert found.damage is not None
    assert found.damage.line == 2
    assert behind(found) == FOUR[2:]


def test_a_line_that_is_missing_is_damage() -> None:
    found = scan(encode_record(0, FOUR[0]) + encode_record(2, FOUR[2]))

    assert (read(found), behind(found)) == (FOUR[:1], FOUR[2:3])


def test_a_line_that_is_there_twice_is_damage() -> None:
    found = scan(encode_record(0, FOUR[0]) + encode_record(1, FOUR[1]) * 2 + encode_record(2, FOUR[2]))

    assert (read(found), behind(found)) == (FOUR[:2], FOUR[2:3])


def test_a_lost_line_end_is_damage_that_costs_no_record() -> None:
    whole = journal(FOUR)
    first_end = whole.index(b"\n")

    for between in (b"", b"X", b"\0\0\0"):
        found = scan(whole[:first_end] + between + whole[first_end + 1 :])
        assert found.damage is not None
        assert found.damage.line == 1
        assert read(found) + behind(found) == FOUR


def test_a_record_inside_a_torn_record_is_no_record() -> None:
    inner = encode_record(9, b'{"type":"fake"}').rstrip(b"\n")
    torn = encode_record(1, b'{"type":"tool","result":%s}' % inner)
    cut = torn.index(inner) + len(inner)

    found = scan(encode_record(0, FOUR[0]) + torn[:cut])

    assert (read(found), found.damage) == (FOUR[:1], None)


def test_a_checksum_inside_a_torn_record_does_not_make_it_whole() -> None:
    start = b'{"seq":1,"type":"tool","result":{"a":1'
    inner = b'"a":1,"crc":"%08x"' % zlib.crc32(start)
    whole = encode_record(1, b'{"type":"tool","result":{%s},"b":2}' % inner)
    cut = whole.index(inner) + len(inner) + 1

    for rest in (b"", b",", b',"b"', b"\0\0"):
        found = scan(encode_record(0, FOUR[0]) + whole[:cut] + rest)
        assert (read(found), found.damage) == (FOUR[:1], None)
    assert len(read(scan(encode_record(0, FOUR[0]) + whole))) == 2


def test_garbage_after_a_record_without_its_line_end_is_cut_and_the_record_stays() -> None:
    whole = journal(FOUR)[:-1]

    found = scan(whole + b"\0" * 4096)

    assert read(found) == FOUR
    assert (found.end, found.needs_newline, found.damage) == (len(whole), True, None)


def test_a_checksum_in_capitals_is_a_wrong_checksum() -> None:
    records = (b'{"type":"r","n":%d}' % number for number in range(100))
    written = next(
        one for one in (encode_record(0, record) for record in records) if one[-11:].upper() != one[-11:]
    )

    found = scan(written[:-11] + written[-11:].upper())

    assert found.records == ()


def test_lines_without_one_record_among_them_are_damage_and_no_new_file() -> None:
    found = scan(b"not a journal\n" * 3)

    assert found.damage is not None
    assert not found.is_never_begun


def test_a_first_record_that_was_cut_off_is_a_file_never_begun() -> None:
    long = encode_record(0, b'{"type":"session","title":"%s"}' % (b"x" * 200_000))

    assert all(scan(long[:cut]).is_never_begun for cut in (1, 8, 9, 100_000, len(long) - 2))
    assert scan(b"\0" * 4096).is_never_begun
    assert not scan(b"\0" * 1_000_000).is_never_begun


def forged(head: bytes, record: bytes) -> bytes:
    """A line that no daemon wrote, with the right checksum."""
    middle = head + record[1:-1]
    return middle + b',"crc":"%08x"}\n' % zlib.crc32(middle)


@pytest.mark.parametrize(
    "places",
    [b"", b"999", b"0,1,2", b"9" * 5_000, b"-3", b"17,", b"[17]", b'"17"', b"\xb2"],
    ids=["none", "behind the end", "no spaces", "digits", "negative", "comma", "nested", "text", "no ASCII"],
)
def test_places_of_line_ends_that_fit_no_record_change_nothing(places: bytes) -> None:
    record = b'{"type":"forged","value":[1,  2]}'

    found = scan(FOUR_LINES + forged(b'{"seq":4,"nl":[' + places + b"],", record))

    assert (read(found), found.damage) == ([*FOUR, record], None)


def test_a_list_of_line_ends_that_has_no_end_is_read_as_it_stands() -> None:
    found = scan(FOUR_LINES + forged(b'{"seq":4,"nl":[', b'{"type":"forged"}') + encode_record(5, FOUR[3]))

    assert (read(found)[:4], len(read(found)), found.damage) == (FOUR, 6, None)


def test_a_first_number_of_thousands_of_digits_behind_damage_is_no_number() -> None:
    behind_it = forged(b'{"seq":5,"with":' + b"4" * 5_000 + b",", FOUR[3])

    found = scan(FOUR_LINES + b"\0\0\n" + behind_it)

    assert (read(found), behind(found)) == (FOUR, [FOUR[3]])

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactd.daemon.rpc.framing import HEADER_LIMIT_BYTES, Fault, Frame, Framer
from compactd.daemon.rpc.ids import sniff_id
from tests.support.child import block, line

NO_LENGTH = Fault(-32700, "the header of a message has no Content-Length")


def framed(data: bytes, cuts: list[int] | None = None, limit_bytes: int = 1000) -> list[Frame]:
    """Return the frames that a framer reads from data that arrives split at `cuts`, and then ends."""
    framer = Framer(limit_bytes)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts or ()), len(data)]
    frames = [frame for low, high in pairwise(places) for frame in framer.feed(data[low:high])]
    frames += framer.end()
    return [frame if isinstance(frame, Fault) else bytes(frame) for frame in frames]


def codes(frames: list[Frame]) -> list[object]:
    """Bodies as they are, of faults the code."""
    return [frame.code if isinstance(frame, Fault) else frame for frame in frames]


@st.composite
def a_header_block(draw: st.DrawFn, body: bytes) -> bytes:
    """A block that some client might send: any case, order, line ends, white space and other headers."""
    newline = draw(st.sampled_from([b"\r\n", b"\n"]))
    name = draw(st.sampled_from([b"Content-Length", b"content-length", b"CONTENT-LENGTH"]))
    space = draw(st.sampled_from([b"", b" ", b"  ", b"\t"]))
    zeros = draw(st.sampled_from([b"", b"00"]))
    others = draw(
        st.lists(st.sampled_from([b"Content-Type: x; charset=utf-8", b"X-Y:", b"a:b:c"]), max_size=3)
    )
    fields = draw(st.permutations([name + b":" + space + zeros + b"%d" % len(body) + space, *others]))
    return b"".join(field + newline for field in fields) + newline + body


BODIES = st.lists(st.binary(max_size=40), max_size=6)
CUTS = st.lists(st.integers(0, 400), max_size=12)


@given(st.data(), BODIES, CUTS)
def test_header_blocks_of_any_shape_give_their_bodies_however_they_are_cut(
    data: st.DataObject, bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(data.draw(a_header_block(body)) for body in bodies)

    assert framed(stream, cuts) == bodies


@given(st.lists(st.sampled_from([b"{}", b'{"a":"\xc3\xa9"}', b"[1]", b"", b" \t", b"\r"]), max_size=8), CUTS)
def test_lines_give_their_bodies_without_blank_ones_however_they_are_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"\n" + b"".join(map(line, bodies))

    assert framed(stream, cuts) == [body for body in bodies if body.strip()]


QUOTING = [
    b"{}",
    b"",
    b'{"id":1}',
    b'"Content-Length: "',
    b'"Content-Length: 2\r\n\r\n{}"',
    b"\r\n\r\n",
    b"[" + b" " * 5000 + b"]",
]


@given(st.lists(st.sampled_from(QUOTING), max_size=30), st.lists(st.integers(0, 30000), max_size=6))
@example([b"", b"", b"{}", b"{}"], [43])  # a length of 0 was taken for a whole message before its gap
def test_bodies_that_hold_headers_come_out_whole_however_many_a_read_holds(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(map(block, bodies))

    assert framed(stream, cuts, 10_000) == bodies
    assert codes(framed(stream + b"Content-Length: 0", cuts, 10_000)) == [*bodies, -32700]


@pytest.mark.parametrize("frame", [block, line])
def test_tens_of_thousands_of_messages_in_one_read_come_out_in_their_order(
    frame: Callable[[bytes], bytes],
) -> None:
    bodies = [b"{%b}" % (b" " * (n % 50)) for n in range(20_000)]
    stream = b"".join(map(frame, bodies))

    assert framed(stream, limit_bytes=1 << 26) == bodies
    assert framed(stream, limit_bytes=40) != bodies
    assert framed(stream, limit_bytes=40) == framed(stream, list(range(0, len(stream), 97)), limit_bytes=40)


FRAGMENTS = [
    block(b"{}"),
    block(b'{"id":7}' + b" " * 1100),
    b"Content-Length: ",
    b"5\r\n",
    b"\r\n",
    b"\n",
    b"x: y\r\n\r\n",
    b'{"id":1}',
    b"content-length:3\n\nabc",
    b"a" * 1200 + b"\n",
    b"h" * 9000,
    b"Content-Length: nine\r\n\r\n",
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8), st.lists(st.integers(0, 20000), max_size=8))
def test_how_input_is_cut_changes_nothing_that_comes_out(fragments: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(fragments)

    assert framed(stream, cuts) == framed(stream)


def test_the_end_of_an_overlong_line_is_found_wherever_the_line_was_cut() -> None:
    stream = b"h" * 17_200 + block(b"{}") + b"h" * 9000 + block(b'{"id":1}')

    whole = framed(stream)

    assert all(framed(stream, [cut]) == whole for cut in range(17_100, 17_260))


@pytest.mark.parametrize("stream", [block(b'{"id":1}') + block('{"é":2}'.encode()), b'{"id":1}\n{"b":2}'])
def test_a_stream_split_at_every_byte_gives_the_same_bodies(stream: bytes) -> None:
    whole = framed(stream)

    assert len(whole) == 2
    assert all(framed(stream, [cut]) == whole for cut in range(len(stream)))
    assert framed(stream, list(range(len(stream)))) == whole


@pytest.mark.parametrize("first", [b"{", b"[", b" ", b"\t", b"\r", b"\n", b"\xef\xbb\xbf{"])
def test_an_object_a_batch_white_space_or_a_bom_at_the_start_means_lines(first: bytes) -> None:
    framer = Framer()

    framer.feed(first)

    assert framer.lines is True


@pytest.mark.parametrize("first", [b"C", b"c", b"x", b"5", b'"'])
def test_any_other_byte_at_the_start_means_headers(first: bytes) -> None:
    framer = Framer()

    framer.feed(first)

    assert framer.lines is False


def test_a_last_line_without_its_newline_is_a_message() -> None:
    assert framed(b'{"a":1}\n{"b":2}') == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize(
    "rest", [b"Content-Length: 9\r\n\r\n{", b"Content-Length: 9\r\n\r\n", b"Content-Len"]
)
def test_an_input_that_ends_inside_a_block_is_reported(rest: bytes) -> None:
    assert codes(framed(block(b"{}") + rest)) == [b"{}", -32700]


@pytest.mark.parametrize(
    "length",
    [b"", b"ten", b"-1", b"+5", b"1.0", b"1e3", b"0x10", b"1_0", b"900000000000", b"4294967297", b"9" * 5000],
)
def test_a_length_that_is_none_is_reported_at_once_and_nothing_after_it_is_read(length: bytes) -> None:
    stream = block(b"{}") + b"Content-Length: " + length + b"\r\n"

    frames = framed(stream + b"\r\n" + block(b'{"never":1}'))

    assert codes(frames) == [b"{}", -32700]
    assert frames[1].fatal
    assert codes(framed(stream))[:2] == [b"{}", -32700]


def test_a_length_longer_than_a_header_block_is_none() -> None:
    frames = framed(b"Content-Length: " + b"9" * 10000)

    assert [frame.fatal for frame in frames] == [True]


def test_a_block_without_a_length_is_reported_and_the_next_is_read() -> None:
    assert framed(b"Content-Type: x\r\n\r\n" + block(b"{}")) == [NO_LENGTH, b"{}"]


def test_a_body_whose_length_was_missing_does_not_swallow_the_block_behind_it() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"x"}'

    frames = framed(b"Content-Type: x\r\n\r\n" + body + block(b'{"id":2}') + block(b'{"id":3}'))

    assert frames == [NO_LENGTH, b'{"id":2}', b'{"id":3}']


def test_a_body_longer_than_a_block_whose_length_was_missing_does_not_either() -> None:
    body = b'{"a":"%b"}' % (b"x" * 3 * HEADER_LIMIT_BYTES)

    frames = framed(b"Content-Type: x\r\n\r\n" + body + block(b'{"id":2}') + block(b'{"id":3}'))

    assert codes(frames) == [-32700, -32700, b'{"id":2}', b'{"id":3}']


def test_a_length_that_is_too_short_costs_one_message() -> None:
    frames = framed(b'Content-Length: 4\r\n\r\n{"id":1}' + block(b'{"id":2}'))

    assert frames == [b'{"id', b'{"id":2}']


def test_a_header_block_above_8_KiB_is_reported_once_and_its_body_skipped() -> None:
    headers = b"".join(b"X-%d: %b\r\n" % (n, b"y" * 100) for n in range(100))

    frames = framed(headers + b"Content-Length: 8\r\n\r\n" + b"a: b\r\n\r\n" + block(b'{"id":2}'))

    assert codes(frames) == [-32700, b'{"id":2}']
    assert not frames[0].fatal


def test_blank_lines_between_messages_are_no_blocks() -> None:
    assert framed(block(b"{}") + b"\r\n\n" + block(b"[]")) == [b"{}", b"[]"]


def test_a_frame_of_exactly_the_limit_is_read() -> None:
    body = b"x" * 1000

    assert framed(block(body)) == [body]
    assert framed(b"{" + body[1:] + b"\n") == [b"{" + body[1:]]


@pytest.mark.parametrize("frame", [block, line])
def test_a_frame_above_the_limit_is_refused_with_its_id_and_the_next_is_read(frame) -> None:
    body = b'{"id":"x7","a":"%b"}' % (b"y" * 1000)

    frames = framed(frame(b"{}") + frame(body) + frame(b'{"b":1}'))

    assert codes(frames) == [b"{}", 1009, b'{"b":1}']
    assert frames[1].id == b'"x7"'
    assert frames[1].limit_bytes == 1000


@pytest.mark.parametrize("frame", [block, line])
def test_a_frame_above_the_limit_is_refused_before_it_is_there(frame) -> None:
    framer = Framer(1000)
    framer.feed(frame(b'{"a":1}'))

    frames = framer.feed(frame(b'{"id":5,"a":"%b"}' % (b"y" * 5000))[:1500])

    assert [(fault.code, fault.id) for fault in frames if isinstance(fault, Fault)] == [(1009, b"5")]


def test_what_is_skipped_is_never_held() -> None:
    framer = Framer(1000)
    framer.feed(b"Content-Length: 4000000000\r\n\r\n")

    for _ in range(64):
        framer.feed(b"x" * (1 << 20))

    assert len(framer._held) + len(framer._header) + len(framer._sniffed or b"") < 1000


def test_four_gibibytes_is_still_a_length() -> None:
    framer = Framer()

    frames = framer.feed(b"Content-Length: 4294967296\r\n\r\n" + b'{"id":3,' + b" " * 300)

    assert [(fault.code, fault.id, fault.size_bytes) for fault in frames] == [(1009, b"3", 1 << 32)]


def test_a_body_of_64_MiB_in_pieces_of_1_KiB_is_put_together_in_proportion_to_its_size() -> None:
    framer = Framer(1 << 26)
    framer.feed(b"Content-Length: %d\r\n\r\n" % (1 << 26))

    # By repeated concatenation this would copy 2 TB, and the test would not end.
    frames = [frame for _ in range(1 << 16) for frame in framer.feed(b"x" * 1024)]

    assert [len(frame) for frame in frames] == [1 << 26]


@pytest.mark.parametrize(
    ("prefix", "id"),
    [
        (b'{"jsonrpc":"2.0","id":12,"method":"x', b"12"),
        (b'{"id":"a\\"b","x', b'"a\\"b"'),
        (b' { "id" : -1.5e3 , ', b"-1.5e3"),
        (b'\xef\xbb\xbf{"id":null,', b"null"),
        (b'{"params":{"id":5},"id":6}', b"6"),
        (b'{"params":{"id":5},"method":"x', b"null"),
        (b'{"params":["id",{"id":5', b"null"),
        (b'{"method":"id","params":"\\"id\\":4,', b"null"),
        (b'{"id":12', b"null"),
        (b'{"id":"ab', b"null"),
        (b'{"id":{"id":1},', b"null"),
        (b'{"id":true,', b"null"),
        (b'["id",5', b"null"),
        (b"", b"null"),
    ],
)
def test_the_id_of_a_body_that_is_not_held_is_the_outermost_one_or_null(prefix: bytes, id: bytes) -> None:
    assert sniff_id(prefix) == id


@given(st.binary(max_size=256))
def test_looking_for_an_id_never_fails(prefix: bytes) -> None:
    assert sniff_id(prefix)

"""Server-sent events are parsed the same however the bytes are split."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.models.providers.sse import Lines, ServerEvent, ServerEvents, TooLong


def events_of(*chunks: bytes) -> list[ServerEvent]:
    parser = ServerEvents()
    seen = [event for chunk in chunks for event in parser.feed(chunk)]
    return [*seen, *parser.end()]


def cut(body: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(body)) for place in places})
    return [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data: a\n\n", [("", b"a")]),
        (b"data:a\r\n\r\n", [("", b"a")]),
        (b"data:  a\r\r", [("", b" a")]),
        (b"event: x\ndata: a\ndata: b\n\n", [("x", b"a\nb")]),
        (b": comment\n\ndata: a\n\n", [("", b"a")]),
        (b"id: 1\nretry: 5\nunknown: 2\ndata: a\n\n", [("", b"a")]),
        (b"event: x\n\ndata: a\n\n", [("", b"a")]),
        (b"data\n\n", [("", b"")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
        (b"data: a", [("", b"a")]),
        (b"data: a\n", [("", b"a")]),
        (b"", []),
        (b"\n\n\n", []),
        ("data: \u2028\u0085\x0b\x0c\x1c🙂\n\n".encode(), [("", "\u2028\u0085\x0b\x0c\x1c🙂".encode())]),
    ],
)
def test_events_are_those_of_the_standard(body: bytes, events: list[tuple[str, bytes]]) -> None:
    assert [(event.name, event.data) for event in events_of(body)] == events


TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=12)


@settings(deadline=None)
@given(
    st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 300), max_size=12),
)
def test_where_the_bytes_are_cut_makes_no_difference(
    written: list[tuple[str, list[str]]], end: str, places: list[int]
) -> None:
    body = "".join(
        f"event: {name}{end}" + "".join(f"data: {text}{end}" for text in data) + end for name, data in written
    ).encode()

    seen = events_of(*cut(body, places))

    assert seen == [ServerEvent(name, "\n".join(data).encode()) for name, data in written]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n"]), max_size=30),
    st.lists(st.integers(0, 60), max_size=10),
)
def test_lines_end_in_cr_lf_or_both_and_in_nothing_else(parts: list[bytes], places: list[int]) -> None:
    body = b"".join(parts)
    lines = Lines()

    seen = [line for chunk in cut(body, places) for line in lines.feed(chunk)]

    assert [*seen, lines.take_rest()] == body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def test_a_line_longer_than_the_limit_is_refused_before_it_is_held() -> None:
    lines = Lines(limit_bytes=100)
    list(lines.feed(b"x" * 100))

    with pytest.raises(TooLong):
        list(lines.feed(b"x"))


def test_an_event_of_many_lines_is_refused_too() -> None:
    events = ServerEvents(limit_bytes=100)

    with pytest.raises(TooLong):
        list(events.feed(b"data: xxxxxxxxx\n" * 20))


def test_a_long_line_in_small_pieces_costs_no_more_than_its_bytes() -> None:
    def seconds(pieces: int) -> float:
        events = ServerEvents()
        piece = b"x" * 100
        start = time.perf_counter()
        for event in (each for _ in range(pieces) for each in events.feed(piece)):
            raise AssertionError(event)
        return time.perf_counter() - start

    seconds(1_000)

    # Quadratic would be a hundred times as long.
    assert min(seconds(40_000) for _ in range(3)) < 40 * min(seconds(4_000) for _ in range(3)) + 0.01


def test_ten_thousand_small_events_take_no_time_to_speak_of() -> None:
    body = b"".join(b"data: " + json.dumps({"n": n}).encode() + b"\n\n" for n in range(10_000))
    events = ServerEvents()
    start = time.process_time()

    seen = sum(1 for at in range(0, len(body), 65_536) for _ in events.feed(body[at : at + 65_536]))

    assert seen == 10_000
    assert time.process_time() - start < 5, "seconds of this process; quadratic work would take minutes"

"""Property tests of the classifier: it never raises, invents no number, reads a bounded part of a text."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.overflow.classify import FailureReport, classify
from compactd.core.overflow.lexer import NUMBER, lexemes
from compactd.core.overflow.unwrap import FIELDS, HEAD_CHARS, TAIL_CHARS, unwrap
from tests.support.examples import examples

PIECES = st.sampled_from(
    [
        "{", "}", "[", "]", '"', "'", "\\", ":", ",", "=", "=>", "(", ")", "data:", "\n", "<p>", "b'",
        "\x00", "\ud800", "prompt", "tokens", "context", "exceeds", "too long", "max_tokens", "429",
        "200000", "1,048,576", "error",
        "message", "code", "超过", "上下文", "²", "٣", "1e400", "-5", "%", "req_011",
        "Error code: 400 - ", "\\u00", "\\x",
    ]
)  # fmt: skip
NOISE = st.one_of(
    st.text(max_size=300),
    st.lists(PIECES, max_size=80).map(" ".join),
    st.lists(PIECES, max_size=80).map("".join),
)
NUMBERS = st.none() | st.integers(-5, 3_000_000)


@given(
    text=NOISE,
    status=st.none() | st.integers(0, 999),
    code=st.none() | NOISE,
    used=NUMBERS,
    window=NUMBERS,
    stop=st.none() | NOISE,
)
@settings(max_examples=examples(400), deadline=None)
def test_any_failure_has_a_verdict(
    text: str, status: int | None, code: str | None, used: int | None, window: int | None, stop: str | None
) -> None:
    found = classify(
        FailureReport(text=text, status=status, code=code, used=used, window=window, stop_reason=stop)
    )

    assert found.overflow == (found.kind == "overflow")
    assert found.limit is None or found.limit >= 64 or found.limit == window
    assert not (found.teaches and (found.limit is None or not found.overflow))
    assert status not in (402, 429) or not found.overflow or code is not None or stop is not None


@given(st.binary(max_size=400))
@settings(max_examples=examples(200), deadline=None)
def test_any_bytes_have_a_verdict(body: bytes) -> None:
    classify(FailureReport(text=body.decode("utf-8", errors="replace"), status=400))


@given(st.text(alphabet=string.ascii_letters + " .,:;()<>='\"_-", max_size=300))
def test_a_text_without_digits_states_no_figures(text: str) -> None:
    found = classify(FailureReport(text=text, status=400))

    assert (found.limit, found.requested) == (None, None)


@given(st.integers(64, 10**9), st.integers(1, 10**6))
def test_both_numbers_are_read_at_any_size_and_in_either_order(limit: int, excess: int) -> None:
    asked = limit + excess

    for text in (
        f"prompt is too long: {asked} tokens > {limit} maximum",
        f"The maximum context length is {limit:,} tokens. Your messages resulted in {asked:,} tokens.",
        f"The context of {limit} tokens is exceeded: {asked} tokens were sent.",
    ):
        found = classify(FailureReport(text=text, status=400))
        assert (found.requested, found.limit) == (asked, limit), text


@given(st.text(max_size=2000))
@settings(max_examples=examples(50), deadline=None)
def test_the_middle_of_a_long_text_is_not_read(middle: str) -> None:
    head, tail = "Bad Request " + "x" * HEAD_CHARS, "y" * TAIL_CHARS

    assert unwrap(head + middle + tail) == unwrap(head + "-" + tail)
    assert classify(FailureReport(text=head + middle + tail, status=400)).kind == "invalid_request"


@pytest.mark.parametrize(
    "piece",
    ["{", "[", '{"a":', '"', "'", "\\", "<a ", "data:", "a=", "1 ", "tokens exceed context ", "(f(x="],
)
def test_what_is_collected_of_a_hostile_text_is_bounded(piece: str) -> None:
    taken = unwrap(piece * 200_000)

    assert len(taken.messages) + len(taken.codes) + len(taken.figures) <= 3 * FIELDS
    assert sum(map(len, taken.messages)) + len(taken.prose) <= 20 * (HEAD_CHARS + TAIL_CHARS)


def test_a_message_is_found_before_and_behind_a_huge_echo() -> None:
    echo = "tokens exceed the context window " * 300_000
    message = "prompt is too long: 213462 tokens > 200000 maximum"
    before = '{"error":{"message":"' + message + '","input":"' + echo + '"}}'
    behind = '{"input":"' + echo + '","error":{"message":"' + message + '"}}'
    request = '{"request":"' + "x" * 3_000_000 + '","error":{"message":"' + message + '"}}'

    for body in (before, behind, request):
        found = classify(FailureReport(text=body, status=400))
        assert (found.requested, found.limit) == (213462, 200000)


def test_an_echo_alone_is_not_read_however_long() -> None:
    body = (
        '{"error":{"message":"Bad thing"},"input":"' + "the prompt exceeds the context window, " * 9000 + '"}'
    )

    assert not classify(FailureReport(text=body, status=400)).overflow


@pytest.mark.parametrize(
    "piece",
    [
        "a_1_",
        "_",
        "a b failed ",
        "error: ",
        "«a ",
        "12:00:00 ",
        "ERROR ",
        "    at x (\n",
        'k="v" ',
        "/a",
        "1a",
        "上a",
        "    raise a(\n",
        "raise a(\n    b\nc.",
        "[a] | ",
        "a.b.cError ",
        "incomplete max_tok ",
        "field a ",
        "{'a': } 'b' ",
    ],
)
def test_a_repeated_piece_is_read_in_linear_steps(piece: str) -> None:
    found = classify(FailureReport(text=piece * 20_000))
    answered = classify(FailureReport(text=piece * 20_000, status=500))

    assert not found.overflow
    assert not answered.overflow


def test_ten_thousand_notations_within_each_other_are_read_without_recursion() -> None:
    deep = '{"error":' * 10_000 + '"prompt is too long"' + "}" * 10_000

    assert classify(FailureReport(text=deep, status=400)).kind in ("invalid_request", "overflow")


@pytest.mark.parametrize(
    "text", ["gpt-4o-2024-08-06", "req_011CW", "c26fc127-ba09-49d3", "messages.3.content.1", "v1.2.3", "50%"]
)
def test_a_digit_within_a_name_is_no_number(text: str) -> None:
    assert [found.value for found in lexemes(f"see {text} here") if found.concept == NUMBER] == []

"""Every fault in every wire format: its result, and how many requests were sent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from compactd.core.overflow.classify import FailureReport, classify
from compactd.models.providers.provider import Cause
from compactd.models.providers.retries import RetryPolicy
from compactd.protocol.messages import Text
from tests.support.loopback import (
    Answer,
    Cut,
    EmptyBody,
    Endless,
    ErrorEvent,
    ErrorIn200,
    Fail,
    Hangup,
    Html,
    LongLine,
    Overflow,
    Redirect,
    Silence,
    Stall,
    Step,
    TornJson,
    Wire,
)
from tests.unit.models.asking_loopback import NOW, QUICK, WIRES, StillClock, ask

EVERY_WIRE = pytest.mark.parametrize("wire", WIRES)
THRICE = RetryPolicy(requests=3)
STALLING = replace(QUICK, idle_s=0.05, first_byte_s=0.05)
HALTED = replace(QUICK, idle_s=0.5)
"""Timeouts for tests in which the first words must arrive: a busy machine needs longer than 50 ms."""
PATIENT = replace(QUICK, idle_s=0.25, first_byte_s=0.25)
"""Timeouts for tests in which an answer follows: a busy machine needs longer than 50 ms."""

FINE = Answer(text="fine")


# --- what is sent again -----------------------------------------------------------------------------------


@EVERY_WIRE
@pytest.mark.parametrize(
    "fault",
    [
        Fail(500, "internal"),
        Fail(502, "<html>Bad gateway</html>"),
        Fail(503),
        Fail(504, ""),
        Fail(529),
        Fail(408, ""),
        Fail(409, "conflict"),
        Hangup(),
        EmptyBody(),
        ErrorIn200(),
        ErrorEvent(),
        TornJson(),
        Cut(FINE, 0),
        Cut(FINE, 3, clean=True),
    ],
    ids=repr,
)
async def test_a_failure_before_the_first_word_is_asked_again(wire: Wire, fault: Step) -> None:
    clock = StillClock()

    heard, server = await ask(wire, fault, FINE, retries=THRICE, clock=clock)

    assert heard.text == "fine"
    assert heard.finished.stop_reason == "stop"
    assert len(server.requests) == 2
    assert [(retry.attempt, retry.delay_s) for retry in heard.retries] == [(2, 0.5)]
    assert clock.slept == [0.5]
    assert server.requests[0].raw == server.requests[1].raw


@EVERY_WIRE
async def test_a_provider_that_stays_broken_is_asked_three_times_and_no_more(wire: Wire) -> None:
    clock = StillClock()

    heard, server = await ask(wire, *[Fail(503)] * 5, retries=THRICE, clock=clock)

    assert len(server.requests) == 3
    assert clock.slept == [0.5, 1.0]
    failed = heard.failure
    assert (failed.code, failed.requests, failed.failure.status) == (1006, 3, 503)
    assert failed.partial is None
    assert "503" in failed.message


@EVERY_WIRE
async def test_a_rate_limit_waits_as_long_as_the_provider_says(wire: Wire) -> None:
    clock = StillClock()

    heard, server = await ask(
        wire, Fail(429, headers={"Retry-After": "7"}), FINE, retries=THRICE, clock=clock
    )

    assert heard.text == "fine"
    assert clock.slept == [7.0]
    assert len(server.requests) == 2


@EVERY_WIRE
async def test_a_wait_longer_than_our_patience_is_not_waited_for(wire: Wire) -> None:
    heard, server = await ask(wire, Fail(429, headers={"Retry-After": "3600"}), FINE, retries=THRICE)

    assert len(server.requests) == 1
    assert heard.failure.data["retry_after_s"] == 3600.0


async def test_a_delay_in_words_and_in_googles_details_is_understood() -> None:
    said: dict[Wire, float] = {"openai": 20.0, "gemini": 34.0, "ollama": 20.0}
    for wire, delay in said.items():
        clock = StillClock()
        await ask(wire, Fail(429), FINE, retries=THRICE, clock=clock)
        assert clock.slept == [delay]


@EVERY_WIRE
async def test_a_server_that_says_not_to_try_again_is_obeyed(wire: Wire) -> None:
    _, server = await ask(wire, Fail(503, headers={"X-Should-Retry": "false"}), FINE, retries=THRICE)
    _, other = await ask(wire, Fail(400, headers={"x-should-retry": "true"}), FINE, retries=THRICE)

    assert (len(server.requests), len(other.requests)) == (1, 2)


# --- what is never sent again -----------------------------------------------------------------------------


@EVERY_WIRE
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 501])
async def test_a_request_that_would_fail_again_is_not_sent_again(wire: Wire, status: int) -> None:
    heard, server = await ask(wire, Fail(status), FINE, retries=THRICE)

    assert len(server.requests) == 1
    assert heard.failure.failure.status == status
    assert heard.failure.failure.cause == "status"


@EVERY_WIRE
async def test_a_quota_that_is_used_up_is_not_waited_for(wire: Wire) -> None:
    from tests.support.loopback.player import WRITERS
    from tests.support.loopback.writing import line

    status, body = WRITERS[wire].failure("quota")

    _, server = await ask(wire, Fail(status, line(body)), FINE, retries=THRICE)

    assert len(server.requests) == 1


@EVERY_WIRE
@pytest.mark.parametrize("status", [None, 500, 503])
async def test_an_overflow_is_never_retried_and_can_be_told_from_all_else(
    wire: Wire, status: int | None
) -> None:
    from tests.support.loopback.player import WRITERS
    from tests.support.loopback.writing import line

    usual, body = WRITERS[wire].overflow(250_000, 200_000)
    fault = Overflow(250_000, 200_000) if status is None else Fail(status, line(body))

    heard, server = await ask(wire, fault, FINE, retries=THRICE)

    failure = heard.failure.failure
    assert len(server.requests) == 1
    assert failure.status == (status or usual)
    verdict = classify(
        FailureReport(status=failure.status, code=failure.code, text=failure.text, provider=failure.provider)
    )
    assert (verdict.overflow, verdict.kind) == (True, "overflow")


@EVERY_WIRE
@pytest.mark.parametrize("text", ["", "half of it"])
async def test_an_overflow_inside_a_stream_is_one_too(wire: Wire, text: str) -> None:
    heard, server = await ask(wire, ErrorEvent(text, "overflow"), FINE, retries=THRICE)

    failure = heard.failure.failure
    assert len(server.requests) == 1
    assert heard.text == text
    verdict = classify(
        FailureReport(status=failure.status, code=failure.code, text=failure.text, provider=failure.provider)
    )
    assert verdict.overflow


@EVERY_WIRE
@pytest.mark.parametrize(
    "fault",
    [Stall("x"), Silence(), Hangup(), TornJson("x"), LongLine(300_000), Html(), EmptyBody(), Redirect()],
    ids=repr,
)
async def test_what_never_was_an_answer_is_never_taken_for_an_overflow(wire: Wire, fault: Step) -> None:
    heard, _ = await ask(wire, fault, limits=replace(STALLING, line_bytes=100_000))

    failure = heard.failure.failure
    verdict = classify(
        FailureReport(status=failure.status, code=failure.code, text=failure.text, provider=failure.provider)
    )
    assert not verdict.overflow


@EVERY_WIRE
@pytest.mark.parametrize(
    ("fault", "cause", "words"),
    [
        (Html(), "answer", "web page"),
        (Redirect(), "answer", "redirect"),
        (Redirect(status=302), "answer", "redirect"),
        (EmptyBody(204), "answer", "204"),
    ],
    ids=repr,
)
async def test_a_wrong_address_is_told_at_once(wire: Wire, fault: Step, cause: Cause, words: str) -> None:
    heard, server = await ask(wire, fault, FINE, retries=THRICE)

    assert len(server.requests) == 1
    assert heard.failure.failure.cause == cause
    assert words in heard.failure.message
    assert "base_url" in heard.failure.message


@EVERY_WIRE
async def test_json_that_is_nobodys_answer_is_told_at_once(wire: Wire) -> None:
    heard, server = await ask(wire, Fail(200, '{"hello": "world"}'), FINE, retries=THRICE)

    assert len(server.requests) == 1
    assert heard.failure.failure.cause == "answer"


# --- in the middle ----------------------------------------------------------------------------------------


@EVERY_WIRE
@pytest.mark.parametrize("kind", ["overloaded", "rate_limit", "invalid"])
async def test_an_error_after_half_the_text_keeps_the_half_and_asks_no_more(wire: Wire, kind: str) -> None:
    heard, server = await ask(wire, ErrorEvent("half of it", kind), FINE, retries=THRICE)

    failed = heard.failure
    assert heard.text == "half of it"
    assert len(server.requests) == 1
    assert failed.partial is not None
    assert failed.partial.content == (Text(text="half of it"),)
    assert failed.failure.cause == "status"
    if wire != "ollama":  # whose error is a sentence without a code
        expected = {"overloaded": (500, 503, 529), "rate_limit": (429,), "invalid": (400, None)}[kind]
        assert failed.failure.status in expected


@EVERY_WIRE
async def test_a_stream_that_is_cut_keeps_what_came(wire: Wire) -> None:
    answer = Answer(text="one two three four five", chunk_chars=4)
    after = {"openai": 700, "openai_responses": 1300, "anthropic": 600, "gemini": 500, "ollama": 300}[wire]

    cut, server = await ask(wire, Cut(answer, after), FINE, retries=THRICE)

    assert len(server.requests) == 1
    assert 0 < len(cut.text) < len(answer.text)
    assert answer.text.startswith(cut.text)
    assert cut.failure.partial is not None
    assert cut.failure.partial.content == (Text(text=cut.text),)
    assert cut.failure.failure.cause == "stream"


@EVERY_WIRE
async def test_a_stream_that_ends_well_but_too_early_is_no_answer(wire: Wire) -> None:
    heard, _ = await ask(wire, Answer(text="half", stop="none", usage=False, chunk_chars=2))

    if wire == "openai":
        # "[DONE]" came: the server says itself that this was all.
        assert heard.finished.stop_reason == "stop"
    else:
        assert heard.text == "half"
        assert heard.failure.failure.cause == "stream"
        assert heard.failure.partial is not None


@EVERY_WIRE
async def test_json_that_is_torn_in_the_middle_of_a_stream_is_told(wire: Wire) -> None:
    heard, server = await ask(wire, TornJson("half"), FINE, retries=THRICE)

    assert (heard.text, len(server.requests)) == ("half", 1)
    assert heard.failure.failure.cause == "stream"


@EVERY_WIRE
async def test_every_cut_of_an_answer_is_an_error_or_the_whole_answer(wire: Wire) -> None:
    from tests.support.loopback import Loopback
    from tests.unit.models.asking_loopback import hear, linked, provider_of, request_of

    answer = Answer(text="abc def", thinking="hm", chunk_chars=9)
    with Loopback() as server:
        async with linked() as links:
            provider = provider_of(server, wire, links)
            for after in range(0, 3000, 97):
                server.play(Cut(answer, after, clean=bool(after % 2)))
                heard = await hear(provider, request_of(wire))
                assert answer.text.startswith(heard.text)
                if heard.failed is None:
                    assert heard.text == answer.text


# --- time and size ----------------------------------------------------------------------------------------


@EVERY_WIRE
async def test_a_stream_that_stalls_is_noticed_and_its_connection_closed(wire: Wire) -> None:
    heard, server = await ask(wire, Stall("so far"), FINE, retries=THRICE, limits=HALTED)

    assert heard.text == "so far"
    assert heard.failure.failure.cause == "timeout"
    assert "0.5 seconds" in heard.failure.message
    assert len(server.requests) == 1
    assert server.requests[0].gone.is_set()


@EVERY_WIRE
@pytest.mark.parametrize("fault", [Stall(), Silence()], ids=repr)
async def test_silence_before_the_first_word_is_asked_again(wire: Wire, fault: Step) -> None:
    heard, server = await ask(wire, fault, FINE, retries=THRICE, limits=PATIENT)

    assert heard.text == "fine"
    assert len(server.requests) == 2
    assert server.requests[0].gone.is_set()


@EVERY_WIRE
async def test_an_answer_without_end_is_cut_off(wire: Wire) -> None:
    limits = replace(QUICK, body_bytes=200_000)

    heard, server = await ask(wire, Endless(), FINE, retries=THRICE, limits=limits)

    assert heard.failure.failure.cause == "limit"
    assert len(server.requests) == 1
    assert server.requests[0].gone.is_set()
    assert heard.failure.partial is not None


@EVERY_WIRE
async def test_an_answer_that_takes_too_long_in_all_is_cut_off(wire: Wire) -> None:
    limits = replace(QUICK, total_s=0.1)

    heard, server = await ask(wire, Endless(), FINE, retries=THRICE, limits=limits)

    assert heard.failure.failure.cause == "limit"
    assert "longer than total_s" in heard.failure.message
    assert len(server.requests) == 1
    assert server.requests[0].gone.is_set()


@EVERY_WIRE
async def test_a_line_without_end_is_refused(wire: Wire) -> None:
    limits = replace(QUICK, line_bytes=100_000)

    heard, server = await ask(wire, LongLine(1_000_000), FINE, retries=THRICE, limits=limits)

    assert heard.failure.failure.cause == "limit"
    assert server.requests[0].gone.is_set()


async def test_an_error_page_of_a_million_characters_is_kept_in_part() -> None:
    heard, _ = await ask("openai", Fail(400, "x" * 3_000_000))

    assert len(heard.failure.failure.text) == 65_536
    assert len(heard.failure.message) < 500


async def test_a_place_where_nobody_listens_is_told_and_tried_three_times() -> None:
    from tests.support.loopback import Loopback
    from tests.unit.models.asking_loopback import hear, linked, provider_of, request_of

    with Loopback() as server:
        pass
    clock = StillClock()
    async with linked() as links:
        provider = provider_of(server, "openai", links, retries=THRICE, clock=clock)
        heard = await hear(provider, request_of("openai"))

    assert heard.failure.failure.cause == "connection"
    assert "connection" in heard.failure.message
    assert len(clock.slept) == 2
    assert NOW > 0

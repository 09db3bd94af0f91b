"""Hypothesis strategies for anything a provider may answer, within the daemon's timeouts."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.loopback import (
    Answer,
    Call,
    Cut,
    Dribble,
    EmptyBody,
    Endless,
    ErrorEvent,
    ErrorIn200,
    Fail,
    Hangup,
    Html,
    LongLine,
    Noise,
    Overflow,
    Plain,
    Redirect,
    Silence,
    Stall,
    Step,
    TornJson,
)

PATIENCE = {
    "COMPACTD_PROVIDERS_FIRST_BYTE_S": "0.25",
    "COMPACTD_PROVIDERS_IDLE_S": "0.25",
    "COMPACTD_PROVIDERS_RETRY_S": "0.001",
    "COMPACTD_PROVIDERS_REQUESTS": "2",
    "COMPACTD_PROVIDERS_BODY_BYTES": "200000",
    "COMPACTD_PROVIDERS_LINE_BYTES": "50000",
    "COMPACTD_LOOP_TOOL_S": "0.1",
    "COMPACTD_LOOP_STEPS": "5",
}
"""Limits under which a test of what never ends is short."""

STEPS, REQUESTS, RECOVERIES, LOWERED, SUMMARIES = 5, 2, 3, 2, 3
MOST_REQUESTS = STEPS * REQUESTS * (1 + RECOVERIES + LOWERED) * (1 + SUMMARIES)
"""The most requests of one prompt: each step, its recoveries and retries, and the summaries of each
compaction."""

NESTED = '{"a":' + "[" * 300 + "]" * 300 + "}"
ARGUMENTS = ("{}", '{"path": "a.py"}', '{"path": ', "", "[]", "null", '"text"', NESTED, '{"é\\ud800": 1}')

CALLS = st.builds(
    Call,
    name=st.sampled_from(("read", "run", "no such tool", "")),
    arguments=st.sampled_from(ARGUMENTS),
    id=st.sampled_from(("c1", "c2", "", "an id: not allowed", "x" * 100)),
)

ANSWERS = st.builds(
    Answer,
    text=st.sampled_from(("", " \n", "Yes.", "Long. " * 300, "Größe 😀 \u0000")),
    thinking=st.sampled_from(("", "Hm.")),
    calls=st.lists(CALLS, max_size=3).map(tuple),
    input_tokens=st.sampled_from((0, 10, 3_990, 5_000, 10**9)),
    output_tokens=st.sampled_from((0, 5, 10**9)),
    stop=st.sampled_from(
        ("stop", "stop", "length", "refusal", "content_filter", "context_window", "none", "odd")
    ),
    usage=st.booleans(),
    count_input=st.booleans(),
    chunk_chars=st.just(50),
)

FAILURES = st.one_of(
    st.builds(Fail, status=st.sampled_from((302, 400, 401, 402, 403, 404, 408, 413, 418, 500, 503, 529))),
    st.just(Fail(429, '{"error":{"message":"slow down"}}', {"retry-after": "0"})),
    st.just(Fail(400, "")),
    st.just(Fail(413, "")),
    st.just(Fail(400, '{"error":{"message":"max_tokens: 9000 > 100, which is the maximum allowed"}}')),
    st.just(Fail(400, '{"error":{"message":"prompt is too long"}}')),
    st.builds(
        Overflow, requested=st.sampled_from((100, 4_500, 10**9)), limit=st.sampled_from((64, 1_000, 4_000))
    ),
    st.builds(
        ErrorEvent,
        text=st.sampled_from(("", "Half of")),
        kind=st.sampled_from(("overloaded", "invalid", "overflow")),
    ),
    st.builds(ErrorIn200, kind=st.sampled_from(("overloaded", "invalid", "overflow"))),
)

ODD = st.one_of(
    st.builds(Cut, answer=ANSWERS, after_bytes=st.integers(0, 900), clean=st.booleans()),
    st.builds(TornJson, text=st.sampled_from(("", "Half"))),
    st.builds(EmptyBody, status=st.sampled_from((200, 400, 500))),
    st.builds(Html, status=st.sampled_from((200, 404, 502))),
    st.just(Redirect()),
    st.just(Hangup()),
    st.just(Endless("more and more " * 10)),
    st.just(LongLine(100_000)),
)

SLOW = st.one_of(st.just(Silence()), st.builds(Stall, text=st.sampled_from(("", "Half of"))))
"""Answers that last until the timeouts above."""

FRAMED = st.one_of(
    ANSWERS,
    ANSWERS,
    st.builds(Plain, ANSWERS),
    st.builds(Noise, ANSWERS),
    st.builds(Dribble, ANSWERS, st.just(7)),
)

ANY: st.SearchStrategy[Step] = st.one_of(FRAMED, FRAMED, FRAMED, FAILURES, FAILURES, ODD, SLOW)
AGAIN: st.SearchStrategy[Step] = st.one_of(FRAMED, FRAMED, FAILURES, ODD)
"""Answers that may come any number of times."""

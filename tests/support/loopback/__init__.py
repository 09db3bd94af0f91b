"""A model provider on loopback: real HTTP, five wire formats, answers played from a script.

    with Loopback((Answer(text="hi"), Fail(status=500))) as server:
        ...  # server.base_url, server.requests

It shares no code with what it tests. Alone: `python -m tests.support.loopback --help`.
"""

from __future__ import annotations

from tests.support.loopback.script import (
    Answer,
    Call,
    Cut,
    Dribble,
    EmptyBody,
    Endless,
    ErrorEvent,
    ErrorIn200,
    Events,
    Fail,
    Gated,
    Hangup,
    Html,
    LongLine,
    Noise,
    Overflow,
    Packed,
    Plain,
    Redirect,
    Silence,
    Stall,
    Step,
    Together,
    TornJson,
    length_stop,
    refusal,
)
from tests.support.loopback.seen import Seen, Wire
from tests.support.loopback.server import Loopback

__all__ = [
    "Answer",
    "Call",
    "Cut",
    "Dribble",
    "EmptyBody",
    "Endless",
    "ErrorEvent",
    "ErrorIn200",
    "Events",
    "Fail",
    "Gated",
    "Hangup",
    "Html",
    "LongLine",
    "Loopback",
    "Noise",
    "Overflow",
    "Packed",
    "Plain",
    "Redirect",
    "Seen",
    "Silence",
    "Stall",
    "Step",
    "Together",
    "TornJson",
    "Wire",
    "length_stop",
    "refusal",
]

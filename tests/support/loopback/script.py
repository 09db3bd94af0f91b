"""What the loopback provider does with a request, as values. A script is a list of them, one per request."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` is JSON text, or whatever a model would write instead."""

    name: str
    arguments: str = "{}"
    id: str = "call_1"
    namespace: str = ""
    """Only for OpenAI's Responses: the group of tools that the name belongs to."""


@dataclass(frozen=True)
class Answer:
    """A whole answer, streamed. Tokens are those of the report; `input_tokens` is without the cache."""

    text: str = ""
    thinking: str = ""
    signature: str = "c2lnbmF0dXJl"
    """The signature of the thinking, if the wire format has one."""
    calls: tuple[Call, ...] = ()
    input_tokens: int = 10
    output_tokens: int = 5
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    """Those of `cache_write` that stay for an hour. Only Anthropic's report names them."""
    reasoning: int = 0
    stop: str = "stop"
    """`stop`, `length`, `refusal`, `content_filter`, `context_window`, `none` (no reason at all), or a
    provider's own word; calls make `stop` the wire's word for them."""
    chunk_chars: int = 4
    usage: bool = True
    """Whether there is a usage report."""
    count_input: bool = False
    """The report says what the server counted, in place of `input_tokens`."""
    id: str = "msg_1"
    model: str = "loopback-1"
    """The id and the model that the answer names. OpenAI's ids are made from it. Not for Gemini and
    Ollama."""


def length_stop(text: str, **more: Any) -> Answer:
    """An answer that was cut at its output limit."""
    return Answer(text=text, stop="length", **more)


def refusal(text: str = "I cannot help with that.") -> Answer:
    """An answer that is none."""
    return Answer(text=text, stop="refusal")


@dataclass(frozen=True)
class Plain:
    """The answer as one JSON body, although a stream was asked for."""

    answer: Answer


@dataclass(frozen=True)
class Noise:
    """The answer with comments, pings, unknown events, CRLF, and no space behind `data:`."""

    answer: Answer


@dataclass(frozen=True)
class Dribble:
    """The answer in pieces of `size` bytes: lines and characters are cut in the middle."""

    answer: Answer
    size: int = 1


@dataclass(frozen=True)
class Together:
    """The answer, once all requests that share `barrier` are open at the same time: only then can it come."""

    answer: Answer
    barrier: asyncio.Barrier


@dataclass(frozen=True)
class Gated:
    """The answer, once `gate` is set. Before that, only the first `pieces` events of its stream come."""

    answer: Answer
    gate: threading.Event
    pieces: int = 0


@dataclass(frozen=True)
class Fail:
    """An error instead of an answer. Without a body, the wire's own for that status."""

    status: int = 500
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Packed:
    """A body of bytes under a `Content-Encoding`, as a gateway compresses it, or says that it did."""

    body: bytes
    encoding: str = "gzip"
    status: int = 200
    kind: str = "text/event-stream"


@dataclass(frozen=True)
class Events:
    """A stream of these events, as they are."""

    events: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Overflow:
    """The prompt is too long, in the provider's own words."""

    requested: int = 250_000
    limit: int = 200_000


@dataclass(frozen=True)
class ErrorEvent:
    """A stream that ends in an error after `text`."""

    text: str = ""
    kind: str = "overloaded"
    """`overloaded`, `rate_limit`, `invalid`, `overflow`."""


@dataclass(frozen=True)
class ErrorIn200:
    """Status 200, and a JSON body that holds an error."""

    kind: str = "overloaded"


@dataclass(frozen=True)
class Stall:
    """Headers, `text`, and then nothing until the client goes."""

    text: str = ""


@dataclass(frozen=True)
class Silence:
    """The request is read and nothing is ever answered."""


@dataclass(frozen=True)
class Hangup:
    """The connection is closed without a word."""


@dataclass(frozen=True)
class Cut:
    """`answer`'s stream, of which only the first `after_bytes` are sent.

    `clean`: the body ends as HTTP wants it, so that only its content tells.
    """

    answer: Answer
    after_bytes: int
    clean: bool = False


@dataclass(frozen=True)
class TornJson:
    """After `text` an event whose JSON is cut in the middle; the stream goes on as if nothing were."""

    text: str = ""


@dataclass(frozen=True)
class EmptyBody:
    """A status and no body."""

    status: int = 200


@dataclass(frozen=True)
class Html:
    """A web page, as a proxy or a wrong address sends it."""

    status: int = 200


@dataclass(frozen=True)
class Redirect:
    """Elsewhere."""

    location: str = "http://127.0.0.1:9/elsewhere"
    status: int = 307


@dataclass(frozen=True)
class Endless:
    """Sends the same text again and again until the client closes the connection."""

    text: str = "more "


@dataclass(frozen=True)
class LongLine:
    """One line without an end, of `size` bytes."""

    size: int


Step = (
    Answer
    | Plain
    | Noise
    | Dribble
    | Together
    | Gated
    | Fail
    | Packed
    | Events
    | Overflow
    | ErrorEvent
    | ErrorIn200
    | Stall
    | Silence
    | Hangup
    | Cut
    | TornJson
    | EmptyBody
    | Html
    | Redirect
    | Endless
    | LongLine
)

STEPS = {
    kind.__name__: kind
    for kind in (
        Answer, Plain, Noise, Dribble, Fail, Packed, Overflow, ErrorEvent, ErrorIn200, Stall, Silence, Hangup,
        Cut, TornJson, EmptyBody, Html, Redirect, Endless, LongLine,
    )
}  # fmt: skip


def step_from(given: dict[str, Any]) -> Step:
    """`{"type": "Answer", "text": "hi"}` as a step; an `answer` inside, `calls` inside that, likewise."""
    fields = dict(given)
    kind = STEPS[fields.pop("type")]
    if "answer" in fields:
        fields["answer"] = step_from({"type": "Answer", **fields["answer"]})
    if "calls" in fields:
        fields["calls"] = tuple(Call(**call) for call in fields["calls"])
    return kind(**fields)

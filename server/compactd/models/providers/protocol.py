"""What a model provider is to the rest of the program: a request, the events of its answer, its failures."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal, Protocol

from msgspec import Raw, Struct

from compactd.protocol.errors import Detail, ProviderFailed
from compactd.protocol.messages import Message, Usage

Shape = Literal["openai", "openai_responses", "anthropic", "gemini"]
"""The shapes of `formats` that a request's parts come in."""

Stop = Literal[
    "stop",
    "length",
    "tool_use",
    "refusal",
    "content_filter",
    "model_context_window_exceeded",
    "pause",
    "unknown",
]
"""Why an answer ended, in one word for all providers.

`stop`: by itself. `length`: at its output limit, reasoning included. `refusal`: the model would not.
`content_filter`: the provider stopped it. `pause`: it wants to be asked again to go on. `unknown`: a word we
do not know, which stands in `raw_stop`.
"""

TEXT_CHARS = 65_536
"""Most of an error's text that is kept: no provider's sentence is longer, a web page may be."""


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request. Its parts are JSON in the provider's `shape`, as `formats` renders them."""

    model: str
    """The id the provider knows, without the provider's name before it."""
    messages: tuple[Raw, ...]
    system: str | Raw | None = None
    """Where the shape keeps the system prompt apart: text, or JSON in that shape."""
    tools: tuple[Raw, ...] = ()
    max_output_tokens: int | None = None
    """Most tokens of the answer. None leaves it to the provider (Anthropic wants one: 4096)."""
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    """Texts that end the answer."""
    context_window: int | None = None
    """Tokens. Only Ollama is told: it cuts a longer prompt in silence at what it has loaded."""
    stream: bool = True
    extra: dict[str, Raw] = {}
    """More fields of the body, as the provider names them; these win over ours."""


class TextDelta(Struct, frozen=True):
    """More of the answer's text. Never empty."""

    text: str


class ThinkingDelta(Struct, frozen=True):
    """More of the model's reasoning. Never empty."""

    text: str


class ToolCallReady(Struct, frozen=True, kw_only=True):
    """A call that the model has finished writing."""

    call_id: str
    name: str
    arguments: Raw | str
    """A JSON object, byte for byte; the model's text where it is none: tell the model so."""


class Retrying(Struct, frozen=True, kw_only=True):
    """Nothing of an answer came; the request is sent again after `delay_s` seconds."""

    attempt: int
    """Of the request that follows: the first repetition is 2."""
    delay_s: float
    reason: str


class Finished(Struct, frozen=True, kw_only=True):
    """The whole answer; the last event."""

    message: Message
    """Role assistant; `usage` is the report as it came. Its content may be empty: see `stop_reason`."""
    usage: Usage | None
    """None where the provider reported none."""
    stop_reason: Stop
    raw_stop: str
    """The provider's own word; empty where it gave none."""
    model: str | None = None
    """Who answered, where the provider says so: a gateway may take another one."""


StreamEvent = TextDelta | ThinkingDelta | ToolCallReady | Retrying | Finished

Cause = Literal["status", "connection", "timeout", "stream", "answer", "limit"]
"""What failed: the provider said no; no connection; too slow; broken off; not an answer at all; too much."""


class Failure(Struct, frozen=True, kw_only=True):
    """What is known of a request that failed: what `overflow/classify` wants to see."""

    cause: Cause
    provider: str
    status: int | None = None
    """Of HTTP, or the one that an error inside a stream stands for."""
    code: str | None = None
    """The machine's word for it, as the provider writes it."""
    text: str = ""
    """The provider's answer, or a sentence of ours. At most `TEXT_CHARS`; holds no key of ours."""
    retry_after_s: float | None = None
    """When the provider said to come again."""
    should_retry: bool | None = None
    """Where the provider said so itself (`x-should-retry`)."""


class ModelFailed(ProviderFailed):
    """A model gave no whole answer. `failure` says why, `partial` holds what came before."""

    def __init__(self, message: str, failure: Failure, partial: Message | None, requests: int) -> None:
        data: dict[str, Detail] = {
            "provider": failure.provider,
            "cause": failure.cause,
            "status": failure.status,
            "code": failure.code,
            "requests": requests,
        }
        if failure.retry_after_s is not None:
            data["retry_after_s"] = failure.retry_after_s
        super().__init__(message, **data)
        self.failure = failure
        self.partial = partial
        """What was received; None where nothing was. Never a whole answer, never to be stored as one."""
        self.requests = requests
        """How many were sent."""


class Provider(Protocol):
    """One place that answers requests, over one wire."""

    @property
    def name(self) -> str:
        """Our name for who serves it, as the registry has it."""
        ...

    @property
    def shape(self) -> Shape:
        """What `ModelRequest`'s parts have to look like."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The answer as it arrives; `Finished` is the last event, and always comes.

        Close it (`contextlib.aclosing`) where it is not read to its end: that ends the request at once.
        Cancelling the task that waits for an event does so too. Raises `ModelFailed`.
        """
        ...

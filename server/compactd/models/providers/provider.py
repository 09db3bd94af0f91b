"""The interface of model providers: requests, the events of an answer, and failures."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal, Protocol

from msgspec import Raw, Struct

from compactd.protocol.errors import Detail, ProviderFailed
from compactd.protocol.messages import Message, Usage

ApiShape = Literal["openai", "openai_responses", "anthropic", "gemini"]
"""The message format of a request's messages, system prompt and tools."""

StopReason = Literal[
    "stop",
    "length",
    "tool_use",
    "refusal",
    "content_filter",
    "model_context_window_exceeded",
    "pause",
    "unknown",
]
"""Why an answer ended, in the same words for all providers.

`stop`: the model ended it. `length`: it reached its output limit, reasoning included. `tool_use`: the model
wants tools to be run. `refusal`: the model refused. `content_filter`: the provider stopped it.
`model_context_window_exceeded`: the window was full. `pause`: the request must be sent again so that the
answer goes on. `unknown`: another reason, which is in `raw_stop`.
"""

TEXT_CHARS = 65_536
"""The maximum number of characters kept of an error's text. Providers' messages are shorter; a web page
may be longer."""


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request to a model. Its messages, system prompt and tools are JSON in the provider's format
    (`shape`), as `formats` renders them."""

    model: str
    """The model's id at the provider, without the provider's name."""
    messages: tuple[Raw, ...]
    system: str | Raw | None = None
    """The system prompt, if the provider's format has a separate field for it: text or JSON."""
    tools: tuple[Raw, ...] = ()
    max_output_tokens: int | None = None
    """The maximum number of tokens of the answer. None leaves it to the provider (for Anthropic, 4096 is
    sent)."""
    context_window: int | None = None
    """The context window in tokens. Sent only to Ollama, which silently cuts longer prompts."""
    cache_key: str | None = None
    """Which requests share a beginning, for OpenAI's prompt cache (`prompt_cache_key`). Only the Responses
    API sends it."""
    stream: bool = True
    """Whether the answer should arrive in pieces."""
    headers: dict[str, str] = {}
    """HTTP headers that the provider requires for this request."""
    compaction_prompt: str | None = None
    """The prompt of the provider's own compaction, if it takes one; None for its own prompt. Used only by
    `Provider.compaction`."""


class TextChunk(Struct, frozen=True):
    """The next piece of the answer's text. It is never empty."""

    text: str


class ThinkingChunk(Struct, frozen=True):
    """The next piece of the model's reasoning. It is never empty."""

    text: str


class ToolCallReady(Struct, frozen=True, kw_only=True):
    """A complete tool call of the model."""

    call_id: str
    name: str
    arguments: Raw | str
    """The arguments as a JSON object, byte for byte. A `str` is what the model wrote instead of a JSON
    object; report that mistake to the model."""


class Retrying(Struct, frozen=True, kw_only=True):
    """The event that the request failed before any answer, and is sent again after `delay_s` seconds."""

    attempt: int
    """The number of the next attempt: 2 for the first retry."""
    delay_s: float
    reason: str
    """What failed, for a person."""


class Finished(Struct, frozen=True, kw_only=True):
    """The complete answer. It is always the last event."""

    message: Message
    """The assistant's message. Its `usage` is the provider's report, unchanged. Its content may be empty;
    then `stop_reason` says why."""
    usage: Usage | None
    """The usage in compactd's form; None if the provider reported none."""
    stop_reason: StopReason
    raw_stop: str
    """Why the answer ended, in the provider's own word; empty if it gave none."""
    model: str | None = None
    """The model that answered, if the provider names it. A gateway may have used another model than the
    requested one."""


StreamEvent = TextChunk | ThinkingChunk | ToolCallReady | Retrying | Finished

Cause = Literal["status", "connection", "timeout", "stream", "answer", "limit"]
"""What failed. `status`: the provider refused. `connection`: no connection. `timeout`: too slow. `stream`:
the answer broke off. `answer`: what came was not a model's answer. `limit`: the answer was too large."""


class ProviderFailure(Struct, frozen=True, kw_only=True):
    """What is known about a failed request, as `overflow/classify` needs it."""

    cause: Cause
    provider: str
    status: int | None = None
    """The HTTP status. For an error inside a stream, the status that corresponds to it."""
    code: str | None = None
    """The provider's error code."""
    text: str = ""
    """The provider's answer, or compactd's description of the failure. At most `TEXT_CHARS` characters;
    keys are removed."""
    retry_after_s: float | None = None
    """The delay that the provider asked for, in seconds."""
    should_retry: bool | None = None
    """What the provider said in the header `x-should-retry`; None if it said nothing."""


class ModelFailed(ProviderFailed):
    """The error that a model gave no complete answer. `failure` says why; `partial` is the part of the
    answer that arrived."""

    def __init__(
        self, message: str, failure: ProviderFailure, partial: Message | None, requests: int
    ) -> None:
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
        """The part of the answer that arrived; None if nothing did. It is never a complete answer, so do
        not store it as one."""
        self.requests = requests
        """How many requests were sent."""


class Provider(Protocol):
    """An address that answers model requests."""

    @property
    def name(self) -> str:
        """The provider's name in the registry."""
        ...

    @property
    def shape(self) -> ApiShape:
        """The format that the messages, system prompt and tools of a `ModelRequest` must have."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the answer as they arrive. `Finished` is always the last. Raises `ModelFailed`.

        If you do not read to the end, close the generator (`contextlib.aclosing`); that ends the request at
        once. Cancelling the task that waits for an event also ends it.
        """
        ...

    def compaction(self) -> Provider | None:
        """Return this provider for requests that it answers with its own summary of the messages. The summary
        is the opaque content of the answer. None if its API has no such requests."""
        ...

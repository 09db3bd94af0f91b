"""Build an answer from the events of a stream. This module also has the interfaces that the code for each API
implements, and the errors that end an answer."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Literal, Protocol

import msgspec
from msgspec import Raw

from compactd.core.tokens.usage import normalise
from compactd.models.providers.json_fields import Fields, object_bytes
from compactd.models.providers.provider import (
    Finished,
    ModelRequest,
    StopReason,
    StreamEvent,
    TextChunk,
    ThinkingChunk,
    ToolCallReady,
)
from compactd.models.providers.retries import error_in
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Block, Message, Opaque, Text, Thinking, ToolCall, Usage

_EMPTY = Raw(b"{}")


class ProviderRefused(Exception):
    """The error that the provider reports a failure inside its answer."""

    def __init__(self, text: bytes | Raw, error: Fields) -> None:
        super().__init__("the provider reported an error")
        self.text = bytes(text).decode("utf-8", "replace")
        self.status, self.code = error_in(error)


class NotAnAnswer(Exception):
    """The error that the server sent something other than an answer of this API. The error's text says what
    the server sent."""


class Unfinished(Exception):
    """The error that the stream ended before the answer was complete."""


class ResponseReader(Protocol):
    """A reader of one answer of one API. Create a new one per request."""

    framing: Literal["events", "lines"]
    """How the stream is divided: server-sent events, or one JSON object per line."""
    is_over: bool
    """Whether the last event of the answer was read. The caller sets it at `[DONE]`."""
    collected: AnswerBuilder
    """The part of the answer that has arrived."""

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """Read the data of one event or line, and yield what it contains. `name` is the event's name.
        Raises `ProviderRefused`, `NoJson`."""
        ...

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """Read an answer that was not streamed, and yield its events. Raises `ProviderRefused`, `NoJson`,
        `NotAnAnswer`."""
        ...

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that are known only at the end, then `Finished`. Raises `Unfinished`."""
        ...


class ProviderApi(Protocol):
    """The code for one API: the path and body of a request, and a reader of the answer."""

    def path(self, request: ModelRequest) -> str:
        """Return the path below the base URL. It begins with `/`."""
        ...

    def body(self, request: ModelRequest) -> bytes:
        """Return the JSON of a request. O(bytes)."""
        ...

    def reader(self) -> ResponseReader:
        """Return a new reader for one answer."""
        ...


class AnswerBuilder:
    """A collector of the blocks of one answer, in order. O(bytes)."""

    def __init__(self) -> None:
        self._done: list[Block] = []
        self._kind: Literal["text", "thinking", ""] = ""
        self._pieces: list[str] = []
        self._signature: list[str] = []
        self.has_calls = False
        self.usage: Raw | None = None
        """The last usage report, as it arrived."""
        self.model: str | None = None

    def text(self, piece: str) -> Iterator[TextChunk]:
        """Add a piece of text, and yield its event. A new block begins if the current one is not text."""
        if piece:
            self._open("text")
            self._pieces.append(piece)
            yield TextChunk(piece)

    def add_thinking(self, piece: str) -> Iterator[ThinkingChunk]:
        """Add a piece of reasoning, and yield its event. A new block begins if the current one is not
        reasoning."""
        if piece:
            self._open("thinking")
            self._pieces.append(piece)
            yield ThinkingChunk(piece)

    def signature(self, piece: str) -> None:
        """Add a piece to the signature of the current reasoning."""
        if piece:
            self._open("thinking")
            self._signature.append(piece)

    def close(self) -> None:
        """Finish the current text or reasoning block."""
        text = "".join(self._pieces)
        if self._kind == "text" and text:
            self._done.append(Text(text=text))
        elif self._kind == "thinking" and (text or self._signature):
            self._done.append(Thinking(text=text, signature="".join(self._signature) or None))
        self._kind, self._pieces, self._signature = "", [], []

    def put(self, block: Block) -> None:
        """Add a complete block."""
        self.close()
        self._done.append(block)

    def opaque(self, provider: str, raw: Raw) -> None:
        """Add a block that only `provider` understands."""
        # Copy it, because a decoded `Raw` keeps the whole chunk alive.
        self.put(Opaque(provider=provider, raw=Raw(bytes(raw))))

    def add_call(self, call_id: str, name: str, arguments: str | Raw) -> Iterator[ToolCallReady]:
        """Add a complete tool call, and yield its event. `arguments` is a JSON object, or the text that the
        model wrote instead. An empty `call_id` is replaced by a random one."""
        text = bytes(arguments).decode("utf-8", "replace") if isinstance(arguments, Raw) else arguments
        given = object_bytes(text)
        call_id = call_id or f"call_{secrets.token_hex(8)}"
        self.has_calls = True
        # Broken arguments become a JSON string, as OpenAI's `arguments` is one.
        kept = Raw(msgspec.json.encode(text)) if given is None else given
        self.put(ToolCall(call_id=call_id, name=name, arguments=kept))
        yield ToolCallReady(call_id=call_id, name=name, arguments=text if given is None else given)

    def report(self, usage: Raw | None) -> None:
        """Set the usage report. It replaces an earlier one."""
        if usage is not None and usage != _EMPTY:
            self.usage = Raw(bytes(usage))

    def partial(self) -> Message | None:
        """Return the part of the answer that has arrived, without an incomplete tool call; None if nothing
        has."""
        self.close()
        if not self._done and self.usage is None:
            return None
        return Message(role="assistant", content=tuple(self._done), usage=self.usage)

    def finish(self, stop: StopReason, raw_stop: str) -> Finished:
        """Return the complete answer. If it contains tool calls, its stop reason is `tool_use`, unless
        `stop` is more specific."""
        self.close()
        if self.has_calls and stop in ("stop", "unknown"):
            stop = "tool_use"
        return Finished(
            message=Message(role="assistant", content=tuple(self._done), usage=self.usage, stop_reason=stop),
            usage=decode_usage_report(self.usage),
            stop_reason=stop,
            raw_stop=raw_stop,
            model=self.model,
        )

    def _open(self, kind: Literal["text", "thinking"]) -> None:
        """End the current block if it is of another kind."""
        if self._kind != kind:
            self.close()
            self._kind = kind


def decode_usage_report(raw: Raw | None) -> Usage | None:
    """Return a usage report in compactd's form; None if there is none or its numbers are invalid."""
    if raw is None:
        return None
    try:
        return normalise(raw)[0]
    except InvalidParams:
        return None

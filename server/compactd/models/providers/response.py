"""An answer as it is put together from a stream, and the refusals that end one."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Literal, Protocol

import msgspec
from msgspec import Raw

from compactd.core.tokens.usage import normalise
from compactd.models.providers.json_fields import Fields, object_bytes
from compactd.models.providers.protocol import (
    Finished,
    ModelRequest,
    Stop,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from compactd.models.providers.retries import error_in
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Block, Message, Opaque, Text, Thinking, ToolCall, Usage

_EMPTY = Raw(b"{}")


class Refused(Exception):
    """The provider says in its answer that it failed."""

    def __init__(self, text: bytes | Raw, error: Fields) -> None:
        super().__init__("the provider reported an error")
        self.text = bytes(text).decode("utf-8", "replace")
        self.status, self.code = error_in(error)


class NotAnAnswer(Exception):
    """What came is none of this provider's answers. The text says what it looks like."""


class Unfinished(Exception):
    """The stream ended before the answer did."""


class Reader(Protocol):
    """One answer of one provider. Made anew for each request."""

    framing: Literal["events", "lines"]
    """Server-sent events, or a JSON object a line."""
    is_over: bool
    """The answer's last word has come. Set from outside for `[DONE]`."""

    def take(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        """One event or line. Raises `Refused`, `NoJson`."""
        ...

    def take_whole(self, body: bytes) -> Iterator[StreamEvent]:
        """The answer of a server that did not stream. Raises `Refused`, `NoJson`, `NotAnAnswer`."""
        ...

    def finish(self) -> Iterator[StreamEvent]:
        """What is ready only at the end, and `Finished`. Raises `Unfinished`."""
        ...

    def partial(self) -> Message | None:
        """What has come so far; None where nothing has."""
        ...


class Wire(Protocol):
    """How one API is spoken: a request's path, headers and body, and a reader of its answers."""

    def path(self, request: ModelRequest) -> str:
        """Below the base URL; begins with `/`."""
        ...

    def body(self, request: ModelRequest) -> bytes:
        """The JSON to send. O(bytes)."""
        ...

    def reader(self) -> Reader:
        """For the answer to one request."""
        ...


class Collected:
    """The blocks of an answer, in the order they came. O(bytes)."""

    def __init__(self) -> None:
        self._done: list[Block] = []
        self._kind: Literal["text", "thinking", ""] = ""
        self._pieces: list[str] = []
        self._signature: list[str] = []
        self.has_calls = False
        self.usage: Raw | None = None
        """The last report, as it came."""
        self.model: str | None = None

    def text(self, piece: str) -> Iterator[TextDelta]:
        """More text; a new block where the last one was none."""
        if piece:
            self._open("text")
            self._pieces.append(piece)
            yield TextDelta(piece)

    def thinking(self, piece: str) -> Iterator[ThinkingDelta]:
        """More reasoning."""
        if piece:
            self._open("thinking")
            self._pieces.append(piece)
            yield ThinkingDelta(piece)

    def signature(self, piece: str) -> None:
        """Of the reasoning that came last."""
        if piece:
            self._open("thinking")
            self._signature.append(piece)

    def close(self) -> None:
        """The text or reasoning that is being written ends here."""
        text = "".join(self._pieces)
        if self._kind == "text" and text:
            self._done.append(Text(text=text))
        elif self._kind == "thinking" and (text or self._signature):
            self._done.append(Thinking(text=text, signature="".join(self._signature) or None))
        self._kind, self._pieces, self._signature = "", [], []

    def put(self, block: Block) -> None:
        """A block that came whole."""
        self.close()
        self._done.append(block)

    def opaque(self, provider: str, raw: Raw) -> None:
        """Something that only `provider` understands."""
        # A copy: what was decoded keeps the whole chunk alive.
        self.put(Opaque(provider=provider, raw=Raw(bytes(raw))))

    def call(self, call_id: str, name: str, arguments: str | Raw) -> Iterator[ToolCallReady]:
        """A whole call. `arguments`: JSON, or the text the model wrote instead."""
        text = bytes(arguments).decode("utf-8", "replace") if isinstance(arguments, Raw) else arguments
        given = object_bytes(text)
        call_id = call_id or f"call_{secrets.token_hex(8)}"
        self.has_calls = True
        # Broken arguments become a JSON string, as OpenAI's `arguments` is one.
        self.put(ToolCall(call_id=call_id, name=name, arguments=_quoted(text) if given is None else given))
        yield ToolCallReady(call_id=call_id, name=name, arguments=text if given is None else given)

    def report(self, usage: Raw | None) -> None:
        """What the request took; a later report replaces an earlier one."""
        if usage is not None and usage != _EMPTY:
            self.usage = Raw(bytes(usage))

    def partial(self) -> Message | None:
        """What has come so far."""
        self.close()
        if not self._done and self.usage is None:
            return None
        return Message(role="assistant", content=tuple(self._done), usage=self.usage)

    def finished(self, stop: Stop, raw_stop: str) -> Finished:
        """The whole. A stop that leaves calls behind is one for their sake, whatever the provider's word."""
        self.close()
        if self.has_calls and stop in ("stop", "unknown"):
            stop = "tool_use"
        return Finished(
            message=Message(role="assistant", content=tuple(self._done), usage=self.usage, stop_reason=stop),
            usage=usage_of(self.usage),
            stop_reason=stop,
            raw_stop=raw_stop,
            model=self.model,
        )

    def _open(self, kind: Literal["text", "thinking"]) -> None:
        if self._kind != kind:
            self.close()
            self._kind = kind


def usage_of(raw: Raw | None) -> Usage | None:
    """The report as ours; None for one that cannot be believed."""
    if raw is None:
        return None
    try:
        return normalise(raw)[0]
    except InvalidParams:
        return None


def _quoted(text: str) -> Raw:
    return Raw(msgspec.json.encode(text))

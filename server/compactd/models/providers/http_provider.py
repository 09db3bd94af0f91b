"""A provider that is reached over HTTP: it sends requests, reads streamed answers, and retries. The code
is the same for every API."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing

from compactd.models.providers.http import ConnectionBroken, ConnectionPool, HttpRequest, HttpResponse
from compactd.models.providers.json_fields import NoJson
from compactd.models.providers.network import address_of
from compactd.models.providers.provider import (
    TEXT_CHARS,
    ApiShape,
    Cause,
    ModelFailed,
    ModelRequest,
    ProviderFailure,
    Retrying,
    StreamEvent,
)
from compactd.models.providers.response import (
    NotAnAnswer,
    ProviderApi,
    ProviderRefused,
    ResponseReader,
    Unfinished,
)
from compactd.models.providers.retries import Clock, RetryPolicy, code_in, delay_of, error_body, retry_after
from compactd.models.providers.secret import Secret, blot_keys
from compactd.models.providers.sse import Lines, ServerEvents, TooLong

_MAX_SHOWN_CHARS = 300
"""The maximum number of characters of a provider's message that are shown to a person."""


_LARGE_BYTES = 262_144
"""The size of the messages from which a request is encoded in a thread, because encoding 10 MB would block
the event loop for 10 ms."""

_JSON = (b"{", b"[")
"""The first bytes of JSON objects and lists."""
_BOM = b"\xef\xbb\xbf"


class _Failed(Exception):
    """The error that one request failed. `sentence` describes it, with the provider as its subject."""

    def __init__(self, failure: ProviderFailure, sentence: str) -> None:
        super().__init__(sentence)
        self.failure = failure
        self.sentence = sentence


class HttpProvider:
    """A provider that is reached over HTTP."""

    def __init__(
        self,
        *,
        name: str,
        shape: ApiShape,
        wire: ProviderApi,
        base_url: str,
        headers: Mapping[str, str],
        key_header: str | None,
        key: Secret | None,
        links: ConnectionPool,
        retries: RetryPolicy,
        clock: Clock,
        withheld: str = "",
        compacting: ProviderApi | None = None,
    ) -> None:
        """Store the settings. `key_header` is the name of the header that contains the key. In
        `Authorization`, `Bearer ` precedes the key.

        `withheld` says why an existing key is not sent. It is shown if the provider refuses a request that
        has no key. `compacting` is the API of the provider's own compaction, if there is one.
        """
        self.name = name
        self.shape: ApiShape = shape
        self.base_url = base_url
        self._wire = wire
        self._headers = headers
        self._key_header = key_header
        self._key = key
        self._links = links
        self._retries = retries
        self._clock = clock
        self._withheld = withheld
        self._compacting = compacting

    def __repr__(self) -> str:
        return f"HttpProvider({self.name!r})"

    @property
    def has_key(self) -> bool:
        """Whether requests contain a key."""
        return self._key is not None

    def compaction(self) -> HttpProvider | None:
        """Return this provider for requests to compact. See `Provider.compaction`."""
        if self._compacting is None:
            return None
        other = copy.copy(self)
        other._wire = self._compacting
        return other

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the answer as they arrive. See `Provider.stream`.

        A request is retried only while no event of an answer was yielded, because text that was shown cannot
        be taken back.
        """
        size = sum(memoryview(message).nbytes for message in request.messages)
        if size > _LARGE_BYTES:
            sending = await asyncio.to_thread(self._encode_request, request)
        else:
            sending = self._encode_request(request)
        attempt = 0
        while True:
            attempt += 1
            reader = self._wire.reader()
            has_shown = False
            try:
                async with aclosing(self._request_once(sending, reader)) as events:
                    async for event in events:
                        has_shown = True
                        yield event
                return
            except _Failed as failed:
                failure, sentence = failed.failure, failed.sentence
            delay_s = None
            if not has_shown:
                # In a thread: classifying an error's text compiles patterns the first time.
                delay_s = await asyncio.to_thread(
                    delay_of, failure, attempt + 1, self._retries, self._clock.random
                )
            if delay_s is None:
                raise ModelFailed(f"{self._who()} {sentence}", failure, reader.collected.partial(), attempt)
            yield Retrying(attempt=attempt + 1, delay_s=delay_s, reason=sentence)
            await self._clock.sleep(delay_s)

    async def _request_once(
        self, sending: HttpRequest, reader: ResponseReader
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send one request and yield the events of its answer. Raises `_Failed`."""
        try:
            async with self._links.send(sending) as answer:
                if answer.status != 200:
                    raise await self._refusal(answer)
                try:
                    async with aclosing(self._read(answer, reader)) as events:
                        async for event in events:
                            yield event
                except Exception:
                    # A server that ends an incomplete answer normally tends to close the connection next.
                    answer.is_whole = False
                    raise
        except ConnectionBroken as broken:
            raise self._failure(broken.cause, broken.sentence) from None
        except TooLong:
            raise self._failure("limit", "sent a line that is too long") from None
        except ProviderRefused as refused:
            text = self._without_keys(refused.text)
            failure = ProviderFailure(
                cause="status",
                provider=self.name,
                status=refused.status,
                code=refused.code,
                text=text,
                retry_after_s=retry_after({}, text, self._clock.now()),
            )
            raise _Failed(failure, f"reported an error in its answer: {error_sentence(text)}") from None
        except NoJson:
            raise self._failure("stream", "sent an answer that contains invalid JSON") from None
        except NotAnAnswer as strange:
            raise self._failure("answer", str(strange)) from None
        except Unfinished:
            raise self._failure("stream", "ended its answer before it was complete") from None

    async def _read(self, answer: HttpResponse, reader: ResponseReader) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of an answer with status 200."""
        feed = _Feed(reader, self._links.limits.line_bytes)
        async with aclosing(answer.chunks()) as chunks:
            try:
                async for chunk in chunks:
                    for event in feed.take(chunk):
                        yield event
                    if reader.is_over:
                        break
                for event in feed.end():
                    yield event
                ends = list(reader.finish())
            except ConnectionBroken as broken:
                # If the answer had already ended, it is complete although the stream broke off.
                try:
                    ends = list(reader.finish())
                except Unfinished:
                    raise broken from None
            if reader.is_over:
                # Drain before the last event: callers stop reading after that, which closes the connection.
                await answer.drain(chunks)
            for event in ends:
                yield event

    async def _refusal(self, answer: HttpResponse) -> _Failed:
        """Return the error for an answer with another status than 200."""
        headers = answer.headers
        text = self._without_keys(await answer.text())
        status = answer.status
        if status < 400:
            failure = ProviderFailure(cause="answer", provider=self.name, status=status, text=text)
            what = f"with a redirect ({status}), which is not followed"
            if status < 300:
                what = f"{status} without any content"
            return _Failed(failure, f"answered {what}: correct base_url")
        code = code_in(text)
        told = headers.get("x-should-retry", "").lower()
        failure = ProviderFailure(
            cause="status",
            provider=self.name,
            status=status,
            code=code,
            text=text,
            retry_after_s=retry_after(headers, text, self._clock.now()),
            should_retry={"true": True, "false": False}.get(told),
        )
        said = error_sentence(text) if text else answer.unread and f"it {answer.unread}"
        if self._withheld and status in (401, 403):
            said = f"{said} ({self._withheld})"
        return _Failed(failure, f"answered {status}: {said}")

    def _failure(self, cause: Cause, sentence: str) -> _Failed:
        """Return the error for a failure that compactd describes itself."""
        return _Failed(ProviderFailure(cause=cause, provider=self.name, text=sentence), sentence)

    def _without_keys(self, text: str) -> str:
        # Take twice as much as is kept, because hiding keys makes the text shorter.
        """Return the part of an error's text that is kept, without the key."""
        return blot_keys(text[: 2 * TEXT_CHARS], () if self._key is None else (self._key,))[:TEXT_CHARS]

    def _who(self) -> str:
        """Return the provider's name and address for a message."""
        address = address_of(self.base_url)
        return f"{self.name} at {address.place}" if address else self.name

    def _encode_request(self, request: ModelRequest) -> HttpRequest:
        """Return the request as it is sent: URL, headers and body."""
        headers = {
            "Accept": "text/event-stream, application/json",
            # A proxy that compresses a stream delays it.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "compactd",
            **self._headers,
            **request.headers,
        }
        if self._key is not None and self._key_header is not None:
            text = self._key.reveal()
            headers[self._key_header] = f"Bearer {text}" if self._key_header == "Authorization" else text
        url = self.base_url.rstrip("/") + self._wire.path(request)
        return HttpRequest(url=url, headers=headers, body=self._wire.body(request))


class _Feed:
    """A divider of an answer's body, which passes its parts to a reader. The parts are lines if the reader's
    `framing` says so. Otherwise the first byte shows whether the body is one JSON value or a stream of
    events."""

    def __init__(self, reader: ResponseReader, limit_bytes: int) -> None:
        self._reader = reader
        self._limit = limit_bytes
        self._take: Callable[[bytes], Iterator[StreamEvent]] | None = None
        self._rest: Callable[[], Iterator[StreamEvent]] = self._nothing
        self._start = b""
        self._whole: list[bytes] = []
        self._size = 0

    def take(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield the events of the answer that are complete with `chunk`."""
        if self._take is None:
            self._size += len(chunk)
            chunk, self._start = self._start + chunk, b""
            first = chunk.removeprefix(_BOM).lstrip()[:1]
            if not first:
                if self._size > self._limit:
                    raise TooLong
                # Do not keep white space before the answer; it can be megabytes.
                self._start = _BOM if chunk.startswith(_BOM) else b""
                return
            self._choose(first)
            self._size = 0
        if self._take is not None:
            yield from self._take(chunk)

    def end(self) -> Iterator[StreamEvent]:
        """Yield the events of the answer that are left at the end of the body."""
        yield from self._rest()

    def _choose(self, first: bytes) -> None:
        if first == b"<":
            raise NotAnAnswer("answered with a web page: base_url is not an API's address")
        if self._reader.framing == "lines":
            lines = Lines(self._limit)
            self._take = lambda chunk: self._lines(lines.feed(chunk))
            self._rest = lambda: self._lines(iter((lines.take_rest(),)))
        elif first in _JSON:
            self._take, self._rest = self._gather, self._end_gathered
        else:
            events = ServerEvents(self._limit)
            self._take = lambda chunk: self._events(events, chunk)
            self._rest = lambda: self._end_events(events)

    def _nothing(self) -> Iterator[StreamEvent]:
        yield from ()

    def _lines(self, lines: Iterator[bytes]) -> Iterator[StreamEvent]:
        for line in lines:
            if line.strip():
                yield from self._reader.take("", line)

    def _events(self, events: ServerEvents, chunk: bytes) -> Iterator[StreamEvent]:
        for event in events.feed(chunk):
            if self._reader.is_over:
                return
            yield from self._event(event.name, event.data)

    def _end_events(self, events: ServerEvents) -> Iterator[StreamEvent]:
        if not self._reader.is_over:
            for event in events.end():
                yield from self._event(event.name, event.data)

    def _event(self, name: str, data: bytes) -> Iterator[StreamEvent]:
        data = data.strip()
        if data == b"[DONE]":
            self._reader.is_over = True
        elif data[:1] in _JSON:
            # Other data is a server's ping. Answers consist of JSON, and a missing end is detected.
            yield from self._reader.take(name, data)

    def _gather(self, chunk: bytes) -> Iterator[StreamEvent]:
        self._size += len(chunk)
        if self._size > self._limit:
            raise TooLong
        self._whole.append(chunk)
        yield from ()

    def _end_gathered(self) -> Iterator[StreamEvent]:
        yield from self._reader.take_whole(b"".join(self._whole))


def error_sentence(text: str) -> str:
    """Return the message in an error's body, shortened and on one line, for a person."""
    given = error_body(text)
    inner = given.object("error")
    words = inner.text("message") or given.text("message") or given.text("error") or given.text("detail")
    if not words and text.lstrip()[:1] == "<":
        return "a web page"
    line = " ".join((words or text).split())
    return line if len(line) <= _MAX_SHOWN_CHARS else f"{line[:_MAX_SHOWN_CHARS]}…"

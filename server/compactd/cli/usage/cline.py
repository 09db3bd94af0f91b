"""Read the usage reports in Cline's files.

- The extension's `ui_messages.json` (cline/cline, src/shared/getApiMetrics.ts and ExtensionMessage.ts,
  `ClineApiReqInfo`, read 2026-11): a message with `say` `api_req_started` or `deleted_api_reqs` has a JSON
  text with `tokensIn`, which excludes the cache, `tokensOut`, `cacheWrites`, `cacheReads` and `cost` in US
  dollars. The second kind is the sum of deleted requests. The model is in `modelInfo`.
- `api_conversation_history.json` and the SDK's `<session>.messages.json` (sdk/packages/core, fixture
  session.messages.json, read 2026-11): a message has `ts`, `modelInfo` and `metrics`. The SDK's `inputTokens`
  include the cache; the extension's counts are in `metrics.tokens` (`prompt`, `completion`, `cached`), where
  `prompt` excludes it.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from compactd.cli.usage.requests import FileUsage, Request, count, dollars, key_of, seconds

_Number = int | float | None


class _ApiRequest(Struct, rename="camel"):
    tokens_in: _Number = None
    tokens_out: _Number = None
    cache_writes: _Number = None
    cache_reads: _Number = None
    cost: _Number = None


class _Tokens(Struct):
    prompt: _Number = None
    completion: _Number = None
    cached: _Number = None


class _Metrics(Struct, rename="camel"):
    tokens: _Tokens | None = None
    input_tokens: _Number = None
    output_tokens: _Number = None
    cache_read_tokens: _Number = None
    cache_write_tokens: _Number = None
    cost: _Number = None


class _Model(Struct, rename="camel"):
    id: str | None = None
    model_id: str | None = None
    provider: str | None = None
    provider_id: str | None = None


class _Message(Struct, rename={"model_info": "modelInfo"}):
    id: str | None = None
    ts: _Number = None
    say: str | None = None
    text: str | None = None
    model_info: _Model | None = None
    metrics: _Metrics | None = None


class _Document(Struct):
    messages: list[_Message]
    session_id: str | None = field(default=None, name="sessionId")


_document = msgspec.json.Decoder(_Document | list[_Message]).decode
_api_request = msgspec.json.Decoder(_ApiRequest).decode

_SAID = ("api_req_started", "deleted_api_reqs")


def read(data: bytes, usage: FileUsage) -> None:
    """Add the requests of a document to `usage`. Raise `msgspec.MsgspecError` if it is damaged."""
    document = _document(data)
    messages = document if isinstance(document, list) else document.messages
    if isinstance(document, _Document) and document.session_id:
        usage.session_id = document.session_id
    for message in messages:
        model = message.model_info or _Model()
        place = usage.model_index(model.provider or model.provider_id or "", model.id or model.model_id or "")
        request = None
        if message.say in _SAID and message.text:
            request = _of_screen(message, place, usage)
        elif message.metrics is not None:
            request = _of_metrics(message.metrics, message, place)
        if request and (request.input or request.output or request.cache_write or request.cache_read):
            usage.requests.append(request)


def _of_screen(message: _Message, model: int, usage: FileUsage) -> Request | None:
    try:
        said = _api_request(message.text or "")
    except msgspec.MsgspecError:
        usage.unreadable += 1
        return None
    return Request(
        key=_key(message),
        at=seconds(message.ts),
        model=model,
        input=count(said.tokens_in),
        output=count(said.tokens_out),
        cache_write=count(said.cache_writes),
        cache_write_1h=0,
        cache_read=count(said.cache_reads),
        cost=dollars(said.cost) or None,
    )


def _of_metrics(metrics: _Metrics, message: _Message, model: int) -> Request:
    read, written = count(metrics.cache_read_tokens), count(metrics.cache_write_tokens)
    fresh = max(0, count(metrics.input_tokens) - read - written)
    output = count(metrics.output_tokens)
    if metrics.tokens is not None:
        fresh, output = count(metrics.tokens.prompt), count(metrics.tokens.completion)
        read, written = count(metrics.tokens.cached), 0
    return Request(
        key=_key(message),
        at=seconds(message.ts),
        model=model,
        input=fresh,
        output=output,
        cache_write=written,
        cache_write_1h=0,
        cache_read=read,
        cost=dollars(metrics.cost) or None,
    )


def _key(message: _Message) -> int:
    """Return the key of a message: by its id, or by its time in milliseconds."""
    if message.id:
        return key_of(message.id)
    return key_of(f"{message.say}:{message.ts}") if message.ts else 0

"""Decode a message body as a JSON-RPC request, notification or response. Params and results stay undecoded
JSON.
"""

from __future__ import annotations

import itertools
import logging

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.rpc.checked_body import BodyCheck, RequestBody, is_utf8
from compactd.daemon.rpc.framing import PARSE_ERROR, Fault
from compactd.daemon.rpc.ids import NULL_ID, SNIFFED_BYTES, is_id, sniff_id
from compactd.daemon.rpc.json_depth import DEPTH_LIMIT, is_too_deep
from compactd.daemon.rpc.surrogates import without_lone_surrogates
from compactd.protocol.errors import LimitExceeded

INVALID_REQUEST = -32600

_BOM = b"\xef\xbb\xbf"

_log = logging.getLogger("compactd.rpc")


class Envelope(Struct):
    """A request, a notification or a response. Missing fields are `UNSET`."""

    jsonrpc: str = ""
    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Loose(Struct):
    id: Raw | UnsetType = UNSET


_surrogates = itertools.count(1)
_decode = msgspec.json.Decoder(Envelope).decode
_decode_loose = msgspec.json.Decoder(_Loose).decode


def read_envelope(body: RequestBody) -> Envelope | Fault:
    """Decode the message in `body`, or return the error that its sender gets. The `Raw` fields of the message
    share the body's memory: copy what you keep.
    """
    text = body.text if isinstance(body, BodyCheck) else body
    try:
        envelope = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _repair(text, error)
    # msgspec does not check the contents of `Raw` fields (0.22, tried 2026-11).
    if not (body.utf8.is_valid if isinstance(body, BodyCheck) else body.isascii() or is_utf8(body)):
        return Fault(PARSE_ERROR, "the message is not valid UTF-8")
    if body.depth.is_too_deep if isinstance(body, BodyCheck) else is_too_deep(body):
        return _too_deep(text)
    return _check(envelope)


def _check(envelope: Envelope) -> Envelope | Fault:
    id = NULL_ID
    if envelope.id is not UNSET:
        id = bytes(envelope.id)
        if not is_id(id):
            return Fault(INVALID_REQUEST, "`id` must be a string, a number or null")
    if envelope.jsonrpc != "2.0":
        return Fault(INVALID_REQUEST, '`jsonrpc` must be "2.0"', id)
    if envelope.method is UNSET and envelope.result is UNSET and envelope.error is UNSET:
        text = "the message is neither a request nor a response: it has no `method`, `result` or `error`"
        return Fault(INVALID_REQUEST, text, id)
    return envelope


def _repair(body: bytes | bytearray, error: Exception) -> Envelope | Fault:
    """Try again to read a body that msgspec refused: without a byte order mark, and without lone surrogates.
    Otherwise return the error answer that fits.
    """
    if body.startswith(_BOM):
        return read_envelope(body[len(_BOM) :])
    if isinstance(error, RecursionError):
        return _too_deep(body)
    if isinstance(error, msgspec.ValidationError):
        if body.lstrip().startswith(b"["):
            return Fault(INVALID_REQUEST, "batches are not supported: send one message at a time")
        try:
            raw = _decode_loose(body).id
        except msgspec.ValidationError:
            return Fault(INVALID_REQUEST, "a message must be a JSON object")
        except (msgspec.DecodeError, UnicodeDecodeError) as broken:  # after the field with the wrong type
            return Fault(PARSE_ERROR, f"the message is not JSON: {broken}")
        except RecursionError:
            return _too_deep(body)
        id = bytes(raw) if raw is not UNSET else NULL_ID
        return Fault(INVALID_REQUEST, str(error), id if is_id(id) else NULL_ID)
    if isinstance(error, msgspec.DecodeError) and (mended := without_lone_surrogates(body)) is not None:
        _warn_of_surrogates(len(body))
        return read_envelope(mended)
    return Fault(PARSE_ERROR, f"the message is not JSON: {error}")


def _too_deep(body: bytes | bytearray) -> Fault:
    id = sniff_id(body[:SNIFFED_BYTES])
    return Fault(LimitExceeded.code, f"the message is nested deeper than {DEPTH_LIMIT} levels", id)


def _warn_of_surrogates(size_bytes: int) -> None:
    """Log that a lone surrogate was replaced: the first time, and then whenever the count is a power of two,
    so that a client that always sends surrogates does not fill the log.
    """
    count = next(_surrogates)
    if count & (count - 1) == 0:
        _log.warning(
            "lone surrogates in a message of %d bytes were replaced by U+FFFD (%d such messages so far)",
            size_bytes,
            count,
        )

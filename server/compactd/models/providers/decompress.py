"""Decompress answers: at most one layer of gzip or deflate, in small steps.

compactd asks for `identity`, but some gateways compress anyway. Several layers are never needed and can be a
decompression bomb (1.8 kB become 1 GiB), so they are refused. One layer is decompressed `STEP_BYTES` at a
time, so that the caller can stop at a limit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

STEP_BYTES = 65_536
"""The maximum number of bytes that are decompressed at once. It takes 0.1 ms."""

_GZIP = frozenset(("gzip", "x-gzip"))
_GZIP_BITS = 16 + zlib.MAX_WBITS
_MAX_SHOWN_CHARS = 20


class NotUnpackable(Exception):
    """The error that a body cannot be decompressed: compactd does not accept its encoding, or the body is
    damaged."""


class Unpacker:
    """A decompressor of one body. With `Content-Encoding: identity`, or none, it returns the bytes
    unchanged."""

    def __init__(self, content_encoding: str) -> None:
        """Read the encoding. `content_encoding` is the header's value; several headers are joined by
        commas. Raises `NotUnpackable`."""
        layers = [layer.strip().lower() for layer in content_encoding.split(",")]
        layers = [layer for layer in layers if layer not in ("", "identity")]
        if len(layers) > 1:
            raise NotUnpackable(
                "sent a body that is compressed more than once, which compactd does not support"
            )
        self._is_deflate = layers == ["deflate"]
        self._unpack: zlib._Decompress | None = None
        if not layers:
            return
        if not self._is_deflate and layers[0] not in _GZIP:
            raise NotUnpackable(
                f"sent a body in the encoding {_encoding_name(layers[0])}, which compactd did not ask for"
            )
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS if self._is_deflate else _GZIP_BITS)

    @property
    def is_packed(self) -> bool:
        """Whether the body is compressed."""
        return self._unpack is not None

    def steps(self, piece: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes of `piece`, at most `STEP_BYTES` at a time. Raises `NotUnpackable`.

        Bytes after the end of the compressed body are ignored, as in browsers. O(piece + output).
        """
        if self._unpack is None:
            yield piece
            return
        rest = piece
        while not self._unpack.eof:
            step = self._step(rest)
            rest = self._unpack.unconsumed_tail
            if step:
                yield step
            # After a full step, zlib may still have more output.
            if len(step) < STEP_BYTES and not rest:
                return

    def _step(self, packed: bytes) -> bytes:
        """Decompress the next bytes. Raises `NotUnpackable`."""
        assert self._unpack is not None
        may_be_raw, self._is_deflate = self._is_deflate and bool(packed), False
        try:
            return self._unpack.decompress(packed, STEP_BYTES)
        except zlib.error:
            if not may_be_raw:
                raise NotUnpackable("sent a compressed body that is damaged") from None
        # "deflate" means zlib's format (RFC 9110, 8.4.1.2), but some servers omit zlib's header.
        self._unpack = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._step(packed)


def _encoding_name(encoding: str) -> str:
    """Return the name of an encoding for a message. A server can have sent any text as the name, so an
    unusual one is not shown."""
    is_plain = len(encoding) <= _MAX_SHOWN_CHARS and encoding.isascii() and encoding.isalnum()
    return f"`{encoding}`" if is_plain else "with an unusual name"

"""Content-Encoding of an answer: at most one layer of gzip or deflate, unpacked in small steps.

compactd asks for `identity`, so a compressed answer is unusual, but some gateways compress anyway. Two layers
are never needed and make a bomb: 1.8 kB become 1 GiB (measured 2026-11). So a chain of encodings is refused,
and one layer is unpacked `STEP_BYTES` at a time: whoever reads can stop at a limit in between.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

STEP_BYTES = 65_536
"""Largest piece that is unpacked at once: 0.1 ms."""

_GZIP = frozenset(("gzip", "x-gzip"))
_GZIP_BITS = 16 + zlib.MAX_WBITS
_MAX_SHOWN_CHARS = 20


class NotUnpackable(Exception):
    """The body is encoded in a way that is not accepted, or not in the way that its head says."""


class Unpacker:
    """Unpacks one body. `Content-Encoding: identity`, or none, passes through as it is."""

    def __init__(self, content_encoding: str) -> None:
        """`content_encoding`: the header's value, several headers joined by commas.

        Raises `NotUnpackable`.
        """
        layers = [layer.strip().lower() for layer in content_encoding.split(",")]
        layers = [layer for layer in layers if layer not in ("", "identity")]
        if len(layers) > 1:
            raise NotUnpackable("sent a body that is compressed more than once, which compactd refuses")
        self._is_deflate = layers == ["deflate"]
        self._unpack: zlib._Decompress | None = None
        if not layers:
            return
        if not self._is_deflate and layers[0] not in _GZIP:
            raise NotUnpackable(
                f"sent a body in the encoding {_shown(layers[0])}, which compactd did not ask for"
            )
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS if self._is_deflate else _GZIP_BITS)

    @property
    def is_packed(self) -> bool:
        """The body is compressed."""
        return self._unpack is not None

    def steps(self, piece: bytes) -> Iterator[bytes]:
        """What `piece` becomes, at most `STEP_BYTES` at a time. Bytes after the end of the packed body are
        ignored, as browsers do. Raises `NotUnpackable`. O(piece + what it becomes).
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
            # A full step may have left more behind within zlib.
            if len(step) < STEP_BYTES and not rest:
                return

    def _step(self, packed: bytes) -> bytes:
        assert self._unpack is not None
        may_be_raw, self._is_deflate = self._is_deflate and bool(packed), False
        try:
            return self._unpack.decompress(packed, STEP_BYTES)
        except zlib.error:
            if not may_be_raw:
                raise NotUnpackable("sent a body that does not decompress") from None
        # "deflate" means zlib's format (RFC 9110, 8.4.1.2), but some servers leave out zlib's head.
        self._unpack = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._step(packed)


def _shown(encoding: str) -> str:
    """The encoding's name, for a message; a server may have written anything there."""
    is_plain = len(encoding) <= _MAX_SHOWN_CHARS and encoding.isascii() and encoding.isalnum()
    return f"`{encoding}`" if is_plain else "of an unusual name"

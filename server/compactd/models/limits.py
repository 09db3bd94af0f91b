"""The limits of requests to model providers."""

from __future__ import annotations

from msgspec import Struct


class ProviderLimits(Struct, frozen=True, kw_only=True):
    """The limits in the `[providers]` table of the user's config.toml, or in `COMPACTD_PROVIDERS_…`
    variables."""

    connect_s: float = 15.0
    """The maximum number of seconds until a connection exists."""
    first_byte_s: float = 600.0
    """The maximum number of seconds until the answer's status and headers arrive. It is long,
    because a local server first reads the whole prompt. OpenAI's SDKs have the same limit."""
    idle_s: float = 300.0
    """The maximum number of seconds between two pieces of the answer, including comments and pings. Codex
    has the same limit for a model that thinks."""
    total_s: float = 3600.0
    """The maximum number of seconds from the first byte sent to the last byte received."""
    body_bytes: int = 100 * 1024 * 1024
    """The maximum number of bytes of an answer, both compressed and decompressed. A longer one fails the
    request."""
    line_bytes: int = 16 * 1024 * 1024
    """The maximum number of bytes of one line or event of a stream. A longer one fails the request."""
    requests: int = 3
    """The maximum number of requests for one answer, retries included."""
    retry_s: float = 0.5
    """The delay before the first retry, in seconds. Each later delay is twice as long as the one before."""
    ask_local: bool = False
    """Whether compactd may ask model servers on this machine for their windows."""
    ask_s: float = 1.5
    """The maximum number of seconds for asking a local model server for its window."""

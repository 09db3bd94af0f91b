"""Prepare a session's next request for the provider's prompt cache: marks, and what did not change since the
request before."""

from __future__ import annotations

from hashlib import sha256

from msgspec import Raw, Struct

from compactd.core.history.entries import is_summary
from compactd.core.history.projection import Projection
from compactd.formats.messages.cache_markers import CacheMarker, mark_anthropic
from compactd.formats.messages.rendering import Rendered
from compactd.formats.messages.sent_request import common_beginning, fingerprint, first_change
from compactd.session.session import Session


class CacheState(Struct, frozen=True, kw_only=True):
    """What the provider can read from its cache."""

    stable_tokens: int
    """The estimated tokens of the beginning that is the same as in the request before."""
    stable_bytes: int
    """The bytes of that beginning: system prompt, tools and whole messages as JSON, without marks."""
    markers: tuple[CacheMarker, ...]


class PreparedRequest(Struct, frozen=True, kw_only=True):
    """A request with its marks."""

    rendered: Rendered
    system: Raw | None
    """The system prompt as a list of blocks, if it is marked."""
    cache: CacheState


def prepare_request(
    session: Session,
    format: str,
    made: Rendered,
    projection: Projection,
    *,
    fixed_tokens: int,
    marks_system: bool = False,
) -> PreparedRequest:
    """Mark a request for the provider's cache, compare it with the one before, and remember it. If the same
    request is handed out again, the result is the same again.

    `fixed_tokens` are the tokens of the system prompt and the tools. With `marks_system`, the system prompt
    is also marked, which makes it a list of blocks. No marks are set if the setting `cache` is `off`.
    O(bytes).
    """
    sent = fingerprint(made, projection.tokens + fixed_tokens)
    newest, before = session.last_sent.get(format, (None, None))
    if sent != newest:
        newest, before = sent, newest
        session.last_sent[format] = newest, before
    session.first_change = first_change(before, sent)
    same, stable_bytes, stable_tokens = common_beginning(before, sent)
    system: Raw | None = None
    markers: tuple[CacheMarker, ...] = ()
    if format == "anthropic" and session.resolved.settings.cache == "auto":
        made, system, markers = mark_anthropic(
            made,
            starts_with_summary=bool(projection.messages) and is_summary(projection.messages[0].message),
            last_sent=same,
            marks_system=marks_system,
        )
    cache = CacheState(stable_tokens=stable_tokens, stable_bytes=stable_bytes, markers=markers)
    return PreparedRequest(rendered=made, system=system, cache=cache)


def cache_key(session: Session, shape: str) -> str | None:
    """Return the key with which OpenAI sends a session's requests to the machine that has its cache
    (platform.openai.com, "Prompt caching", `prompt_cache_key`, read 2026-11). None for Chat Completions,
    which many other servers speak: some reject a field that they do not know. It is a hash, because session
    ids are the client's own."""
    if shape != "openai_responses" or session.resolved.settings.cache != "auto":
        return None
    return sha256(session.id.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""Prepare a session's next request for the provider's prompt cache: marks, and what did not change since the
request before."""

from __future__ import annotations

from hashlib import sha256

from msgspec import Raw, Struct

from compactd.core.cost.cache_rules import ONE_HOUR_S, has_breakpoints
from compactd.core.cost.lifetime import Lifetime, NextWrite, choose_lifetime
from compactd.core.cost.price import rates_of
from compactd.core.history.entries import is_summary
from compactd.core.history.projection import Projection
from compactd.formats.messages.cache_markers import CacheMarker, mark_anthropic
from compactd.formats.messages.openai_cache_markers import mark_responses
from compactd.formats.messages.rendering import Rendered
from compactd.formats.messages.sent_request import common_beginning, fingerprint, first_change
from compactd.session.cost_decision import is_cold
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


def choose_session_lifetime(session: Session) -> Lifetime:
    """Return for how long the next request is marked for Anthropic's cache, and remember it.

    The setting `cache` says it, or with `auto` the session's pauses. With `auto` it changes only after a new
    usage report, so a request that is sent again has the same marks. It stays at 5 minutes if the price of
    writes for an hour is not known. If this process has not sent a request yet, the last usage report says
    what the lifetime was. O(1).
    """
    choice, pauses = session.resolved.settings.cache, session.state.pauses
    remembered = session.cache_lifetime
    if choice == "5m" or choice == "1h":
        lifetime: Lifetime = choice
    elif remembered is not None and remembered[0] == pauses.requests:
        return remembered[1]
    else:
        lifetime = _cheaper_lifetime(
            session, _last_lifetime(session) if remembered is None else remembered[1]
        )
    session.cache_lifetime = (pauses.requests, lifetime)
    return lifetime


def _last_lifetime(session: Session) -> Lifetime:
    """Return for how long the last answered request was written to the cache."""
    return "1h" if session.bill().lifetime_s == ONE_HOUR_S else "5m"


def _cheaper_lifetime(session: Session, current: Lifetime) -> Lifetime:
    found, state = session.lookup, session.state
    pricing = None if found is None else found.pricing
    if pricing is None or pricing.cache_write is None or pricing.cache_write_1h is None:
        return "5m"
    context = session.budget_status().used
    request = NextWrite(context=context, growth=state.rhythm.growth(), is_cold=is_cold(session) is True)
    return choose_lifetime(current, state.pauses, request, rates_of(pricing, context))


def prepare_request(
    session: Session,
    format: str,
    made: Rendered,
    projection: Projection,
    *,
    fixed_tokens: int,
    lifetime: Lifetime,
    marks_system: bool = False,
) -> PreparedRequest:
    """Mark a request for the provider's cache, compare it with the one before, and remember it. If the same
    request is handed out again, the result is the same again.

    `fixed_tokens` are the tokens of the system prompt and the tools. `lifetime` is that of Anthropic's marks.
    With `marks_system`, the system prompt is also marked, which makes it a list of blocks for Anthropic, and
    the first message for OpenAI's models with breakpoints. No marks are set if the setting `cache` is `off`.
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
    first = projection.messages[0] if projection.messages else None
    has_summary = first is not None and is_summary(first.message)
    if session.resolved.settings.cache == "off":
        pass
    elif format == "anthropic":
        made, system, markers = mark_anthropic(
            made,
            starts_with_summary=has_summary,
            last_sent=same,
            lifetime=lifetime,
            marks_system=marks_system,
        )
    elif format == "openai_responses" and has_breakpoints(session.state.model.model or ""):
        # OpenAI's own summary (`instead`) is sent back as it is.
        has_summary = has_summary and first is not None and first.instead is None
        made, markers = mark_responses(made, starts_with_summary=has_summary, marks_system=marks_system)
    session.marks_system = any(marker.at == "system" for marker in markers)
    cache = CacheState(stable_tokens=stable_tokens, stable_bytes=stable_bytes, markers=markers)
    return PreparedRequest(rendered=made, system=system, cache=cache)


def cache_key(session: Session, shape: str) -> str | None:
    """Return the key with which OpenAI sends a session's requests to the machine that has its cache
    (platform.openai.com, "Prompt caching", `prompt_cache_key`, read 2026-11). None for Chat Completions,
    which many other servers speak: some reject a field that they do not know. It is a hash, because session
    ids are the client's own."""
    if shape != "openai_responses" or session.resolved.settings.cache == "off":
        return None
    return sha256(session.id.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""Decide whether signed reasoning of one model may be sent to another.

A provider rejects a signature of another one: "Invalid `signature` in `thinking` block" (400, Messages API),
"Invalid value at 'thought_signature' (TYPE_BYTES), Base64 decoding failed" (400, Gemini), "The encrypted
content for item … could not be verified" (400, Responses API). Some blocks name their provider (`opaque`, a
reasoning item). Every other block belongs to the provider of the model that the session used for that answer.
"""

from __future__ import annotations

from compactd.core.text.lazy_patterns import LazyPattern

ANTHROPIC, OPENAI, GEMINI = "anthropic", "openai", "gemini"
RESPONSES = "openai_responses"
"""The value of `Opaque.provider` for items that only OpenAI's Responses API understands."""

_OPENAIS = LazyPattern(r"(?:^|[/:.])(?:gpt-|chatgpt-|codex-|o\d)")
_CLAUDE = LazyPattern(r"claude-(?:[a-z]+-)*(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")
_GEMINI = LazyPattern(r"gemini-(\d{1,4})")


def maker(model: str | None) -> str | None:
    """Return the maker of `model` (`provider/id`, or the id alone): Anthropic, OpenAI or Gemini. For any
    other model, return the model's own name, so that a change of models is noticed. Return None for no model.
    """
    if not model:
        return None
    name = model.lower()
    if "claude" in name:
        return ANTHROPIC
    if "gemini" in name:
        return GEMINI
    return OPENAI if _OPENAIS.search(name) else name


def may_send_back(shape: str, wrote: str | None, now: str | None) -> bool:
    """Return whether signed reasoning of the model `wrote` may be sent to the model `now` in the format
    `shape`.

    An unknown model is assumed to be of the provider whose format `shape` is.
    """
    by, to = maker(wrote), maker(now)
    if by is None:
        return True
    if by in (ANTHROPIC, OPENAI, GEMINI):
        return by == shape
    return to is None or by == to


def is_same_model(wrote: str | None, now: str | None) -> bool:
    """Return whether thinking of the model `wrote` may be sent to the model `now` as its own: if both have
    the same maker, or one of them is unknown.
    """
    return wrote is None or now is None or maker(wrote) == maker(now)


def refuses_prefill(model: str | None) -> bool:
    """Return whether the model is a Claude that rejects requests ending with an assistant message: 4.6 and
    later.

    "This model does not support assistant message prefill. The conversation must end with a user message."
    (400, Messages API, seen 2026-03; "What's new in Claude 4.6", breaking changes.)
    """
    found = _CLAUDE.search(model.lower()) if model else None
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (4, 6)


def compacts_on_demand(model: str | None) -> bool:
    """Return whether the model is a Claude that has compaction on demand: 4.6 and later, but not Haiku, and
    Mythos (platform.claude.com, "Compaction on demand", supported models, read 2026-11)."""
    name = model.lower() if model else ""
    return ("claude-mythos" in name) or ("haiku" not in name and refuses_prefill(model))


def is_third_generation(model: str | None) -> bool:
    """Return whether the model is Gemini 3 or later.

    Those require the signature of a call of the current turn, and accept images in a call's result (guides to
    thought signatures and to function calling, seen 2026-11).
    """
    found = _GEMINI.search(model.lower()) if model else None
    return found is not None and int(found[1]) >= 3

"""Who signed a model's reasoning: only that provider takes it back.

A signature of another provider is refused: "Invalid `signature` in `thinking` block" (400, Messages API),
"Invalid value at 'thought_signature' (TYPE_BYTES), Base64 decoding failed" (400, Gemini), "The encrypted
content for item … could not be verified" (400, Responses API). What only one of them can have made says so
itself (`opaque`, a reasoning item); for the rest, the model that the session was on when the message came.
"""

from __future__ import annotations

import re

ANTHROPIC, OPENAI, GEMINI = "anthropic", "openai", "gemini"
RESPONSES = "openai_responses"
"""`Opaque.provider` of items that only OpenAI's Responses API understands."""

_OPENAIS = re.compile(r"(?:^|[/:.])(?:gpt-|chatgpt-|codex-|o\d)")
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)*(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")
_GEMINI = re.compile(r"gemini-(\d{1,4})")


def maker(model: str | None) -> str | None:
    """The maker of `model` (`provider/id`, or the id alone) where it is one of the three; else the model's
    own name, so that a change of models shows. None for no model."""
    if not model:
        return None
    name = model.lower()
    if "claude" in name:
        return ANTHROPIC
    if "gemini" in name:
        return GEMINI
    return OPENAI if _OPENAIS.search(name) else name


def goes_back(shape: str, wrote: str | None, now: str | None) -> bool:
    """True where what the model `wrote` signed may be sent to the model `now`, in the shape of `shape`.

    Either model may be unknown: then it is taken for one of `shape`'s own.
    """
    by, to = maker(wrote), maker(now)
    if by is None:
        return True
    if by in (ANTHROPIC, OPENAI, GEMINI):
        return by == shape
    return to is None or by == to


def is_same_model(wrote: str | None, now: str | None) -> bool:
    """True where the model `now` may read what `wrote` thought as its own; one that is unknown may."""
    return wrote is None or now is None or maker(wrote) == maker(now)


def refuses_prefill(model: str | None) -> bool:
    """True for a Claude that takes no request ending with an assistant message: from 4.6 on.

    "This model does not support assistant message prefill. The conversation must end with a user message."
    (400, Messages API, seen 2026-03; "What's new in Claude 4.6", breaking changes.)
    """
    found = _CLAUDE.search(model.lower()) if model else None
    return found is not None and (int(found[1]), int(found[2] or 0)) >= (4, 6)


def is_third_generation(model: str | None) -> bool:
    """True for Gemini 3 and later: they want the signature of a call of the current turn, and take pictures
    in a call's result (guides to thought signatures and to function calling, seen 2026-11)."""
    found = _GEMINI.search(model.lower()) if model else None
    return found is not None and int(found[1]) >= 3

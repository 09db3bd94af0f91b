"""The rules of the providers' prompt caches: how long a prefix stays, from which size, what is reported."""

from __future__ import annotations

from msgspec import Struct

ONE_HOUR_S = 3_600.0


class CacheRules(Struct, frozen=True, kw_only=True):
    """The rules of one model's prompt cache."""

    lifetime_s: float | None
    """How long a prefix stays in the cache after it was last used, if the request names no other time. None
    if the provider does not say."""
    minimum_tokens: int
    """A prefix with fewer tokens is not cached."""
    needs_marks: bool = False
    """Whether only what the request marks is cached."""
    reports_writes: bool = False
    """Whether usage reports name what was written. If not, it is part of `input_tokens`."""
    step_tokens: int = 1
    """What is read from the cache has a multiple of this many tokens."""
    keeps_head: bool = True
    """Whether system prompt and tools are still read if the messages after them changed. If not, only a whole
    earlier request is read."""
    head_needs_mark: bool = False
    """Whether `keeps_head` holds only if the request marks the end of its system prompt."""
    source: str = ""
    """Where the rules come from."""


_CLAUDE_PAGE = "platform.claude.com, 'Prompt caching'; minimums as in docs.litellm.ai and dev.to, 2026-10"
_CLAUDE_MINIMUMS = (
    ("opus-4-8", 1_024),
    ("opus-4-7", 2_048),
    ("opus-4-6", 4_096),
    ("opus-4-5", 4_096),
    ("haiku-4-5", 4_096),
    ("opus-5", 512),
    ("fable-5", 512),
    ("mythos-5", 512),
    ("3-5-haiku", 2_048),
    ("3-haiku", 2_048),
)
"""Part of a Claude model's id -> the fewest tokens that are cached. Other models: 1,024. (The same list is in
docs.litellm.ai, "Prompt caching", 2026-10-07, in dev.to/creeta, "Claude's prompt cache fails silently below
1024 tokens", 2026, and in github.com/iii-hq/workers/pull/1202; the models of generation 3 are in
docs.truefoundry.com. Vertex AI has Anthropic's rules: docs.cloud.google.com, "Prompt caching". Read 2026-11.)
"""
_CLAUDE_USUAL = 1_024
_BEDROCK = frozenset(("amazon-bedrock", "bedrock"))
_BEDROCK_MINIMUMS = {"opus-4-7": 4_096}
"""Where Bedrock's minimum is not Anthropic's (docs.litellm.ai, "Prompt caching", 2026-10-07)."""

_OPENAI_PAGE = "developers.openai.com, 'Prompt caching', read 2026-11"
_OPENAI_NAMES = ("gpt-", "chatgpt-", "codex-", "o1", "o3", "o4")
_OPENAI_STEP = 128
"""OpenAI reads in steps of 128 tokens (platform.openai.com, "Prompt caching", 2025). The page of 2026 no
longer says so."""
_OPENAI_LIFETIME_S = 1_800.0
"""From GPT-5.6 on, a prefix stays for exactly 30 minutes. Earlier models keep it for "5 to 10 minutes of
inactivity", at most an hour, or up to 24 hours, depending on model and request: no time to rely on."""


def cache_rules(provider: str | None, model: str) -> CacheRules | None:
    """Return the rules for a model, by its maker's name or the provider that serves it; None if they are not
    known. `provider` is spelled as in the registry. O(1).
    """
    name = model.rpartition("/")[2].lower().replace(".", "-")
    if "claude" in name or provider == "anthropic":
        return _claude(provider, name)
    if provider in _BEDROCK:
        return _bedrock(name)
    if provider in ("openai", "azure") or name.startswith(_OPENAI_NAMES):
        return _openai(name)
    if provider in ("google", "google-vertex") or name.startswith("gemini"):
        # Implicit caching: Gemini 2.5 needs 2,048 tokens, later models 4,096.
        return CacheRules(
            lifetime_s=None,
            minimum_tokens=2_048 if name.startswith("gemini-2") else 4_096,
            source="ai.google.dev, 'Context caching', of 2026-10-13",
        )
    if provider == "deepseek" or name.startswith("deepseek"):
        # Only a whole earlier request is read, not any common beginning; the page names no minimum.
        return CacheRules(
            lifetime_s=None,
            minimum_tokens=64,
            step_tokens=64,
            keeps_head=False,
            source="api-docs.deepseek.com, 'Context Caching', read 2026-11; 64: its version of 2025",
        )
    return None


def _claude(provider: str | None, name: str) -> CacheRules:
    part, minimum = next((row for row in _CLAUDE_MINIMUMS if row[0] in name), ("", _CLAUDE_USUAL))
    if provider in _BEDROCK:
        minimum = _BEDROCK_MINIMUMS.get(part, minimum)
    return CacheRules(
        lifetime_s=300.0,
        minimum_tokens=minimum,
        needs_marks=True,
        # Every host names them: Bedrock `cacheWriteInputTokens`, OpenRouter `cache_write_tokens`, the others
        # Anthropic's own field.
        reports_writes=True,
        source=_CLAUDE_PAGE,
    )


def _bedrock(name: str) -> CacheRules | None:
    """Return the rules of Amazon's own models; None for the other models that Bedrock serves."""
    if "nova" not in name:
        return None
    return CacheRules(
        lifetime_s=300.0,
        minimum_tokens=1_000,
        needs_marks=True,
        reports_writes=True,
        source="docs.aws.amazon.com, 'Prompt caching', as in portkey.ai/docs, read 2026-11",
    )


def _openai(name: str) -> CacheRules:
    if has_breakpoints(name):
        return CacheRules(
            lifetime_s=_OPENAI_LIFETIME_S,
            minimum_tokens=1_024,
            reports_writes=True,
            # Without breakpoints in the request, there is one: at its newest message (codex#35300).
            head_needs_mark=True,
            source=_OPENAI_PAGE,
        )
    return CacheRules(lifetime_s=None, minimum_tokens=1_024, step_tokens=_OPENAI_STEP, source=_OPENAI_PAGE)


def has_breakpoints(model: str) -> bool:
    """Return whether this is OpenAI's GPT-5.6 or a later one, with or without the provider before its name.
    From there on, OpenAI bills writes, takes breakpoints in requests, and reads only up to one of them. Other
    models reject them. O(1)."""
    name = model.rpartition("/")[2].lower().replace(".", "-")
    version = name.removeprefix("chatgpt-").removeprefix("gpt-").split("-")
    if not name.startswith(("gpt-", "chatgpt-")) or not version[0].isdecimal():
        return False
    minor = version[1] if len(version) > 1 and version[1].isdecimal() and len(version[1]) <= 2 else "0"
    return (int(version[0]), int(minor)) >= (5, 6)

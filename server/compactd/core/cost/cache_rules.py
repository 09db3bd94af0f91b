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
    source: str = ""
    """Where the rules come from."""


_ANTHROPIC_PAGE = "platform.claude.com, 'Prompt caching', read 2026-11"
_ANTHROPIC_MINIMUMS = (
    ("opus-4-8", 1_024),
    ("opus-4-7", 2_048),
    ("opus-4-6", 4_096),
    ("opus-4-5", 4_096),
    ("haiku-4-5", 4_096),
    ("opus-5", 512),
    ("fable-5", 512),
    ("mythos-5", 512),
    ("haiku-3", 2_048),
    ("3-5-haiku", 2_048),
    ("3-haiku", 2_048),
)
"""Part of a model's id -> the fewest tokens that are cached (github.com/iii-hq/workers/pull/1202 quotes the
page, 2026-11). Other models: 1,024."""
_ANTHROPIC_USUAL = 1_024
_CLAUDE_HOSTS = frozenset(("anthropic", "amazon-bedrock", "google-vertex-anthropic"))


def cache_rules(provider: str | None, model: str) -> CacheRules | None:
    """Return the rules for a model, by its maker's name or the provider that serves it; None if they are not
    known. `provider` is spelled as in the registry. O(1).
    """
    name = model.rpartition("/")[2].lower().replace(".", "-")
    if "claude" in name or provider == "anthropic":
        minimum = next((tokens for part, tokens in _ANTHROPIC_MINIMUMS if part in name), _ANTHROPIC_USUAL)
        return CacheRules(
            lifetime_s=300.0,
            minimum_tokens=minimum,
            needs_marks=True,
            reports_writes=provider is None or provider in _CLAUDE_HOSTS,
            source=_ANTHROPIC_PAGE,
        )
    if provider in ("openai", "azure") or name.startswith(("gpt-", "o1", "o3", "o4", "codex")):
        # An unused prefix is removed after 5 to 10 minutes, at the latest after an hour.
        return CacheRules(
            lifetime_s=None,
            minimum_tokens=1_024,
            source="platform.openai.com, 'Prompt caching', read 2026-11",
        )
    if provider in ("google", "google-vertex") or name.startswith("gemini"):
        return CacheRules(
            lifetime_s=None,
            minimum_tokens=4_096 if name.startswith("gemini-3") else 2_048,
            source="ai.google.dev, 'Context caching', read 2026-11",
        )
    if provider == "deepseek" or name.startswith("deepseek"):
        return CacheRules(
            lifetime_s=None,
            minimum_tokens=64,
            source="api-docs.deepseek.com, 'Context Caching', read 2026-11",
        )
    return None

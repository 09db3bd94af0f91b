"""Short names of models that agents accept, and the newest model of a family.

- Claude Code: `opus`, `sonnet`, `haiku` and `fable` mean the newest model of that name. `opusplan` means opus
  for planning and sonnet otherwise. `[1m]` after a name selects a window of a million tokens
  (docs.claude.com/docs/claude-code/model-config; docs.rs/claude-codes 2.1.311, `ClaudeModel`; both read
  2026-11). The aliases `default` and `best` depend on the account, so they are not here. Bedrock and Vertex
  may serve an older model under an alias.
- Gemini CLI: `pro`, `flash` and `flash-lite` (google-gemini/gemini-cli, packages/core/src/config/models.ts,
  read 2026-11). `auto` chooses a model for each request, so it is not here.

The registry has no dates of release. The newest model is the one with the highest version in its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_VERSION = r"(\d{1,2}(?:-\d)?)"
"""A pattern for a version. The second number has one digit: `grok-4.20` is older than `grok-4.7`."""

ALIASES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "opus": ("anthropic", (f"claude-opus-{_VERSION}",)),
    "sonnet": ("anthropic", (f"claude-sonnet-{_VERSION}",)),
    "haiku": ("anthropic", (f"claude-haiku-{_VERSION}",)),
    "fable": ("anthropic", (f"claude-fable-{_VERSION}",)),
    "opusplan": ("anthropic", (f"claude-sonnet-{_VERSION}", f"claude-opus-{_VERSION}")),
    "pro": ("google", (f"gemini-{_VERSION}-pro(?:-preview)?",)),
    "flash": ("google", (f"gemini-{_VERSION}-flash(?:-preview)?",)),
    "flash-lite": ("google", (f"gemini-{_VERSION}-flash-lite(?:-preview)?",)),
}
"""Alias -> (the maker, a pattern for the keys of each family that it may mean)."""

CURRENT: tuple[tuple[str, str], ...] = (
    ("anthropic", f"claude-opus-{_VERSION}"),
    ("anthropic", f"claude-sonnet-{_VERSION}"),
    ("anthropic", f"claude-haiku-{_VERSION}"),
    ("openai", f"gpt-{_VERSION}(?:-sol)?"),
    ("openai", f"gpt-{_VERSION}-(?:mini|terra)"),
    ("openai", f"gpt-{_VERSION}-codex"),
    ("google", f"gemini-{_VERSION}-pro(?:-preview)?"),
    ("google", f"gemini-{_VERSION}-flash(?:-preview)?"),
    ("xai", f"grok-{_VERSION}"),
    ("deepseek", f"deepseek-v{_VERSION}-pro"),
    ("mistral", f"mistral-large-{_VERSION}"),
    ("moonshotai", f"kimi-k{_VERSION}"),
    ("zai", f"glm-{_VERSION}"),
)
"""(provider, pattern for the keys of a family) of the models that `compactd models` lists."""


def newest(keys: Iterable[str], family: str) -> str | None:
    """Return the key with the highest version that matches the pattern `family`; None if none does. Of keys
    with the same version, the shortest counts. O(keys).
    """
    matches = ((key, match) for key in keys if (match := re.fullmatch(family, key)) is not None)
    found = [(_version(match[1]), -len(key), key) for key, match in matches]
    return max(found)[2] if found else None


def _version(text: str) -> tuple[int, int]:
    whole, _, part = text.partition("-")
    return int(whole), int(part or 0)

"""The model registry: packaged rows, the user's models.toml, and a cache of answers.

Nothing is read before the first lookup. If a user's file cannot be read, lookups still work with the packaged
rows, and `warnings` names the file.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from compactd.core.models.registry import Lookup, ModelRow, Registry, Tried

REMEMBERED = 256
"""The maximum number of answers in the cache."""

MAX_NAME_CHARS = 1024
"""The maximum length, in characters, of a question: model, provider and base URL together. The answer to a
longer question is not cached."""


class Catalogue:
    """The registry behind `models/lookup` and `models/list`. Thread-safe.

    `user_file` is the user's models.toml, which need not exist:

        [[model]]
        match = "qwen3-coder*"      # an id, provider/id, or either with *
        provider = "ollama"         # optional: only for this provider
        context = 32768             # tokens; also input, output

    The first lookup takes about 25 ms. Each file is read once. If the hash of the packaged file is wrong, its
    rows are not used: `warnings` says so, and windows that models.toml does not set are guesses.
    """

    def __init__(self, user_file: Path | None = None) -> None:
        self._user_file = user_file
        self._lock = Lock()
        self._registry: Registry | None = None
        self._answers: dict[tuple[str, str | None, str | None], Lookup] = {}
        self._warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user about files that could not be used. Empty before the first lookup."""
        return self._warnings

    def lookup(self, model: str, provider: str | None = None, base_url: str | None = None) -> Lookup:
        """Return what is known about `model`. For an unknown model the answer is a guess of 128,000
        tokens, never an error."""
        asked = (model, provider, base_url)
        if sum(len(part) for part in asked if part) > MAX_NAME_CHARS:
            with self._lock:
                return self._open().lookup(model, provider, base_url)
        # Without the lock, because the event loop must not wait for a worker that builds an index.
        known = self._answers.get(asked)
        if known is not None:
            return known
        with self._lock:
            answer = self._open().lookup(model, provider, base_url)
            if len(self._answers) >= REMEMBERED:
                del self._answers[next(iter(self._answers))]
            self._answers[asked] = answer
            return answer

    def explain(
        self, model: str, provider: str | None = None, base_url: str | None = None
    ) -> tuple[Tried, ...]:
        """Return the steps by which `lookup` finds its answer. The result is not cached."""
        with self._lock:
            return self._open().explain(model, provider, base_url)

    def nearest(self, model: str) -> tuple[str, ...]:
        """Return known models whose names are similar to the unknown name `model`. Takes up to 0.1 s, so
        call it in a worker."""
        with self._lock:
            return self._open().nearest(model)

    def rows(self, provider: str | None = None) -> tuple[ModelRow, ...]:
        """Return the packaged rows, or only those of `provider`, sorted by provider and id."""
        with self._lock:
            return self._open().rows(provider)

    def _open(self) -> Registry:
        """Return the registry. Read its files at the first call. The caller has the lock."""
        if self._registry is None:
            from compactd.core.models.registry import Registry
            from compactd.models.registry_files import read_overrides, read_packaged

            rows, damage = read_packaged()
            overrides, mistakes = read_overrides(self._user_file)
            self._warnings = (*damage, *mistakes)
            self._registry = Registry(rows, overrides)
        return self._registry

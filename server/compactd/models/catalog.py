"""The model registry as files: the packaged rows, the user's models.toml, and the answers remembered.

Nothing is read before the first question. A user's file that cannot be read never stops a lookup: it is
named in `warnings`, and the packaged rows answer.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from compactd.core.models.registry import Lookup, Registry, Row, Tried

REMEMBERED = 256
"""Answers kept: the models that one process asks for."""

LONGEST = 1024
"""Characters of a question whose answer is kept."""


class Catalogue:
    """Answers `models/lookup` and `models/list`. Safe in any thread.

    `user_file` is the user's models.toml, which need not exist:

        [[model]]
        match = "qwen3-coder*"      # an id, provider/id, or either with *
        provider = "ollama"         # only there; may be left out
        context = 32768             # tokens; also input, output

    The first question takes about 25 ms; each file is read once. The packaged rows are checked by their hash:
    a damaged file is named in `warnings`, and every answer is a guess."""

    def __init__(self, user_file: Path | None = None) -> None:
        self._user_file = user_file
        self._lock = Lock()
        self._registry: Registry | None = None
        self._answers: dict[tuple[str, str | None, str | None], Lookup] = {}
        self._warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the files could not be used, for people to read. Empty before the first question."""
        return self._warnings

    def lookup(self, model: str, provider: str | None = None, base_url: str | None = None) -> Lookup:
        """What is known of `model`; a guess of 128000 for one that nobody knows, never an error."""
        asked = (model, provider, base_url)
        if sum(len(part) for part in asked if part) > LONGEST:
            with self._lock:
                return self._opened().lookup(model, provider, base_url)
        # Without the lock: the loop must not wait for a worker that makes an index.
        known = self._answers.get(asked)
        if known is not None:
            return known
        with self._lock:
            answer = self._opened().lookup(model, provider, base_url)
            if len(self._answers) >= REMEMBERED:
                del self._answers[next(iter(self._answers))]
            self._answers[asked] = answer
            return answer

    def explain(
        self, model: str, provider: str | None = None, base_url: str | None = None
    ) -> tuple[Tried, ...]:
        """How `lookup` comes to its answer, step by step. Not kept."""
        with self._lock:
            return self._opened().explain(model, provider, base_url)

    def nearest(self, model: str) -> tuple[str, ...]:
        """Known models whose names are most like one that is not known. Up to 0.1 s: for a worker."""
        with self._lock:
            return self._opened().nearest(model)

    def rows(self, provider: str | None = None) -> tuple[Row, ...]:
        """The packaged rows, or those of one provider, sorted by provider and id."""
        with self._lock:
            return self._opened().rows(provider)

    def _opened(self) -> Registry:
        if self._registry is None:
            from compactd.core.models.registry import Registry
            from compactd.models.files import read_overrides, read_packaged

            rows, damage = read_packaged()
            overrides, mistakes = read_overrides(self._user_file)
            self._warnings = (*damage, *mistakes)
            self._registry = Registry(rows, overrides)
        return self._registry

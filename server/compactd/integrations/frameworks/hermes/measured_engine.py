"""How full a conversation of Hermes is, as far as Hermes tells its context engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent.context_engine import ContextEngine

from compactd.client import Json
from compactd.integrations.frameworks.engine import SessionOptions, engine_of
from compactd.integrations.frameworks.hermes import refusals
from compactd.integrations.frameworks.mirror import Mirror
from compactd.protocol.messages import CompactionResult

DEFAULT_RATIO: Final = 0.8
"""The share of the window at which compactd compacts by default."""
MAX_USAGES: Final = 1_000
"""The most reports of the provider that wait for their messages."""
RATIOS: Final = (0.5, 2.0)
"""The range in which the provider's count ÷ Hermes' estimate is believed."""
EARLY: Final = 0.5
"""The share of the threshold at which the daemon is started, so that the first compaction does not wait."""


class MeasuredEngine(ContextEngine):  # type: ignore[misc]  # Hermes has no types
    """Decides when a conversation is due to be compacted. It holds options and numbers only."""

    def __init__(self, options: SessionOptions, command: Sequence[str] | None) -> None:
        self.options = options
        self.command = None if command is None else tuple(command)
        ratio = (options.compaction or {}).get("threshold_ratio")
        self.threshold_percent = float(ratio) if isinstance(ratio, int | float) else DEFAULT_RATIO
        self._id = "unnamed"
        """Hermes' id of the conversation."""
        self._model: str | None = None
        self._learned: int | None = None
        """The window that a refused request showed."""
        self._believed: int | None = None
        """The window when the last request was about to be sent."""
        self._usages: list[dict[str, Json]] = []
        """The provider's reports that the session does not have yet."""
        self._is_waiting = False
        """True after a compaction, until a request was answered."""
        self._reported = 0
        self._estimated = 0
        """The size of the last request, as the provider and as Hermes counted it."""
        self._ratio = 1.0

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: Any = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Note the model and its window. Keys are not kept."""
        self._model = f"{provider}/{model}" if provider and model else model or None
        self.context_length = context_length
        self._learned = None
        self._set_threshold()

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """Note the provider's report on a request. It is billed when the conversation is next sent."""
        prompt = _count(usage, "prompt_tokens")
        self.last_prompt_tokens = prompt
        self.last_completion_tokens = _count(usage, "completion_tokens")
        self.last_total_tokens = _count(usage, "total_tokens")
        self._is_waiting = False
        refusals.take(self._id)
        if not prompt:
            return
        self._reported = prompt
        if self._estimated:
            self._ratio = min(max(prompt / self._estimated, RATIOS[0]), RATIOS[1])
        self._usages = [*self._usages[1 - MAX_USAGES :], _usage(usage)]
        if self.threshold_tokens and prompt >= EARLY * self.threshold_tokens:
            engine_of(self.command).start_soon()

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Return whether a request of `prompt_tokens` is due to be compacted. Hermes' own estimates are
        corrected by what the provider reported. O(1), asks nobody.
        """
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        if tokens != self._reported:
            self._estimated = tokens
            tokens = int(tokens * self._ratio)
        self._believed = self._window()
        return not self._is_waiting and 0 < self.threshold_tokens <= tokens

    def _window(self) -> int | None:
        known = (self.context_length, self.options.context_window, self._learned)
        return min((window for window in known if window), default=None)

    def _set_threshold(self) -> None:
        given = self.options.compaction or {}
        window = self._window() or 0
        reserve = given.get("reserve_tokens")
        self.threshold_tokens = int(self.threshold_percent * window)
        if isinstance(reserve, int) and "threshold_ratio" not in given:
            self.threshold_tokens = max(0, window - reserve)
        if given.get("enabled") is False:
            self.threshold_tokens = 0

    def _forget_numbers(self) -> None:
        self._usages, self._is_waiting = [], False
        self._believed, self._reported, self._estimated, self._ratio = None, 0, 0, 1.0

    def _learn_window(self, mirror: Mirror, done: CompactionResult | None) -> None:
        """Use the window that the provider named when it refused a request, otherwise the request's size."""
        window = mirror.state().token_usage.context_window
        if done is not None and done.compacted and not (window and window < (self._believed or 0)):
            # The request was larger than the last one that was answered.
            window = max(done.tokens_before, self._reported)
        if window and window < (self._window() or window + 1):
            self._learned = window
            self._set_threshold()


def _count(usage: Mapping[str, Any], key: str) -> int:
    count = usage.get(key)
    return count if isinstance(count, int) and count > 0 else 0


def _usage(usage: Mapping[str, Any]) -> dict[str, Json]:
    """Return a report in Anthropic's form, which counts the cached input apart."""
    read, written = _count(usage, "cache_read_tokens"), _count(usage, "cache_write_tokens")
    return {
        "input_tokens": max(0, _count(usage, "prompt_tokens") - read - written),
        "output_tokens": _count(usage, "output_tokens") or _count(usage, "completion_tokens"),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }

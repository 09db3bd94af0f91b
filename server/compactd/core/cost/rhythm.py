"""How fast a session's context grows: the counters from which the policy predicts the next requests.

They are updated in O(1) by each usage report and each change of the view, so a decision costs O(1) too.
"""

from __future__ import annotations


class Rhythm:
    """The requests of a session and the growth of its context. Sizes are tokens."""

    def __init__(self) -> None:
        self.requests = 0
        """How many requests there have been."""
        self.grown = 0
        """By how much the requests have grown, all together, without what compactions removed."""
        self.left: int | None = None
        """The estimated size of the request after the last compaction, undo, redo or branch; None if there
        was none."""
        self.last_at: float | None = None
        """When the last request was answered, in seconds since 1970; None if there was none."""
        self.is_other_model = False
        """Whether the model has changed since the last request, so that its cache contains nothing yet."""
        self._last: int | None = None

    def note_request(self, size: int, at: float | None = None) -> None:
        """Count a request of `size` tokens that was answered at `at`. O(1)."""
        self.requests += 1
        if self._last is not None:
            self.grown += max(0, size - self._last)
        self._last, self.last_at, self.is_other_model = size, at, False

    def note_prune(self) -> None:
        """Note that tool results were shortened, so the next request is no measure of the growth. O(1)."""
        self._last = None

    def note_change(self, size: int) -> None:
        """Note a compaction, undo, redo or branch, which left an estimated request of `size` tokens. O(1)."""
        self._last, self.left = None, size

    def note_model(self) -> None:
        """Note that another model answers from now on. O(1)."""
        self._last, self.is_other_model = None, self.requests > 0

    def growth(self) -> float:
        """Return how many tokens a request adds on average, at least 1."""
        return max(1.0, self.grown / max(1, self.requests))

    def gap_s(self, now: float) -> float | None:
        """Return the seconds since the last request; None if there was none, or if the clock went back."""
        if self.last_at is None or now < self.last_at:
            return None
        return now - self.last_at

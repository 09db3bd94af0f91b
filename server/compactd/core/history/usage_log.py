"""The usage reports of a session in order, and what changed in the context between them.

`SessionState` adds to this log while it folds the journal's entries, O(1) for each. What the requests cost is
not part of it, because that depends on prices, which the journal does not have (`session/ledger.py`).
"""

from __future__ import annotations

from msgspec import Struct

from compactd.core.cost.ledger import Change
from compactd.core.history.entries import Compacted, CompactionEnded, ModelSet, Pruned, UsageReported
from compactd.protocol.messages import Usage

_OTHER_MODEL: frozenset[Change] = frozenset(("model",))


class LoggedRequest(Struct, frozen=True, kw_only=True):
    """A request that has a usage report."""

    report: UsageReported
    model: str | None
    """The model that was asked."""
    base_url: str | None
    changes: frozenset[Change]
    """What changed since the request before, other than that messages were added."""


class LoggedSummary(Struct, frozen=True, kw_only=True):
    """The requests for the summary of one compaction."""

    usage: Usage
    model: str | None
    """The model that was asked; None if the journal does not say."""
    cost: float | None
    """What they cost, in US dollars, by the prices of that time; None if no price was known."""


class UsageLog:
    """The requests and summaries of a session, oldest first."""

    def __init__(self) -> None:
        self.items: list[LoggedRequest | LoggedSummary] = []
        self._changes: list[tuple[int, Change]] = []
        """(the first epoch of whose context the change is a part, the change) since the last report."""
        self._last: LoggedRequest | None = None
        """The last request of the conversation."""
        self._models: tuple[ModelSet, ModelSet] | None = None
        """The model before the last change of model, and the model since."""

    def note(self, change: Change, epoch: int) -> None:
        """Record a change. Requests are the first to have it if their context is of this epoch or later."""
        self._changes.append((epoch, change))

    def note_model(self, before: ModelSet, now: ModelSet) -> None:
        """Record a change of the model."""
        if (before.model, before.base_url) != (now.model, now.base_url):
            self._models = (before, now)

    def pending(self, epoch: int) -> frozenset[Change]:
        """Return what changed since the last report in the context of this epoch, except the model."""
        return frozenset(change for first, change in self._changes if first <= epoch)

    def request_of(self, report: UsageReported, model: ModelSet) -> LoggedRequest:
        """Return the request that `add` would add. `model` is the session's model."""
        if self._models is not None and report.epoch < self._models[1].epoch:
            model = self._models[0]  # the request was sent before the model changed
        name, base_url = report.model or model.model, None if report.model else model.base_url
        changes = self.pending(report.epoch)
        if self._last is not None and (self._last.model, self._last.base_url) != (name, base_url):
            changes |= _OTHER_MODEL
        return LoggedRequest(report=report, model=name, base_url=base_url, changes=changes)

    def add(self, report: UsageReported, model: ModelSet) -> None:
        """Add the request of a usage report. O(changes since the report before)."""
        request = self.request_of(report, model)
        self.items.append(request)
        if report.is_side:
            return
        self._last = request
        self._changes = [one for one in self._changes if one[0] > report.epoch]

    def add_step(self, entry: Compacted | Pruned) -> None:
        """Add the change by a compaction or prune, and what its summary took."""
        self.note("compaction" if isinstance(entry, Compacted) else "prune", entry.epoch)
        if isinstance(entry, Pruned):
            self.add_summary(entry.summary_usage, entry.summary_model, entry.summary_cost)
            return
        result = entry.result
        self.add_summary(
            result.usage if isinstance(result.usage, Usage) else None,
            result.model if isinstance(result.model, str) else entry.summary_model,
            result.cost if isinstance(result.cost, float) else None,
        )

    def add_ended(self, entry: CompactionEnded) -> None:
        """Add what the summary of a compaction took that did not take place."""
        self.add_summary(entry.summary_usage, entry.summary_model, entry.summary_cost)

    def add_summary(self, usage: Usage | None, model: str | None, cost: float | None) -> None:
        """Add what a summary took; nothing if no model was asked."""
        if usage is not None:
            self.items.append(LoggedSummary(usage=usage, model=model, cost=cost))

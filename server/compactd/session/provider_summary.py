"""Choose the summary that a session's next request contains: compactd's, or the provider's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compactd.core.history.entries import Item
from compactd.core.history.projection import Projection
from compactd.formats.messages.provider_summary import choose_summary
from compactd.session.session import Session

ChooseSummary = Callable[[Projection, Sequence[Item]], Projection]
"""A function from the projection of a view's items, and these items, to the projection with the provider's
own summary, if the request may contain it."""


def summary_chooser(session: Session, format: str) -> ChooseSummary:
    """Return the function for requests to the session's model in this format, as the session is now. It may
    be called in a worker."""
    own, refused = session.state.model, frozenset(session.refused_summaries)

    def choose(projection: Projection, items: Sequence[Item]) -> Projection:
        if items and items[0].entry_id in refused:
            return projection
        return choose_summary(projection, items, format, own.model, own.base_url)

    return choose


def refuse_summary(session: Session) -> bool:
    """Note that the provider refused its own summary in the current view, so that later requests contain
    compactd's. Return false if the view has none, or if it was already noted. It is not journalled: after a
    restart, the provider is tried again."""
    first = next(iter(session.state.items), None)
    if first is None or first.provider is None or first.entry_id in session.refused_summaries:
        return False
    session.refused_summaries.add(first.entry_id)
    return True

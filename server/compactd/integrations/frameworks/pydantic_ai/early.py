"""A turn that is sent to the daemon while the framework makes the next request.

When the next request begins, its messages are known, unless another capability changes them. If they are
others after all, nothing is lost: the mirror notices it, and sends no further turn early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pydantic_ai import messages as pai

from compactd.integrations.frameworks.history import Setup
from compactd.integrations.frameworks.mirror import Mirror
from compactd.integrations.frameworks.pydantic_ai.messages import Units, continued


@dataclass
class _Request:
    """The last request of a conversation."""

    units: Units
    setup: Setup


_last: WeakKeyDictionary[Mirror, _Request] = WeakKeyDictionary()


def note(mirror: Mirror, messages: Sequence[pai.ModelMessage], units: Units, setup: Setup) -> None:
    """Note the last request of a conversation, and its messages when it began."""
    if len(messages) == len(units.messages):
        _last[mirror] = _Request(Units(tuple(messages), units.places, units.keys), setup)


def forget(mirror: Mirror) -> None:
    """Forget the last request, at the end of a run."""
    _last.pop(mirror, None)


def send(mirror: Mirror, messages: Sequence[pai.ModelMessage]) -> None:
    """Send what the history `messages` has in addition to that of the last request. Waits for nothing.
    O(messages) comparisons.
    """
    last = _last.get(mirror)
    units = None if last is None else continued(last.units, messages)
    if last is not None and units is not None:
        mirror.send_early(units.history(), last.setup, may_wait=False)

"""Which sessions are put aside: nothing is fitted or tuned on them, and they are reported by themselves.

The side of a session is the first byte of SHA-256 of its group's name: no seed, the same on every machine,
and for sessions that come later. Parts of one recording (`name-0`, `name-12`) are one group.
"""

from __future__ import annotations

import hashlib
import re

_PART = re.compile(r"-\d{1,3}\Z")


def group_of(name: str) -> str:
    """The recording that a session is a part of."""
    return _PART.sub("", name)


def source_of(name: str) -> str:
    """Who recorded it: an atom that three of them share says nothing of a session."""
    return "entire" if name.startswith("entire") else name.partition("-")[0]


def is_aside(name: str) -> bool:
    """Whether the session `name` may be measured only: about a third of them."""
    return hashlib.sha256(group_of(name).encode()).digest()[0] % 3 == 0

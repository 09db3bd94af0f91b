"""Which sessions are held out: nothing is fitted or tuned on them, and they are reported separately.

The first byte of the SHA-256 of a group's name decides. So there is no seed, the choice is the same on every
machine, and it covers sessions that are added later. Parts of one recording (`name-0`, `name-12`) are one
group.
"""

from __future__ import annotations

import hashlib
import re

_PART = re.compile(r"-\d{1,3}\Z")


def group_of(name: str) -> str:
    """Return the name of the recording that a session is a part of."""
    return _PART.sub("", name)


def source_of(name: str) -> str:
    """Return who recorded a session. An atom that occurs in three sources is too common to be a probe."""
    return "entire" if name.startswith("entire") else name.partition("-")[0]


def is_aside(name: str) -> bool:
    """Return whether the session `name` is held out, as about a third of all sessions are."""
    return hashlib.sha256(group_of(name).encode()).digest()[0] % 3 == 0

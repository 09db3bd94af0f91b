"""The rows in which compactd is not the fastest, each with the reason that a profile shows.

Profiles: cProfile over the row's run in `drivers/compactd_side.py`, a session of 300k tokens, 2026-11-22.
"""

from __future__ import annotations

BEHIND = {
    "count": (
        "Nearly all of the time is tiktoken's encoding, in one thread per core. On one core, rs-bpe is "
        "faster, because it counts without making the tokens."
    ),
    "estimate": (
        "compactd estimates block by block. A fifth of the time is spent on decoding each call's "
        "arguments and writing them as compact JSON, so that white space does not change the estimate. A "
        "session does this once per message, at its append."
    ),
    "cut": (
        "Most of the work is to copy the stored data of the messages, so that a worker thread can search in "
        "it for the cut while the session continues."
    ),
    "plan": (
        "Of 0.11 ms at 100k tokens, 43 % is the smallest summary with the user's constraints, 15 % the "
        "plan's own lists, 12 % the state of the session, 8 % copying the kept data of the messages, 6 % "
        "the cut."
    ),
    "trim": (
        "More than half of the time is spent on the list of the files that the removed messages read and "
        "changed: each call's arguments are decoded. The rest is the note itself: the user's rules, and its "
        "tokens, counted exactly. The others drop messages without reading them."
    ),
    "compact": (
        "Most of the time is spent on reading the removed messages line by line for what is needed again. "
        "A session reads each message once, in idle time after its append; this benchmark reads it again "
        "in every run."
    ),
    "memory": (
        "A session keeps data that makes it fast: counts, positions, and the bytes of its messages in "
        "addition to the decoded ones."
    ),
}
"""The reason, by the key of the row."""

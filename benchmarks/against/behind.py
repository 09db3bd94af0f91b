"""Why compactd is not the first of a row, where that is so: what a profile says its time goes to.

Profiles: cProfile over the row's run in `drivers/compactd_side.py`, a session of 300k tokens, 2026-11-22.
"""

from __future__ import annotations

BEHIND = {
    "count": "92 % of it is tiktoken's `encode_ordinary`, in one thread; it hands over a list of the tokens, "
    "of which only the length is wanted. rs-bpe counts without making them.",
    "estimate": "Block by block, with each call's arguments decoded and written as compact JSON, so that "
    "white space changes no count: a fifth of it. A session does this once for each message, at its append, "
    "and never again.",
    "cut": "Which cuts are safe is found out for all of the messages each time: two thirds is the pairing of "
    "calls with their results. The walk itself ends after the tokens that stay.",
    "plan": "Five passes over the messages of the view: what is sent (27 %), the pairs (19 %), the size of "
    "each (14 %), which calls belong together (11 %), which cuts are safe (7 %). Nothing of them is kept "
    "from one plan to the next.",
    "trim": "95 % of it is reading what goes for what the agent uses again, which a note without a model "
    "still names. The others drop without reading; a session reads each message once.",
    "compact": "65 % of it is reading what goes, line by line, for what is needed again. A session reads "
    "each message once: here it is read anew in every run.",
    "memory": "A session keeps what makes it quick: counts, places, the bytes of its messages beside those "
    "that were looked at.",
}
"""By the key of the row."""

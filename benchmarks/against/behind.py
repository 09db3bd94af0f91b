"""Why compactd is not the first of a row, where that is so: what a profile says its time goes to.

Profiles: cProfile over the row's run in `drivers/compactd_side.py`, a session of 300k tokens, 2026-11-22.
"""

from __future__ import annotations

BEHIND = {
    "count": "Nearly all of it is tiktoken's encoding, in a thread on each core. On one core rs-bpe, which "
    "counts without making the tokens, is the quicker.",
    "estimate": "Block by block, with each call's arguments decoded and written as compact JSON, so that "
    "white space changes no count: a fifth of it. A session does this once for each message, at its append, "
    "and never again.",
    "cut": "What is kept of the messages is copied, so that a worker may read it while the session goes on; "
    "the walk and the move are searches in it.",
    "plan": "Of 0.11 ms at 100k tokens 43 % is the smallest summary with the user's constraints, 15 % the "
    "plan's own lists, 12 % where the session stands, 8 % copying what is kept of the messages, 6 % the cut.",
    "trim": "Most of it is reading what goes for what the agent uses again, which a note without a model "
    "still names. The others drop without reading. A session reads each message once, in idle moments behind "
    "its append: with that done, half is asking whether a name stands in what is kept, a fifth the facts.",
    "compact": "Most of it is reading what goes, line by line, for what is needed again: read anew in every "
    "run here. A session reads each message once, in idle moments behind its append.",
    "memory": "A session keeps what makes it quick: counts, places, the bytes of its messages beside those "
    "that were looked at.",
}
"""By the key of the row."""

"""The app of `compactd chat`: a conversation, and its context beside it, in a terminal. On textual.

`talk.py` is the session behind it, `pieces.py`, `filling.py` and `asked.py` are values; the rest is what is
seen. Nothing here is loaded where the chat goes line by line.
"""

from __future__ import annotations

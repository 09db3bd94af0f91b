"""The full-screen app of `compactd chat`: the conversation and a panel with its context. Built on textual.

`chat_session.py` is the session in the daemon; `pieces.py`, `usage_chart.py` and `input.py` compute values;
most other modules are widgets. Of this package, only `start.py` is imported when the chat reads prompts line
by line.
"""

from __future__ import annotations

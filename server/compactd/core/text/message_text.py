"""Read the text of a message: its text blocks, joined."""

from __future__ import annotations

from collections.abc import Iterable

from compactd.protocol.messages import Text


def join_text_blocks(blocks: Iterable[object], separator: str = "\n") -> str:
    """Return the texts of the text blocks in `blocks`, joined by `separator`. Other blocks add nothing:
    `tool_results.text_of_result` names them, and `whole_names.written_texts` yields the texts in them too.
    """
    return separator.join([block.text for block in blocks if isinstance(block, Text)])

"""Compact a session as a whole, with the strategy `extract`, and print the summaries as JSON.

`python benchmarks/reading/summaries.py FILE TOKENS...` prints {"4000": "text", ...}. It uses the compactd and
the benchmarks on PYTHONPATH, so that it can also run the code of another checkout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.retention.ours import MODEL, in_process
from compactd.core.history.entries import Item
from compactd.core.tokens.counting import message_tokens
from compactd.formats.files import detect
from compactd.models.tokenizers.counters import counter_for


def items_of(file: Path) -> tuple[Item, ...]:
    """Return the messages of a session file, counted with o200k_base and numbered from `e1`. O(bytes)."""
    counter = counter_for("auto", "o200k_base", MODEL)
    return tuple(
        Item(entry_id=f"e{number}", body=message, tokens=message_tokens(message, counter))
        for number, (message, _) in enumerate(detect.read(file).messages, 1)
    )


def summaries(file: Path, sizes: Iterable[int]) -> dict[str, str]:
    """Return the summary of the whole session for each size of the next request, in tokens."""
    items = items_of(file)
    return {str(size): in_process(items, size).summary for size in sizes}


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    file, *sizes = arguments
    print(json.dumps(summaries(Path(file), map(int, sizes))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

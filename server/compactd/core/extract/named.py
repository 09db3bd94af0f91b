"""Find the names (atoms) in messages without a full analysis, for compactions that need no extract.

The strategy `truncate` only reports which facts were used again. That takes no words, runs or lines.
"""

from __future__ import annotations

from compactd.core.extract.facts import FactCache, Facts
from compactd.core.history.entries import Item


class Names:
    """A reader of messages with the same interface as `FactCache`. For a message that the cache knows, it
    returns the cached facts; for any other, only the calls, files and atoms.

    It is used for one compaction. What it computes is not stored in the cache, because it is incomplete.
    """

    def __init__(self, cache: FactCache) -> None:
        self._cache = cache
        self.lexicon = cache.lexicon
        self._found: dict[tuple[str, str], Facts] = {}

    def learn(self, item: Item) -> Facts:
        """Return the facts of `item` from the cache, or its calls, files and atoms only. O(length) the first
        time."""
        key = (item.entry_id, item.kind)
        found = self._found[key] = self._cache.learn_names(item, self._found.get(key))
        return found

    def strip(self, working_dir: str) -> bool:
        """Set the working folder that is cut from paths; see `FactCache.strip`."""
        return self._cache.strip(working_dir)

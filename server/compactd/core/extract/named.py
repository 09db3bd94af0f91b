"""What a conversation names and nothing more, where no record is made of it.

The strategy `truncate` says what was used again, and needs neither words nor runs nor lines for that.
"""

from __future__ import annotations

from compactd.core.extract.facts import FactCache, Facts
from compactd.core.history.entries import Item


class Names:
    """What is known of each message, as `FactCache` has it, and of the others their calls and atoms alone.

    For one compaction: what it finds out is not kept in the cache, which would take it for all there is to
    know.
    """

    def __init__(self, cache: FactCache) -> None:
        self._cache = cache
        self.lexicon = cache.lexicon
        self._found: dict[tuple[str, str], Facts] = {}

    def learn(self, item: Item) -> Facts:
        """What `item` names. O(length) at the first time."""
        key = (item.entry_id, item.kind)
        found = self._found[key] = self._cache.learn_names(item, self._found.get(key))
        return found

    def strip(self, working_dir: str) -> bool:
        """As `FactCache.strip`."""
        return self._cache.strip(working_dir)

"""Rewrite, without a model, the summaries that a model wrote from redacted messages.

A model uses its own words, so a search for the words of a message cannot find what its summary says.
`extract` writes a new summary from the same originals, in which a mark has already replaced the secret.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec
from msgspec import UNSET, Raw

from compactd.core.constraints.constraints import constraints_of
from compactd.core.extract.extract import ExtractSource
from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Compacted, Entry, EntryId, Item, summary_message
from compactd.core.history.message_kinds import newest_request
from compactd.core.history.state import SessionState
from compactd.core.redaction.scrub import MARK
from compactd.core.text.summary_format import LEAD
from compactd.core.work.state import WorkReader
from compactd.protocol.messages import Message, Text

WRITTEN = "summarize"
"""The strategy of summaries in a model's words: by a provider, an agent, or the client's hook."""


class SummaryRewriter:
    """A rewriter of the summaries of one journal. It takes the journal's entries, oldest first and already
    without the redacted words, and returns each, with a new summary if necessary."""

    def __init__(
        self,
        entry_ids: frozenset[EntryId],
        decode: Callable[[Raw], Message],
        count: Callable[[Message], int],
        counted: Callable[[Compacted], Compacted],
    ) -> None:
        """Prepare a redaction of the messages `entry_ids`. `count` counts the tokens of a message, and
        `counted` returns an entry with the tokens of its stubs counted again."""
        self._entry_ids = entry_ids
        self._count = count
        self._counted = counted
        self._state = SessionState(decode)
        self._cache: FactCache | None = None

    def remake(self, entry: Entry, before: Entry) -> Entry:
        """Take the next entry of the journal, and return it. If it is a model's summary of messages that
        include a redacted one, return it with a summary by `extract`, which is not larger than the summary
        was in `before`, the entry before the redaction. If it has a provider's own summary of such messages,
        return it without that summary. O(entry); for a compaction O(path), plus an extract if its summary is
        rewritten."""
        if isinstance(entry, Compacted) and entry.provider is not None and self._is_about_redacted(entry):
            # Nobody but the provider can see whether it contains the secret.
            entry = msgspec.structs.replace(entry, provider=None)
        if (
            isinstance(entry, Compacted)
            and isinstance(before, Compacted)
            and entry.result.strategy == WRITTEN
        ):
            entry = self._remake(entry, self._count(summary_message(before)))
        self._state.apply(entry)
        return entry

    def release(self) -> None:
        """Free the state of the journal, piece by piece."""
        self._state.release()

    def _is_about_redacted(self, entry: Compacted) -> bool:
        """Return whether a compaction, which the state does not have yet, stands for a redacted message."""
        items = self._state.path_items()
        before = takewhile(lambda item: item.entry_id != entry.first_kept, items)
        return not self._entry_ids.isdisjoint(item.entry_id for item in before)

    def _remake(self, entry: Compacted, budget: int) -> Compacted:
        items = self._state.path_items()
        places = {item.entry_id: at for at, item in enumerate(items)}
        end = places.get(entry.first_kept, len(items)) if entry.first_kept is not None else len(items)
        before = items[:end]
        if self._entry_ids.isdisjoint(item.entry_id for item in before):
            return entry
        pinned = set(entry.pinned)
        gone = [item for item in before if item.entry_id not in pinned]
        stays = [*(item for item in before if item.entry_id in pinned), *items[end:]]
        made = msgspec.structs.replace(
            entry,
            summary=self._extract(items, gone, stays, budget),
            result=msgspec.structs.replace(
                entry.result, strategy="extract", retention=None, unfounded=UNSET, remarks=UNSET
            ),
        )
        if self._count(summary_message(made)) > budget:
            made = msgspec.structs.replace(made, summary=f"{LEAD}\n{MARK}")
        made = msgspec.structs.replace(made, summary_tokens=self._count(summary_message(made)))
        return self._counted(made)

    def _extract(self, items: Sequence[Item], gone: list[Item], stays: list[Item], budget: int) -> str:
        opened = self._state.opened
        working_dir = None if opened is None else opened.working_dir
        if self._cache is None:
            self._cache = FactCache(working_dir)
        at = newest_request(stays)
        demands = constraints_of(items)
        reader = WorkReader()
        for item in items:
            reader.add(item)
        source = ExtractSource(
            gone,
            stays,
            request=None if at is None else stays[at],
            budget_tokens=budget,
            working_dir=working_dir,
            cache=self._cache,
            demands=demands,
            work=reader.state(demands),
        )
        return source.record(budget, self._size)

    def _size(self, text: str) -> int:
        return self._count(Message(role="user", content=(Text(text=text),)))

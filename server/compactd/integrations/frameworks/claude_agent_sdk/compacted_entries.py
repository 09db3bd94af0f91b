"""A compacted conversation as entries from which Claude Code resumes.

A compaction is a `compact_boundary` and the entry of its summary, as Claude Code writes it. The messages
that stay follow with their own ids, so that what Claude Code appends later hangs on entries of the stored
original, too: with and without compaction, the chain of parents is whole. The ids of the two new entries are
digests, so that a second load gives the same entries.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.formats.agents.claude_code_out import write
from compactd.formats.files.session_file import SessionFile
from compactd.formats.messages.neutral import decode_message
from compactd.integrations.frameworks.claude_agent_sdk.live_chain import (
    Entry,
    answer_ids,
    is_boundary,
    is_message,
)
from compactd.integrations.frameworks.claude_agent_sdk.transcript import uuid_of
from compactd.integrations.frameworks.history import ShownMessage
from compactd.protocol.messages import Message, Meta

_COPIED: Final = ("timestamp", "cwd", "sessionId", "version", "gitBranch", "userType", "entrypoint")
"""Fields of the entry after a summary that the summary's entries get, too."""
_FOR_QUEUE: Final = "queue-operation"


class Conversation:
    """The entries of a transcript, and which of them say which message."""

    def __init__(
        self, entries: Sequence[Any], live: Sequence[int], file: SessionFile, messages: Sequence[Message]
    ) -> None:
        """`live`: positions of the entries in the conversation. `messages`: those of `file` that are in
        Claude Code's context. O(entries).
        """
        self._entries = entries
        self._live = live
        self._file = file
        self._places = _places_of(entries, live, messages)
        self._messages = messages

    def shown(self, items: Sequence[int | ShownMessage]) -> list[Any] | None:
        """Return the entries that say what `items` say: indices of messages, and messages of compactd's. None
        if that is not possible. O(entries).
        """
        tail = self._tail(items)
        if tail is None:
            return None
        tail_start = min(self._places[tail])
        chain: list[Entry] = []
        for item in items:
            if isinstance(item, int):
                if item < tail:
                    chain += [self._entries[at] for at in self._places[item]]
            elif item.index is None:
                if item.role == "user":
                    chain += self._new(item, self._entries[tail_start])
            elif item.index < tail:
                chain += self._changed(item)
        changed = {
            item.index: item for item in items if isinstance(item, ShownMessage) and item.index is not None
        }
        replaced: dict[int, list[Entry]] = {}
        for index, item in changed.items():
            if index >= tail and self._places[index]:
                first, *others = self._places[index]
                replaced[first] = self._changed(item)
                replaced.update((at, []) for at in others)
        left_out = {at for index, places in enumerate(self._places) if index < tail for at in places}
        left_out.update(at for at in self._live if is_boundary(self._entries[at]))
        is_live = set(self._live)
        before: list[Any] = []
        after: list[Any] = []
        for at, entry in enumerate(self._entries):
            if at in is_live:
                if at >= tail_start and at not in left_out:
                    after += replaced.get(at, [entry])
            elif uuid_of(entry) is None and (at >= tail_start or _is_about_session(entry)):
                (after if at >= tail_start else before).append(entry)
        return [*before, *_linked([*chain, *after])]

    def _tail(self, items: Sequence[int | ShownMessage]) -> int | None:
        """Return the first message of those at the end that all stay, in their order; None if the newest one
        does not, or if the view does not begin with a summary.
        """
        indices = [item if isinstance(item, int) else item.index for item in items]
        if None not in indices or not self._messages:
            return None
        expected = len(self._messages) - 1
        tail: int | None = None
        for index in reversed(indices):
            if index is None and tail is None:
                continue  # a result in place of one that is missing: Claude Code writes its own
            if index != expected:
                break
            if self._places[expected]:
                tail = expected
            expected -= 1
        last = len(self._messages) - 1
        return tail if indices and last in indices and tail is not None else None

    def _new(self, item: ShownMessage, model: Entry) -> list[Entry]:
        """Return the entries of a message that compactd wrote. `model`: the entry that follows."""
        id_ = str(uuid5(NAMESPACE_URL, f"{self._file.session_id}\0{bytes(item.content).decode()}"))
        meta = Meta(type="compaction_summary") if item.is_summary else Meta(synthetic=True)
        message = replace(_message(item), id=id_, meta=meta)
        records = self._written(message)
        for record in records:
            record.update({name: model[name] for name in _COPIED if name in model})
            if record.get("subtype") == "compact_boundary":
                record["uuid"] = str(uuid5(NAMESPACE_URL, f"{id_}\0boundary"))
                record["parentUuid"] = None
                record["compactMetadata"] = {"trigger": "manual", "preTokens": 0}
        return records

    def _changed(self, item: ShownMessage) -> list[Entry]:
        """Return copies of the entries of a message, with the content that compactd shows."""
        assert item.index is not None
        places = self._places[item.index]
        if not places:
            return []
        originals = [self._entries[at] for at in places]
        if not all(isinstance(original.get("message"), dict) for original in originals):
            return originals  # an attachment, whose text is somewhere else
        records = self._written(replace(_message(item), id=originals[0]["uuid"], meta=None))
        copies: list[Entry] = []
        for at, record in enumerate(records):
            original = originals[min(at, len(originals) - 1)]
            more = (
                {}
                if at < len(originals)
                else {"uuid": str(uuid5(NAMESPACE_URL, f"{original['uuid']}\0{at}"))}
            )
            message = {**original["message"], "content": record["message"]["content"]}
            copy = {**original, "message": message, **more}
            copy.pop("toolUseResult", None)  # the whole output once more, for Claude Code's screen
            copies.append(copy)
        return copies

    def _written(self, message: Message) -> list[Entry]:
        """Return the records of one message in Claude Code's format."""
        file = SessionFile(
            format="claude-code",
            messages=((message, Raw(b"{}")),),
            session_id=self._file.session_id,
            model=self._file.model,
            working_dir=self._file.working_dir,
        )
        return [json.loads(line) for line in write(file).splitlines()]


def _message(item: ShownMessage) -> Message:
    return decode_message(Raw(msgspec.json.encode({"role": item.role, "content": item.content})))


def _places_of(entries: Sequence[Any], live: Sequence[int], messages: Sequence[Message]) -> list[list[int]]:
    """Return for each message the positions of its entries. A message of a queue may have none."""
    by_id: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        if message.id is not None:
            by_id.setdefault(message.id, []).append(index)
    places: list[list[int]] = [[] for _ in messages]
    answers: dict[str, list[int]] = {}
    for at in live:
        entry = entries[at]
        found = by_id.get(uuid_of(entry) or "", [])
        if not is_message(entry) and not found:
            continue
        for answer in answer_ids(entry):
            # Further blocks of an answer belong to the message of its newest block with a message's id.
            found = answers[answer] = found or answers.get(answer, [])
        for index in found:
            places[index].append(at)
    return places


def _is_about_session(entry: object) -> bool:
    """Return whether an entry without id is about the session, not about a message that is left out."""
    return not (isinstance(entry, dict) and entry.get("type") == _FOR_QUEUE)


def _linked(entries: Sequence[Any]) -> list[Any]:
    """Return the entries as one chain: where the parent was left out, it is the entry before."""
    linked: list[Any] = []
    seen: set[str] = set()
    before: str | None = None
    for entry in entries:
        uuid = uuid_of(entry)
        if uuid is None:
            linked.append(entry)
            continue
        if uuid in seen:
            continue
        parent = entry.get("parentUuid")
        if parent not in seen and parent != before:
            entry = {**entry, "parentUuid": before}
        linked.append(entry)
        seen.add(uuid)
        before = uuid
    return linked

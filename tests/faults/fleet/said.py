"""What the clients were told, and the check that it is so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct


class Message(Struct, eq=False):
    """A message that a client sent."""

    text: str
    """No other message has it."""
    sent_at: float
    """When it was sent first: monotonic seconds."""
    acknowledged_at: float | None = None
    entry_id: str | None = None
    """Its entry, as the answer said."""


class _Content(Struct):
    content: str | list[dict[str, object]] = ""


class _Entry(Struct):
    entry_id: str
    kind: str
    message: _Content | None = None


class _History(Struct):
    entries: list[_Entry]


class _Appended(Struct):
    entry_ids: list[str]


class _Compacted(Struct):
    compacted: bool


def entry_ids(result: Raw) -> list[str]:
    """Return the entries that an append made."""
    return msgspec.json.decode(result, type=_Appended).entry_ids


def has_compacted(result: Raw) -> bool:
    """Return whether a compaction was done."""
    return msgspec.json.decode(result, type=_Compacted).compacted


class Talk:
    """The messages and compactions of one session."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.messages: list[Message] = []
        self.compactions = 0
        self.unknown_compactions = 0
        """Compactions whose answer was lost."""

    def wrong(self, histories: Sequence[Raw]) -> list[str]:
        """Return what is not as the clients were told, in the session's history at some of the nodes."""
        decoded = [msgspec.json.decode(one, type=_History) for one in histories]
        shown = [[(each.entry_id, each.kind, _text(each)) for each in one.entries] for one in decoded]
        found = [
            f"nodes show different histories: {len(shown[0])} entries, and {len(one)}"
            for one in shown[1:]
            if one != shown[0]
        ]
        found += self._wrong_messages([(id, text) for id, kind, text in shown[0] if kind == "message"])
        done = sum(kind == "compaction" for _, kind, _ in shown[0])
        if not self.compactions <= done <= self.compactions + self.unknown_compactions:
            found.append(f"{done} compactions, {self.compactions} were acknowledged")
        return [f"{self.session}: {one}" for one in found]

    def _wrong_messages(self, shown: Sequence[tuple[str, str]]) -> list[str]:
        found = []
        times = Counter(text for _, text in shown)
        found += [f"doubled: {text}" for text, count in times.items() if count > 1]
        sent = {message.text: message for message in self.messages}
        found += [f"never sent: {text}" for text in times if text not in sent]
        places = {text: id for id, text in shown}
        for message in self.messages:
            if message.acknowledged_at is not None and places.get(message.text) != message.entry_id:
                found.append(f"lost: {message.text} is {places.get(message.text)}, not {message.entry_id}")
        # Who was acknowledged before another was sent comes before it.
        latest = ("", 0.0)
        for _, text in shown:
            message = sent.get(text)
            if message is None:
                continue
            if message.acknowledged_at is not None and message.acknowledged_at < latest[1]:
                found.append(
                    f"order: {text} was acknowledged before {latest[0]} was sent, and comes after it"
                )
            latest = max(latest, (text, message.sent_at), key=lambda each: each[1])
        return found


def _text(entry: _Entry) -> str:
    if entry.message is None:
        return ""
    content = entry.message.content
    return content if isinstance(content, str) else str(content[0].get("text"))

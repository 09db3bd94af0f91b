"""Read messages that were typed while Claude Code worked, from its `queue-operation` records.

Such a message waits in a queue (`enqueue`). It leaves the queue in one of these ways, and each writes a
record. `remove` means that the model got it in the middle of its work, with the results of its calls; no user
record follows. `dequeue` means that it is sent as a prompt of its own; its user record follows. `popAll`
means that the user took it back. A `remove` with a reason other than `absorbed_mid_turn` means that nobody
got it, or a sub-agent. Messages of programs, such as `<task-notification>`, wait in the same queue.

What the records contain differs by version (each was run with a scripted API, 2026-11):

- 2.1.39 and 2.1.85: `remove` and `dequeue` have no content. A message from a program that runs Claude Code
  (the SDK, an editor) has content in no record, so the file does not contain its text.
- 2.1.110 and newer: an attachment `queued_command`, just before or after the `remove`, contains the text.
- 2.1.197 and newer: the attachment says who wrote it (`origin`) if Claude Code runs in a terminal.
- 2.1.330: `remove` has the content and a reason.

Claude Code writes the records of the queue at once, but other records up to a second later. So in the file, a
`remove` may come before tool results, and even before their call, which the model had already seen.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

import msgspec
from msgspec import Struct

MAX_KEPT = 256
MAX_KEPT_CHARS = 1 << 20
"""The limits of what is kept between two pieces of a file: `MAX_KEPT` messages of each kind, and for waiting
messages also `MAX_KEPT_CHARS` characters together. The newest messages are kept.
"""


class Delivered(Struct, array_like=True):
    """A message that the model got while it worked."""

    text: str | None
    """The words of the message; None if no record contains them."""
    at: float | None
    """When it was delivered, in Unix seconds."""
    was_waiting: bool = True
    """Whether an `enqueue` record put the message into the queue before."""


class QueueState(Struct, kw_only=True, omit_defaults=True):
    """The state of a queue between two pieces of one file."""

    waiting: list[str | None] = []
    removals: list[float | None] = []
    delivered: list[Delivered] = []
    attached: list[str] = []
    placed: list[str] = []


class Between(Struct, kw_only=True, omit_defaults=True):
    """What one piece of a session file passes to the next one."""

    queue: QueueState = msgspec.field(default_factory=QueueState)
    version: str = ""
    """The version of Claude Code."""
    last_at: float | None = None
    """The time of the newest message, in Unix seconds."""


class _WaitingTexts:
    """The messages of one kind in a queue, oldest first. Each has its position in the whole queue, and its
    text. Each operation costs O(1).
    """

    def __init__(self) -> None:
        self.texts: OrderedDict[int, str | None] = OrderedDict()
        self._places: dict[str | None, deque[int]] = {}

    def add(self, place: int, text: str | None) -> None:
        self.texts[place] = text
        self._places.setdefault(_key(text), deque()).append(place)

    def take(self, text: str | None) -> tuple[int, str | None] | None:
        """Remove the oldest message with this text. Return (its position, its text); None if there is
        none."""
        places = self._places.get(_key(text))
        while places:
            place = places.popleft()
            if place in self.texts:
                return place, self.texts.pop(place)
        return None

    def take_oldest(self) -> tuple[int, str | None] | None:
        return self.texts.popitem(last=False) if self.texts else None

    def take_newest(self) -> tuple[int, str | None] | None:
        return self.texts.popitem(last=True) if self.texts else None

    def clear(self) -> None:
        self.texts.clear()
        self._places.clear()


def _key(text: str | None) -> str | None:
    return None if text is None else text.strip()


class Queue:
    """The queue of one session while its records are read. Each record costs O(1), however many messages
    wait.

    The function `is_notice` returns whether a program wrote a text.
    """

    def __init__(self, is_notice: Callable[[str], bool], state: QueueState | None = None) -> None:
        self._is_notice = is_notice
        self._count = 0
        self._prompts = _WaitingTexts()
        self._commands = _WaitingTexts()
        """Slash commands, which wait for the end of the turn (2.1.85, 2.1.110)."""
        self._notices = _WaitingTexts()
        """Messages of programs."""
        self._removals: list[float | None] = []
        """The times of consecutive `remove` records without content. Only all of them together show which
        messages left the queue.
        """
        self._delivered = _WaitingTexts()
        self._delivered_at: dict[int, Delivered] = {}
        """The delivered messages by their positions."""
        self._attached = _WaitingTexts()
        """Attachments whose `remove` has not come yet."""
        self._placed = _WaitingTexts()
        """Messages that the reader already added to the session before their attachment was read."""
        if state is not None:
            self._load(state)

    @property
    def has_delivered(self) -> bool:
        """Whether a message was delivered that `take_delivered` has not returned yet."""
        return bool(self._delivered_at or self._removals)

    @property
    def is_full(self) -> bool:
        """Whether more messages were delivered than are kept between two pieces of a file."""
        return len(self._delivered_at) > MAX_KEPT

    def enter(self, text: str | None) -> None:
        """Add a waiting message. `text` is None if its record does not contain it."""
        self._settle()
        line = self._prompts
        if text is not None and self._is_notice(text):
            line = self._notices
        elif text is not None and text.lstrip().startswith("/"):
            line = self._commands
        line.add(self._place(), text)

    def leave(self, text: str | None) -> None:
        """Remove a message that the model did not get in this turn.

        If `text` is None, remove the oldest message of a person or, if there is none, of a program.
        """
        self._settle()
        if text is not None:
            self._take(text)
            return
        lines = [line for line in (self._prompts, self._commands) if line.texts] or [self._notices]
        min(lines, key=lambda line: next(iter(line.texts), 0)).take_oldest()

    def take_back(self, text: str | None) -> int:
        """Remove the message that the user took back, or all messages of the user if `text` is None. Return
        how many were removed.
        """
        self._settle()
        if text is not None:
            return int(self._take(text) is not None)
        count = len(self._prompts.texts) + len(self._commands.texts)
        self._prompts.clear()
        self._commands.clear()
        return count

    def remove(self, text: str | None, at: float | None) -> None:
        """Mark the message with this text as delivered to the model at time `at`. If `text` is None, only
        note the time: `_settle` finds the message later.
        """
        if text is None:
            self._removals.append(at)
            return
        self._settle()
        if self._attached.take(text) is None:
            self._deliver(Delivered(text, at, was_waiting=self._take(text) is not None))

    def attach(self, text: str) -> bool:
        """Match an attachment with the waiting or delivered message that it repeats. Return whether the
        caller must add the message to the session: False if it was already added.
        """
        self._settle()
        if self._placed.take(text) is not None:
            return False
        found = self._delivered.take(text) or self._delivered.take(None)
        if found is not None:
            del self._delivered_at[found[0]]
        else:
            self._take(text)
            self._attached.add(self._place(), text)
        return True

    def drop_notice(self, text: str) -> None:
        """Remove a waiting message of a program, because its own record was read. Version 2.1.39 writes no
        `dequeue` for it.
        """
        if self._notices.texts:
            self._notices.take(text)

    def take_delivered(self, before: float | None = None) -> list[Delivered]:
        """Remove and return the messages that were delivered before the time `before`, oldest first; all
        delivered messages if `before` is None.
        """
        self._settle()
        found: list[Delivered] = []
        while self._delivered_at:
            one = self._delivered_at[next(iter(self._delivered.texts))]
            if before is not None and one.at is not None and one.at >= before:
                break
            place, _ = self._delivered.texts.popitem(last=False)
            found.append(self._delivered_at.pop(place))
        return found

    def take_delivered_early(self) -> list[Delivered]:
        """Remove and return all delivered messages, although their attachments may still come. Such an
        attachment is then ignored by `attach`.
        """
        found = self.take_delivered()
        for one in found:
            if one.text is not None:
                self._placed.add(self._place(), one.text)
        return found

    def answer_began(self) -> None:
        """Forget the attachments so far, because a new answer of the model began. If the model got a message
        before an answer, the message's attachment is always before that answer in the file.
        """
        if self._attached.texts or self._placed.texts:
            self._attached.clear()
            self._placed.clear()

    def state(self) -> QueueState:
        """Return the state that the next piece of the file needs."""
        waiting: list[str | None] = []
        chars = 0
        lines = (self._prompts, self._commands, self._notices)
        for _, text in sorted((item for line in lines for item in line.texts.items()), reverse=True):
            chars += len(text or "")
            if len(waiting) == MAX_KEPT or chars > MAX_KEPT_CHARS:
                break
            waiting.append(text)
        return QueueState(
            waiting=waiting[::-1],
            removals=self._removals[-MAX_KEPT:],
            delivered=[self._delivered_at[place] for place in self._delivered.texts],
            attached=[text or "" for text in self._attached.texts.values()][-MAX_KEPT:],
            placed=[text or "" for text in self._placed.texts.values()][-MAX_KEPT:],
        )

    def _load(self, state: QueueState) -> None:
        for text in state.waiting:
            self.enter(text)
        for one in state.delivered:
            self._deliver(one)
        for text in state.attached:
            self._attached.add(self._place(), text)
        for text in state.placed:
            self._placed.add(self._place(), text)
        self._removals = list(state.removals)

    def _place(self) -> int:
        self._count += 1
        return self._count

    def _deliver(self, one: Delivered) -> None:
        place = self._place()
        self._delivered.add(place, one.text)
        self._delivered_at[place] = one

    def _take(self, text: str) -> tuple[int, str | None] | None:
        """Remove the oldest waiting message with this text. If there is none, remove the oldest prompt whose
        text is unknown. Return (its position, its text); None if nothing was removed."""
        for line in (self._prompts, self._commands, self._notices):
            found = line.take(text)
            if found is not None:
                return found
        return None if self._is_notice(text) else self._prompts.take(None)

    def _settle(self) -> None:
        """Decide which messages the collected `remove` records without content belong to, and mark these as
        delivered.

        Usually these are all waiting prompts. If more prompts wait than there are records, the newest prompts
        were delivered: the older ones remain from a run of Claude Code that was killed.
        """
        if not self._removals:
            return
        attached = min(len(self._removals), len(self._attached.texts))
        for _ in range(attached):
            self._attached.take_oldest()
        removals, self._removals = self._removals[attached:], []
        found: list[tuple[int, str | None]] = []
        for line in (self._prompts, self._commands, self._notices):
            while len(found) < len(removals) and (one := line.take_newest()) is not None:
                found.append(one)
        texts = [text for _, text in sorted(found, key=lambda one: one[0])]
        missing = len(removals) - len(texts)
        for text, at in zip([*texts, *[None] * missing], removals, strict=True):
            self._deliver(Delivered(text, at))

"""Messages that a person typed while Claude Code worked, as its `queue-operation` rows record them.

Such a message waits in a queue (`enqueue`). It leaves the queue in one of four ways, and each writes a row:
`remove` says that the model got it in the middle of its work, with the results of its calls; no user row
follows. `dequeue` says that it is sent as a prompt of its own; its user row follows. `popAll` says that the
person took it back. A `remove` with a reason other than `absorbed_mid_turn` gave it to nobody, or to a
sub-agent. Messages of programs, such as `<task-notification>`, wait in the same queue.

What the rows hold differs by version (each one run with a scripted API, 2026-11):

- 2.1.39 and 2.1.85: `remove` and `dequeue` have no content. A message from a program that runs Claude Code
  (the SDK, an editor) has content in no row: the file does not have its words.
- 2.1.110 and newer: an attachment `queued_command`, just before or after the `remove`, has the words.
- 2.1.197 and newer: the attachment says who wrote them (`origin`) if Claude Code runs in a terminal.
- 2.1.330: `remove` has the content and a reason.

Claude Code writes the rows of the queue at once, and messages up to a second later. So a `remove` may come
before the results, and even before the call, that it follows in time.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

import msgspec
from msgspec import Struct

MAX_KEPT = 256
MAX_KEPT_CHARS = 1 << 20
"""How many messages, and characters of those that wait, are kept between two pieces of a file: the newest."""


class Delivered(Struct, array_like=True):
    """A message that the model got while it worked."""

    text: str | None
    """None if no row has its words."""
    at: float | None
    """When it was delivered, in Unix seconds."""
    was_waiting: bool = True
    """An `enqueue` row put it into the queue."""


class QueueState(Struct, kw_only=True, omit_defaults=True):
    """A queue between two pieces of one file."""

    waiting: list[str | None] = []
    removals: list[float | None] = []
    delivered: list[Delivered] = []
    attached: list[str] = []
    placed: list[str] = []


class Between(Struct, kw_only=True, omit_defaults=True):
    """What one piece of a session file tells the next one, if they are read one by one."""

    queue: QueueState = msgspec.field(default_factory=QueueState)
    version: str = ""
    """Of Claude Code."""
    last_at: float | None = None
    """The time of the newest message, in Unix seconds."""


class _Line:
    """Texts, oldest first, by their places in the whole queue. Each operation costs O(1)."""

    def __init__(self) -> None:
        self.texts: OrderedDict[int, str | None] = OrderedDict()
        self._places: dict[str | None, deque[int]] = {}

    def add(self, place: int, text: str | None) -> None:
        self.texts[place] = text
        self._places.setdefault(_key(text), deque()).append(place)

    def take(self, text: str | None) -> tuple[int, str | None] | None:
        """Takes out the oldest one with this text."""
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
    """The queue of one session while its rows come in. Each row costs O(1), however many messages wait.

    `is_notice` says whether a program wrote a text.
    """

    def __init__(self, is_notice: Callable[[str], bool], state: QueueState | None = None) -> None:
        self._is_notice = is_notice
        self._count = 0
        self._prompts = _Line()
        self._commands = _Line()
        """Slash commands. They wait for the end of the turn (2.1.85, 2.1.110)."""
        self._notices = _Line()
        """Messages of programs."""
        self._removals: list[float | None] = []
        """`remove` rows without content, one after the other: together they say which messages left."""
        self._delivered = _Line()
        self._about: dict[int, Delivered] = {}
        """The delivered messages by their places."""
        self._attached = _Line()
        """Attachments whose `remove` did not come yet."""
        self._placed = _Line()
        """Messages that were taken out before their attachment could come."""
        if state is not None:
            self._load(state)

    @property
    def has_delivered(self) -> bool:
        """Whether a message was delivered that was not taken out yet."""
        return bool(self._about or self._removals)

    @property
    def is_full(self) -> bool:
        """Whether more was delivered than is kept between two pieces of a file."""
        return len(self._about) > MAX_KEPT

    def enter(self, text: str | None) -> None:
        """A message waits from now on. `text` is None if its row does not have it."""
        self._settle()
        line = self._prompts
        if text is not None and self._is_notice(text):
            line = self._notices
        elif text is not None and text.lstrip().startswith("/"):
            line = self._commands
        line.add(self._place(), text)

    def leave(self, text: str | None) -> None:
        """One message left the queue, and not to the model in this turn. Without a text: the oldest one, a
        person's before a program's."""
        self._settle()
        if text is not None:
            self._take(text)
            return
        lines = [line for line in (self._prompts, self._commands) if line.texts] or [self._notices]
        min(lines, key=lambda line: next(iter(line.texts), 0)).take_oldest()

    def take_back(self, text: str | None) -> int:
        """The person took back one message, or all without a text. Returns how many of them waited."""
        self._settle()
        if text is not None:
            return int(self._take(text) is not None)
        count = len(self._prompts.texts) + len(self._commands.texts)
        self._prompts.clear()
        self._commands.clear()
        return count

    def remove(self, text: str | None, at: float | None) -> None:
        """The model got one message: the one with this text, if its row has it."""
        if text is None:
            self._removals.append(at)
            return
        self._settle()
        if self._attached.take(text) is None:
            self._deliver(Delivered(text, at, was_waiting=self._take(text) is not None))

    def attach(self, text: str) -> bool:
        """An attachment has this message. False if it was taken out before: it is in its place already."""
        self._settle()
        if self._placed.take(text) is not None:
            return False
        found = self._delivered.take(text) or self._delivered.take(None)
        if found is not None:
            del self._about[found[0]]
        else:
            self._take(text)
            self._attached.add(self._place(), text)
        return True

    def drop_notice(self, text: str) -> None:
        """A program's message came in a row of its own (2.1.39 writes no `dequeue` for it)."""
        if self._notices.texts:
            self._notices.take(text)

    def take_delivered(self, before: float | None = None) -> list[Delivered]:
        """Takes out what was delivered before a time, oldest first; all of it if that is None."""
        self._settle()
        found: list[Delivered] = []
        while self._about:
            one = self._about[next(iter(self._delivered.texts))]
            if before is not None and one.at is not None and one.at >= before:
                break
            place, _ = self._delivered.texts.popitem(last=False)
            found.append(self._about.pop(place))
        return found

    def take_delivered_early(self) -> list[Delivered]:
        """Takes out all that was delivered, although attachments with it may come yet."""
        found = self.take_delivered()
        for one in found:
            if one.text is not None:
                self._placed.add(self._place(), one.text)
        return found

    def answer_began(self) -> None:
        """The model answered: attachments of what it got come before that."""
        if self._attached.texts or self._placed.texts:
            self._attached.clear()
            self._placed.clear()

    def state(self) -> QueueState:
        """What is to be known when the next piece of the file is read."""
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
            delivered=[self._about[place] for place in self._delivered.texts],
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
        self._about[place] = one

    def _take(self, text: str) -> tuple[int, str | None] | None:
        """Takes out the oldest that waits with this text; if there is none, the oldest without a text."""
        for line in (self._prompts, self._commands, self._notices):
            found = line.take(text)
            if found is not None:
                return found
        return None if self._is_notice(text) else self._prompts.take(None)

    def _settle(self) -> None:
        """Finds what the `remove` rows without content took: all prompts that waited. If there were more of
        them than rows, the newest ones: an older one was left by a run of Claude Code that was killed."""
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

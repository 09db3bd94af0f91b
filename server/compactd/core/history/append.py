"""Compute what an append adds to a journal: entries for the new messages and for their usage reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Raw, Struct

from compactd.core.history.entries import (
    Appended,
    Entry,
    EntryId,
    OutputLink,
    Reduced,
    UsageReported,
)
from compactd.core.history.state import SessionState
from compactd.core.tokens.usage import context_size
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Message, Usage

UNFINISHED = frozenset(("aborted", "error", "cancelled", "canceled"))
"""Stop reasons of a turn that did not finish. Its usage report is billed, but is not used as the size of the
context."""

WINDOW_EXCEEDED = frozenset(("model_context_window_exceeded", "context_window_exceeded"))
"""Stop reasons that mean that the window was full (Anthropic Messages API, seen 2026-10)."""

LENGTH_STOPS = frozenset(("length", "max_tokens", "max_output_tokens", "MAX_TOKENS"))
"""Stop reasons for a length limit: OpenAI chat, Anthropic, OpenAI responses, Gemini (seen 2026-10)."""

SILENT_PERCENT = 99
"""If an answer stopped at a length limit, and its input + output is at least this percentage of the window,
the window was full."""

NO_LINKS: Mapping[int, tuple[OutputLink, ...]] = MappingProxyType({})

Report = tuple[Usage, bool]
"""(the usage that was reported, whether the report named the output tokens)."""


class AppendRequest(Struct, frozen=True, kw_only=True):
    """What a client appends at once."""

    read: Sequence[tuple[Message, Raw]]
    """The messages, oldest first, each with its bytes in compactd's own format."""
    tokens: Sequence[int]
    """The estimated tokens of each message."""
    own_reports: Sequence[Report | None] = ()
    """The usage report of each message; empty if no message has one."""
    report: Report | None = None
    """The usage report that came with the append as a whole. It belongs to the last assistant message and
    takes precedence over that message's own report."""
    epoch: int | None = None
    """The epoch of the context that the usage report measured."""
    stop_reason: str | None = None
    """The stop reason of the last assistant message; takes precedence over that message's own."""
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    outputs: Sequence[Reduced] = ()
    """The outputs in the messages that were reduced for this append. Their ids are the next ones of the
    session."""
    links: Mapping[int, tuple[OutputLink, ...]] = NO_LINKS
    """By index of a message, where it shows reduced outputs: those in `outputs`, and earlier ones whose text
    was put in."""


class AppendPlan(Struct, frozen=True, kw_only=True):
    """The entries that an append adds, and what the response contains."""

    entries: tuple[Entry, ...]
    messages: tuple[Message, ...]
    """The messages of the `Appended` entries, in order."""
    entry_ids: tuple[EntryId, ...]
    """The entry id of each given message, duplicates included."""
    duplicates: tuple[str, ...]
    """Client ids of messages that the session already has."""
    answer: Raw | None
    """The last new assistant message, if there is one."""
    stop_reason: str | None
    """The stop reason of `answer`."""
    report: UsageReported | None
    """The last usage report, if there is one."""


def plan_append(
    fold: SessionState, new: AppendRequest, *, at: float, estimator: str, handed_epoch: int
) -> AppendPlan:
    """Compute what appending `new` to the session of `fold` adds. O(new messages).

    `handed_epoch` is the epoch of the context that the client was last given. It is used if `new` names no
    epoch. A message whose id and content are already in the session is a duplicate: it gets its old entry id,
    and its own report is ignored. Raise `InvalidParams` if the id belongs to another message, or if the
    client was never given the epoch that `new` names.
    """
    if new.epoch is not None and not 1 <= new.epoch <= fold.epoch:
        raise InvalidParams(
            f"no context with epoch {new.epoch} was sent to a client; the session's epoch is {fold.epoch}",
            "$.epoch",
        )
    return _Append(fold, new, at, estimator, handed_epoch if new.epoch is None else new.epoch).run()


class _Append:
    """The state of one call of `plan_append`."""

    def __init__(self, fold: SessionState, new: AppendRequest, at: float, estimator: str, epoch: int) -> None:
        self._fold = fold
        self._new = new
        self._at = at
        self._estimator = estimator
        self._epoch = epoch
        self._entries: list[Entry] = []
        self._messages: list[Message] = []
        self._ids: list[EntryId] = []
        self._duplicates: list[str] = []
        self._named: dict[str, int] = {}
        self._report: UsageReported | None = None
        self._answer: Raw | None = None
        self._stop: str | None = None

    def run(self) -> AppendPlan:
        new = self._new
        is_answer = [message.role == "assistant" for message, _ in new.read]
        last_answer = max((i for i, yes in enumerate(is_answer) if yes), default=None)
        if last_answer is None and new.report is not None:
            self._add_report(new.report, self._last_answer(), new.stop_reason)
        self._entries += new.outputs
        parent, next_id = self._fold.leaf, int(self._fold.next_id[1:]) + len(new.outputs)
        for index, (message, raw) in enumerate(new.read):
            known = self._find_repeated(index, message)
            if known is not None:
                self._ids.append(known)
                self._duplicates.append(message.id or "")
                continue
            entry_id = f"e{next_id + len(self._messages)}"
            self._entries.append(self._entry_of(entry_id, parent, index, message, raw))
            self._messages.append(message)
            self._ids.append(entry_id)
            parent = entry_id
            if is_answer[index]:
                self._answered(index, index == last_answer, entry_id, message, raw)
        return AppendPlan(
            entries=tuple(self._entries),
            messages=tuple(self._messages),
            entry_ids=tuple(self._ids),
            duplicates=tuple(self._duplicates),
            answer=self._answer,
            stop_reason=self._stop,
            report=self._report,
        )

    def _entry_of(
        self, entry_id: EntryId, parent: EntryId | None, index: int, message: Message, raw: Raw
    ) -> Appended:
        is_last = index == len(self._new.read) - 1
        return Appended(
            id=entry_id,
            at=self._at,
            tokens=(self._new.tokens[index], self._estimator),
            message=raw,
            parent=parent,
            client_id=message.id,
            read=self._new.files_read if is_last else (),
            modified=self._new.files_modified if is_last else (),
            outputs=self._new.links.get(index) or self._fold.outputs.find_links(message, self._fold.path),
        )

    def _answered(self, index: int, is_last: bool, entry_id: EntryId, message: Message, raw: Raw) -> None:
        new = self._new
        stop = (new.stop_reason if is_last else None) or message.stop_reason
        self._answer, self._stop = raw, stop
        report = new.own_reports[index] if new.own_reports else None
        if is_last and new.report is not None:
            report = new.report
        if report is not None:
            self._add_report(report, entry_id, stop)

    def _add_report(self, report: Report, entry_id: EntryId | None, stop: str | None) -> None:
        self._report = UsageReported(
            at=self._at,
            usage=report[0],
            epoch=self._epoch,
            entry_id=entry_id,
            reported_output=report[1],
            is_base=stop not in UNFINISHED and context_size(report[0]) > 0,
            estimator=self._estimator,
        )
        self._entries.append(self._report)

    def _find_repeated(self, index: int, message: Message) -> EntryId | None:
        """Return the id of the entry that `message` repeats; None if the message is new."""
        name = message.id
        if name is None:
            return None
        entry_id = self._fold.clients.get(name)
        if entry_id is not None and entry_id in self._fold.redacted:
            # A redacted message must not come back when a client sends the conversation again.
            return entry_id
        if entry_id is not None:
            other = self._fold.originals[entry_id].message
        elif name in self._named:
            entry_id, other = self._ids[self._named[name]], self._new.read[self._named[name]][0]
        else:
            self._named[name] = index
            return None
        if other.role != message.role or (
            other.content != message.content
            # A client that sends a message again does not know how its outputs were reduced.
            and self._fold.outputs.restore(entry_id, other).content != message.content
        ):
            raise InvalidParams(
                f"id {name!r} is already used by another message; give each message its own id",
                f"$.messages[{index}].id",
            )
        return entry_id

    def _last_answer(self) -> EntryId | None:
        for item in reversed(self._fold.items):
            if item.message.role == "assistant":
                return item.entry_id
        return None


def is_silent_overflow(report: UsageReported | None, stop_reason: str | None, window: int | None) -> bool:
    """Return whether the report of a finished answer shows that the window (in tokens) was full.

    It was full if the input, cache included, exceeds the window; if the answer stopped at a length limit and
    input + output is at least 99 % of the window; or if the stop reason says so (docs/dev/behaviour.md,
    "Silent").
    """
    if stop_reason in WINDOW_EXCEEDED:
        return True
    if report is None or window is None or not report.is_base:
        return False
    used = context_size(report.usage)
    if used > window:
        return True
    whole = used + report.usage.output_tokens
    return stop_reason in LENGTH_STOPS and 100 * whole >= SILENT_PERCENT * window

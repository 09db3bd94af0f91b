"""Reduce tool outputs before they enter a session's context, and keep the originals in its journal
(protocol.md, "session/reduce").

The engine (`core/reduce`) runs in a worker. Its marks name the entry that will have the original, so nothing
else may be written before that entry. If the session has changed meanwhile, the output is reduced again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import EntryId, OutputLink, Reduced, ReductionObserved
from compactd.core.history.outputs import text_of_output
from compactd.core.reduce.marks import defuse
from compactd.core.reduce.output import Reduction, ToolOutput
from compactd.core.reduce.reduce import reduce_output
from compactd.core.reduce.shown import ShownLines
from compactd.core.tokens.counting import messages_tokens
from compactd.core.work.file_operations import arguments_of
from compactd.formats.messages.neutral_out import encode_message
from compactd.formats.messages.result_texts import with_texts
from compactd.protocol.messages import Message, Text, ToolCall, ToolResult
from compactd.protocol.settings import ReduceLevel
from compactd.session.given_output import GivenOutput
from compactd.session.session import Session

T = TypeVar("T")

LOOKALIKES = "lookalikes"
"""The rule that changes what looks like a mark of compactd in an output."""
SMALL_CHARS = 2_000
"""The most characters of an output whose tokens are counted on the event loop (< 1 ms)."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What to show of an output."""

    text: str
    tokens_before: int
    tokens_after: int
    rules: tuple[str, ...] = ()
    """The rules that acted; empty if nothing is left out."""
    entry_id: EntryId | None = None
    """Where the original is; None if nothing was reduced."""
    commit_id: int | None = None
    """The number of the journal record that must be on disk, for `Session.wait_durable`; None if there is
    none."""


class ReducedMessages(Struct, frozen=True, kw_only=True):
    """Messages whose tool results were reduced. Append them at once, before anything else is awaited."""

    read: tuple[tuple[Message, Raw], ...]
    tokens: tuple[int, ...]
    outputs: tuple[Reduced, ...]
    """The originals of those that were reduced now."""
    links: Mapping[int, tuple[OutputLink, ...]]
    """By index of the message, where it shows reduced outputs."""

    def added_to(self, new: AppendRequest) -> AppendRequest:
        """Return `new` with these messages instead of its own."""
        return msgspec.structs.replace(
            new, read=self.read, tokens=self.tokens, outputs=self.outputs, links=self.links
        )


async def reduce_given(session: Session, given: GivenOutput, level: ReduceLevel, *, observe: bool) -> Outcome:
    """Return what to show of an output, and write its original to the journal if something is left out.

    With `observe`, nothing is reduced: only counts are written. If this output of this call was reduced
    before, the result is the same again. Nothing is on disk yet: wait for `commit_id`. Call it in the
    session's queue and hold the turn. Raises `SessionLocked`, `StorageFailed`. O(length), in a worker.
    """
    session.require_journal()
    if len(given.text) <= SMALL_CHARS and not session.counts_in_worker(len(given.text)):
        tokens = session.counter.count(given.text)
        if tokens < session.resolved.settings.reduce_min_tokens and defuse(given.text) == given.text:
            return Outcome(text=given.text, tokens_before=tokens, tokens_after=tokens)
    async with session.reducing:
        known, entry, tokens = await _attempt(
            session, level, lambda one: one.reduce_once(given), is_compared=given.is_compared
        )
        if entry is None:
            return Outcome(text=given.text, tokens_before=tokens, tokens_after=tokens)
        if not observe:
            # If it was reduced before, its entry may still be on the way to the disk.
            commit_id = session.require_journal().last if known else session.write(entry)
            return msgspec.structs.replace(_outcome(entry), commit_id=commit_id)
        number = session.write(
            ReductionObserved(
                at=entry.at,
                name=entry.name,
                tokens=entry.tokens,
                tokens_shown=entry.tokens_shown,
                rules=entry.rules,
            )
        )
        return msgspec.structs.replace(_outcome(entry), text=given.text, entry_id=None, commit_id=number)


async def reduce_messages(
    session: Session, read: Sequence[tuple[Message, Raw]], level: ReduceLevel
) -> ReducedMessages:
    """Return `read` with the texts of its tool results reduced. Nothing is written yet.

    Messages whose id the session has already are left alone. Call it in the session's queue and hold the
    turn, or as a step of the daemon's own loop. O(bytes), in a worker.
    """
    session.require_journal()
    async with session.reducing:
        return await _attempt(session, level, lambda one: one.reduce_all(read))


async def _attempt(
    session: Session, level: ReduceLevel, work: Callable[[_Attempt], T], *, is_compared: bool = True
) -> T:
    """Run `work` in a worker until the session has not changed meanwhile. Return its result."""
    while True:
        attempt = _Attempt(session, level, is_compared=is_compared)
        try:
            done = await session.host.in_worker(partial(attempt.run, work))
        except BaseException:
            # If this task was cancelled, the worker may still read into the view's index.
            session.drop_shown_view()
            raise
        if attempt.is_valid:
            return done


class _Attempt:
    """One attempt to reduce outputs of a session as it is now."""

    def __init__(self, session: Session, level: ReduceLevel, *, is_compared: bool) -> None:
        state = session.state
        self._session = session
        self._shown = session.shown_view()
        self._lines = ShownLines()
        self._news = self._shown.news(state) if is_compared else None
        self._counter = session.counter
        self._outputs = state.outputs
        self._clients = state.clients
        self._least = session.resolved.settings.reduce_min_tokens
        self._level: ReduceLevel = level
        self._at = session.host.now()
        self._parent = state.leaf
        self._next_id = state.next_id
        self._epoch = state.view_epoch
        self._entries: list[Reduced] = []

    @property
    def is_valid(self) -> bool:
        """Whether the next entry of the session still gets the id that the marks name, and the view is the
        same. Call it on the event loop."""
        session = self._session
        return (
            session.state.next_id == self._next_id
            and session.state.view_epoch == self._epoch
            and session.shown_view() is self._shown
        )

    def run(self, work: Callable[[_Attempt], T]) -> T:
        """Read what the view shows now, then do `work`. Call it in a worker."""
        if self._news is not None:
            self._shown.follow(self._news)
            self._lines = self._shown.lines
        return work(self)

    def reduce_once(self, given: GivenOutput) -> tuple[bool, Reduced | None, int]:
        """Return (whether this output of this call was reduced before, its entry or None if nothing is left
        out, the tokens of the text)."""
        known = self._find_known(given)
        if known is not None:
            return True, known, known.tokens[0]
        entry, tokens = self._reduce(given)
        return False, entry, tokens

    def reduce_all(self, read: Sequence[tuple[Message, Raw]]) -> ReducedMessages:
        """Return the messages with their tool results reduced."""
        made: list[tuple[Message, Raw]] = []
        links: dict[int, tuple[OutputLink, ...]] = {}
        calls: dict[str, ToolCall] = {}
        named: set[str] = set()
        for index, (message, raw) in enumerate(read):
            is_known = message.id is not None and (message.id in self._clients or message.id in named)
            named.add(message.id or "")
            texts: dict[tuple[int, int | None], str] = {}
            shows: list[OutputLink] = []
            for at, block in enumerate(message.content):
                if isinstance(block, ToolCall):
                    calls[block.call_id] = block
                elif isinstance(block, ToolResult) and not is_known:
                    call = calls.get(block.call_id) or self._shown.call(block.call_id)
                    for part, given in _outputs_in(block, call):
                        entry = self._find_known(given) or self._reduce(given)[0]
                        if entry is not None:
                            texts[at, part] = entry.shown
                            shows.append(OutputLink(at, part, entry.id, True))
            made.append(with_texts(message, raw, texts) if texts else (message, raw))
            if shows:
                links[index] = tuple(shows)
        counts = messages_tokens([message for message, _ in made], self._counter)
        return ReducedMessages(
            read=tuple(made), tokens=tuple(counts), outputs=tuple(self._entries), links=links
        )

    def _find_known(self, given: GivenOutput) -> Reduced | None:
        """Return the entry of the same output of the same call, if it was reduced before."""
        entry_id = None if given.call_id is None else self._outputs.of_call.get(given.call_id)
        if entry_id is None:
            return None
        entry = self._outputs.entries[entry_id]
        if given.text == entry.shown:
            return entry
        original = self._outputs.items[entry_id].decoded().message
        return entry if text_of_output(original) == given.original else None

    def _reduce(self, given: GivenOutput) -> tuple[Reduced | None, int]:
        """Return (the entry for an output that can be reduced, otherwise None; the tokens of its text)."""
        tokens = shown = self._counter.count(given.original)
        entry_id = f"e{int(self._next_id[1:]) + len(self._entries)}"
        made = Reduction(given.text)
        if tokens >= self._least:
            call = ToolCall(call_id=given.call_id or "", name=given.name, arguments=given.arguments)
            output = ToolOutput(given.name, arguments_of(call), given.text, given.is_error)
            made = reduce_output(output, self._lines, entry_id, self._level)
            shown = self._counter.count(made.text)
        if made.text == given.text or shown >= tokens:
            # Whatever its size, an output must not look as if compactd had left something out.
            text = defuse(given.text)
            if text == given.text:
                return None, tokens
            made, shown = Reduction(text, (LOOKALIKES,)), self._counter.count(text)
        result = ToolResult(
            call_id=given.call_id or "", name=given.name, content=given.original, is_error=given.is_error
        )
        entry = Reduced(
            id=entry_id,
            at=self._at,
            tokens=(tokens, self._counter.name),
            name=given.name,
            message=Raw(encode_message(Message(role="tool", content=(result,)))),
            arguments=given.arguments,
            shown=made.text,
            tokens_shown=shown,
            rules=made.rules,
            level=self._level,
            parent=self._parent,
            call_id=given.call_id or None,
            refers=made.entry_ids,
            is_error=given.is_error,
        )
        self._entries.append(entry)
        return entry, tokens


def _outputs_in(result: ToolResult, call: ToolCall | None) -> Iterator[tuple[int | None, GivenOutput]]:
    """Yield (index in the result's blocks, or None for the whole result; the output) for each text of a tool
    result."""
    named = GivenOutput(
        name=result.name or (call.name if call is not None else ""),
        arguments=Raw(b"{}") if call is None else call.arguments,
        text="",
        call_id=result.call_id,
        is_error=result.is_error,
    )
    if isinstance(result.content, str):
        inner = _text_in(result.content, "error" if result.is_error else "output")
        if inner is None:
            yield None, msgspec.structs.replace(named, text=result.content)
        else:
            yield None, msgspec.structs.replace(named, text=inner, wrapped=result.content)
        return
    for part, block in enumerate(result.content):
        if isinstance(block, Text):
            yield part, msgspec.structs.replace(named, text=block.text)


def _text_in(text: str, field: str) -> str | None:
    """Return the text that Gemini's `response` has in its only field; None if the text is no such object.
    compactd puts a plain text into such an object again when it writes a request for Gemini."""
    if not text.startswith("{"):
        return None
    try:
        given = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        return None
    return given.get(field) if len(given) == 1 else None


def _outcome(entry: Reduced) -> Outcome:
    return Outcome(
        text=entry.shown,
        tokens_before=entry.tokens[0],
        tokens_after=entry.tokens_shown,
        rules=entry.rules,
        entry_id=entry.id,
    )

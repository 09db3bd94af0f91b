"""A session in this process: every step that a client can take, and the laws that must hold after each.

The laws are those of docs/dev/behaviour.md, "Laws"; docs/laws.md says which test keeps which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from compactd.agent import model_switch, recovery, turns
from compactd.agent.recovery import FailedRequest
from compactd.compaction.run import compact, prune
from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import Entry, Item, Opened, View
from compactd.core.history.message_kinds import is_request, newest_request
from compactd.core.history.projection import project
from compactd.core.history.state import replay
from compactd.core.planning.request import CompactRequest
from compactd.core.tokens.counting import message_tokens
from compactd.core.work.file_operations import ledger_of, use_of
from compactd.formats.files.journal_messages import decoder_of
from compactd.formats.messages.base import RENDERABLE, read_messages, render
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import CannotFit, CompactdError, NothingToUndo
from compactd.protocol.messages import (
    CompactionEnd,
    CompactionResult,
    CompactionStart,
    Message,
    Meta,
    Text,
    Tool,
    Usage,
)
from compactd.protocol.settings import GivenSettings
from compactd.session import redact as redacting
from compactd.session import undo
from compactd.session.follower import decode_entries
from compactd.session.session import Session
from compactd.storage.memory_journal import MemoryJournal
from tests.support.quiet_world import Quiet, done
from tests.support.rendered import problems

MOST_ATTEMPTS = 3
"""Smaller requests after a rejection (docs/dev/behaviour.md, "Overflow")."""

SNUG = GivenSettings(context_window=4_000)


def opened(world: Quiet, profile: str, given: GivenSettings = SNUG) -> Session:
    """Return a session that was just started under this profile."""
    first = Opened(v=1, id="s", at=world.now())
    session = _session(world, (first,))
    session.configure("start", compaction=replace(given, profile=profile))
    return session


def _session(world: Quiet, entries: Sequence[Entry]) -> Session:
    journal = MemoryJournal()
    journal.append([msgspec.json.encode(entry) for entry in entries])
    return Session(world, "s", journal, entries, persistent=False)


def reopened(session: Session, upto: int | None = None) -> Session:
    """Return a new session, opened from the bytes of the journal or of its first `upto` records."""
    records = [msgspec.json.encode(entry) for entry in session.entries[:upto]]
    assert isinstance(session.host, Quiet)
    return _session(session.host, decode_entries(records))


def whole(session: Session) -> int:
    """Return the tokens of the whole next request, with each message counted again."""
    projection = project(session.state.view().items, session.counter)
    counted = sum(message_tokens(each.message, session.counter) for each in projection.messages)
    assert projection.tokens == counted
    return projection.tokens + sum(session.state.fixed)


class Life:
    """One session, the messages that were acknowledged, and those that may be gone."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.said: dict[str, bytes] = {}
        """The acknowledged bytes of each entry, by entry id."""

    # --- what a client does ---------------------------------------------------------------------------

    def append(
        self,
        messages: Sequence[Message],
        report: Usage | None = None,
        epoch: int | None = None,
        *,
        files: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
        ends_turn: bool = False,
    ) -> None:
        """Appends, with a usage report of any epoch."""
        # As the daemon takes them in: the bytes are the client's, the values are read from them.
        read = read_messages([Raw(encode_message(message)) for message in messages])
        new = AppendRequest(
            read=read,
            tokens=tuple(self.session.count_message(message) for message, _ in read),
            report=None if report is None else (report, True),
            epoch=epoch,
            files_read=files[0],
            files_modified=files[1],
        )
        taken = self.session.append(new)
        if ends_turn:
            turns.emit_end(self.session, taken, new.stop_reason)
        assert len(taken.intake.entry_ids) == len(messages)
        acknowledged = zip(taken.intake.entry_ids, (bytes(raw) for _, raw in read), strict=True)
        self.said.update(acknowledged)

    def compact(self, request: CompactRequest, *, twice: bool = True) -> CompactionResult | None:
        """A compaction: laws 2, 7 and, with `twice`, 8."""
        session = self.session
        before, size, earlier = shown(session), whole(session), _files(session.state.items)
        result = self._compacted_alike(request) if twice else _tried(session, request)
        if not isinstance(result, CompactionResult):
            assert shown(session) == before
            return None
        assert (result.tokens_before, result.tokens_after) == (size, whole(session))
        self._request_is_told(before, request, result)
        if result.compacted:
            assert result.tokens_after < size
            assert result.tokens_after <= (request.target_tokens or size)
            self._files_stay(earlier, result)
        else:
            assert result.reason
            assert shown(session) == before
        then = shown(session)
        again = _tried(session, request)
        assert isinstance(again, CompactionResult)
        assert (again.compacted, shown(session)) == (False, then)
        return result

    def _request_is_told(
        self, before: tuple[View, list[Message]], request: CompactRequest, result: CompactionResult
    ) -> None:
        """Law 6: a compaction condenses the newest request only if it is more than a third of the target, and
        says so."""
        view, messages = before
        newest = newest_request(self.session.state.path_items())
        if newest is None:
            return
        entry_id = self.session.state.path_items()[newest].entry_id
        at = next(n for n, item in enumerate(view.items) if item.entry_id == entry_id)
        now = next(item for item in self.session.state.view().items if item.entry_id == entry_id)
        if result.condensed_request is UNSET:
            assert _texts(now.message) == _texts(messages[at])
            return
        assert result.condensed_request == entry_id
        assert now.tokens < view.items[at].tokens
        assert request.chosen_target is not None
        assert 3 * view.items[at].tokens > request.chosen_target

    def _compacted_alike(self, request: CompactRequest) -> CompactionResult | CompactdError:
        """Law 8: it was tried before without a trace, and a twin from the same journal does the same."""
        session, before = self.session, shown(self.session)
        twin = reopened(session)
        tried = _tried(session, request, dry_run=True)
        assert shown(session) == before
        result, same = _tried(session, request), _tried(twin, request)
        if isinstance(result, CompactionResult):
            assert isinstance(same, CompactionResult)
            assert isinstance(tried, CompactionResult)
            untimed = {"created_at": 0.0, "duration_ms": 0}
            assert replace(same, **untimed) == replace(result, **untimed)
            assert (tried.tokens_after, tried.summary) == (result.tokens_after, result.summary)
        else:
            assert isinstance(same, CompactdError)
            assert same.data == result.data
        assert shown(twin) == shown(session)
        return result

    def begin(self) -> None:
        """The check before a model request."""
        try:
            begun = done(turns.begin(self.session))
        except CannotFit:
            return
        if begun.compaction is not None and begun.compaction.compacted:
            assert begun.compaction.tokens_after < begun.compaction.tokens_before

    def rejected(self, failed: FailedRequest) -> None:
        """Law 3: a provider that rejects whatever it is sent; each attempt sends less, and they end."""
        sent = whole(self.session)
        for _ in range(MOST_ATTEMPTS):
            if not done(recovery.recover(self.session, failed)).retry:
                return
            smaller = whole(self.session)
            assert smaller < sent
            sent = smaller
        assert not done(recovery.recover(self.session, failed)).retry

    def change(self, how: str) -> None:
        """Undo, redo or prune; where that cannot be, nothing changes."""
        before = shown(self.session)
        try:
            match how:
                case "undo":
                    undo.undo(self.session)
                case "redo":
                    undo.redo(self.session)
                case _:
                    size = whole(self.session)
                    pruning = done(prune(self.session))
                    assert size - whole(self.session) == pruning.tokens_saved
        except (NothingToUndo, CannotFit):
            assert shown(self.session) == before

    def branch(self, at: int) -> None:
        """Goes on from any entry."""
        known = [*self.session.state.originals, *self.session.state.steps]
        if known:
            undo.branch(self.session, known[-1 - at % len(known)])

    def pin(self, at: int, is_on: bool) -> None:
        """Pins any message, or lets it go."""
        if self.said:
            self.session.pin([list(self.said)[at % len(self.said)]], is_on)

    def redact(self, at: int) -> None:
        """Takes any message's words out."""
        if self.said:
            entry_id = list(self.said)[at % len(self.said)]
            done(redacting.redact(self.session, [entry_id]))
            del self.said[entry_id]

    def configure(
        self, given: GivenSettings, system: str | None = None, tools: Sequence[Tool] | None = None
    ) -> None:
        """Other settings, another system prompt, other tools."""
        offered = None if tools is None else tuple((tool, Raw(msgspec.json.encode(tool))) for tool in tools)
        self.session.configure("configure", compaction=given, system_prompt=system, tools=offered)

    def switch(self, model: str) -> None:
        """Another model; where the conversation does not fit there, the old one stays."""
        old = self.session.state.model
        try:
            done(model_switch.switch(self.session, model, None))
        except CannotFit:
            assert self.session.state.model == old

    # --- the laws -------------------------------------------------------------------------------------

    def laws_hold(self) -> None:
        """Laws 1, 4, 6 and 9, and that each start of a compaction had its end."""
        session = self.session
        self.views_are_valid()
        originals = session.state.originals
        assert {entry: bytes(originals[entry].source or b"") for entry in self.said} == self.said
        newest_stays(session)
        assert session.operation is None
        again = reopened(session)
        assert shown(again) == shown(session)
        assert numbers(again) == numbers(session)
        scratch = replay(session.entries, decoder_of(session.entries))
        assert scratch.view().epoch == session.state.epoch
        assert [item.entry_id for item in scratch.items] == [item.entry_id for item in session.state.items]
        assert isinstance(session.host, Quiet)
        open_ones = 0
        for event in session.host.events:
            open_ones += isinstance(event, CompactionStart) - isinstance(event, CompactionEnd)
            assert open_ones in (0, 1)
        assert open_ones == 0
        session.host.events.clear()

    def views_are_valid(self) -> None:
        """Law 1, in every format."""
        session = self.session
        projection = project(session.state.view().items, session.counter)
        model = session.state.model.model
        for name in RENDERABLE:
            rendered = render(name, session.state.system_prompt, session.tools(), projection, model)
            assert (name, problems(name, rendered, model)) == (name, [])

    def _files_stay(self, earlier: tuple[set[str], set[str]], result: CompactionResult) -> None:
        """Law 7."""
        read, modified = set(result.read_files), set(result.modified_files)
        assert not read & modified
        assert earlier[1] <= modified
        assert earlier[0] <= read | modified
        if result.messages_removed:
            stays = {item.entry_id for item in self.session.state.items}
            gone = [item for item in self.session.state.path_items() if item.entry_id not in stays]
            ledger = ledger_of(map(use_of, gone))
            assert set(ledger.read) <= read | modified
            assert set(ledger.modified) <= modified


def newest_stays(session: Session) -> None:
    """Law 6: what a person asked last on this branch is in the view, word for word or, if a compaction in
    force condensed it, as a person's request with a mark that names the entry."""
    path = session.state.path_items()
    newest = newest_request(path)
    if newest is None:
        return
    shown = {item.entry_id: item for item in session.state.items}
    asked = path[newest]
    assert asked.entry_id in shown
    now = shown[asked.entry_id]
    if _texts(now.message) != _texts(asked.message):
        assert any(
            stub.entry_id == asked.entry_id for step in session.state.in_force.steps for stub in step.stubs
        )
        assert (now.kind, now.message.role) == ("stub", "user")
        assert f"session/expand {asked.entry_id} shows all" in "".join(_texts(now.message))
        assert is_request(now.message)
        assert len(now.message.content) == len(asked.message.content)


def _texts(message: Message) -> list[str]:
    return [block.text for block in message.content if isinstance(block, Text)]


def _tried(
    session: Session, request: CompactRequest, *, dry_run: bool = False
) -> CompactionResult | CompactdError:
    try:
        return done(compact(session, request, dry_run=dry_run))
    except CannotFit as error:
        return error


def shown(session: Session) -> tuple[View, list[Message]]:
    """The view by its values: each item without the bytes and the state of its decoding."""
    view = session.state.view()
    plain = tuple(replace(item, body=_NOTHING, source=None) for item in view.items)
    return replace(view, items=plain), [item.message for item in view.items]


_NOTHING = Message(role="user", content=())


def numbers(session: Session) -> tuple[object, ...]:
    """Return other values that a restart must not change."""
    return (
        session.token_usage(),
        session.size,
        session.decision,
        session.pending.call_ids,
        session.state.pinned_by_id(),
        session.state.in_force.steps,
        session.state.in_force.last_undone,
        session.state.model,
        session.resolved,
        session.state.next_id,
    )


def _files(items: Iterable[Item]) -> tuple[set[str], set[str]]:
    """(read, modified) that the view's summary lists."""
    metas = [item.message.meta or Meta() for item in items if item.kind == "summary"]
    return {f for meta in metas for f in meta.read_files}, {f for meta in metas for f in meta.modified_files}

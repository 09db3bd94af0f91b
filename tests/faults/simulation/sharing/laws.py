"""What each program may get from a shared daemon: a model of it that is checked at each message.

The model knows only what went over the connections, and which events the sessions had. It is checked when the
daemon writes a message, not when the program reads it. What is wrong is kept in `Laws.wrong`, because an
exception would be answered like any other of a handler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from compactd.daemon.rpc.envelope import Envelope
from compactd.daemon.sharing.client import BEHIND_BYTES, LOST_BYTES
from compactd.daemon.sharing.clients import DROPPABLE, GRACE_S
from compactd.daemon.sharing.event_log import MAX_BYTES, MAX_EVENTS, event_body
from compactd.protocol.messages import AgentEnd, AgentError, AgentStart, Event, MessageAppended, SessionClosed
from compactd.session.host import acting
from tests.faults.simulation.sharing.link import Link

MEMBERSHIP = ("session/start", "session/close", "session/subscribe", "session/unsubscribe")
CANCELLED = -32800
REFUSALS = {
    1001: "not open",
    1002: "busy",
    1004: "locked",
    1006: "provider failed",
    1008: "cannot fit",
    1011: "nothing to undo",
    CANCELLED: "cancelled",
}
"""The errors that a request may get while the disk is well."""
SLACK_S = 2.0
"""Seconds that what follows the end of a grace period may take."""

Told = dict[str, Any]
OnAnswer = Callable[[Link, int, str, Told, Told | None], None]
"""The request's id, method and params, and the result; None for an error."""


class Emitted(Struct):
    """One event of a session."""

    body: bytes
    is_delta: bool
    is_message: bool


class Hearing(Struct):
    """What one connection gets of one session."""

    state: str = "no"
    """Whether it gets the events: `no`, `yes`, or `maybe` while a request about that is being handled."""
    before: str = "no"
    """What `state` was before that request."""
    pending: str | None = None
    """The method of that request."""
    since: int | None = None
    """Its `since_seq`."""
    is_dropped: bool = False
    """Whether `events_dropped` came while that request was being handled."""
    last: int | None = None
    """The number of the newest event that it got, or that it got by another way: an answer's `seq`."""
    may_miss: set[int] = set()
    """Numbers of deltas that need not come, because too much waited for the program."""
    is_seated: bool = False
    """Whether it has the session open."""
    may_have_closed: bool = False
    """Whether its request to close the session was cancelled, and it has not opened it since."""
    has_closed: bool = False
    """Whether it has closed the session since it opened it or gave a prompt in it."""
    has_prompted: bool = False
    """Whether it has given a prompt."""
    has_opened: bool = False
    """Whether it has asked to open it, and what it called itself."""
    name: str | None = None
    answers: bool = False
    has_hook: bool = False


class Question(Struct):
    """A request of the daemon to a program."""

    link: Link
    session_id: str
    turn_id: str
    call_id: str
    id: bytes
    open_links: tuple[Link, ...]
    """The connections of programs that had not left then, and have not closed the session."""


class Turn(Struct):
    """A prompt."""

    owner: Link | None = None
    is_left: bool = False
    """Whether its owner has closed the session since: another program may have it now."""
    began_at: float | None = None
    is_over: bool = False


class Laws:
    """All connections of one daemon, and what may go over them."""

    def __init__(self, now: Callable[[], float], note: Callable[[str], None]) -> None:
        self._now = now
        self._note = note
        self.wrong: list[str] = []
        self.links: list[Link] = []
        self.events: dict[str, list[Emitted]] = {}
        """The events of each session since it was opened. A session that is closed has none."""
        self.hearings: dict[tuple[Link, str], Hearing] = {}
        self.pending: dict[tuple[Link, bytes], tuple[str, Told]] = {}
        """The requests that wait for their answer."""
        self._left_prompts: set[tuple[Link, bytes]] = set()
        """Prompts that were given while their client closed the session."""
        self._replays: dict[Link, tuple[str, list[int], int]] = {}
        """Connections to which a session's older events are just being sent again: which session, the numbers
        that came, and how many come."""
        self._lost: set[tuple[Link, str, int]] = set()
        """Events instead of which a connection must get `events_dropped`."""
        self._asked: dict[bytes, Question] = {}
        self.questions: list[Question] = []
        """Those whose receiver is not checked yet."""
        self.turns: dict[tuple[str, str], Turn] = {}
        self._left_at: dict[str, float] = {}
        """By session, when a client last closed it or left."""
        self.on_answer: OnAnswer = lambda *_: None
        """Called with each answer."""

    def must(self, holds: object, why: str) -> bool:
        """Keep `why` if `holds` is false. Return whether it holds."""
        if not holds:
            self.wrong.append(why)
        return bool(holds)

    def hearing(self, link: Link, session_id: str) -> Hearing:
        """Return what a connection gets of a session."""
        return self.hearings.setdefault((link, session_id), Hearing())

    # --- the daemon -------------------------------------------------------------------------------------

    def on_emit(self, session_id: str, seq: int, event: Event) -> None:
        """Note an event that the daemon is about to send."""
        events = self.events.setdefault(session_id, [])
        is_next = seq == len(events) + 1
        self.must(is_next, f"{session_id}: event {seq} {type(event).__name__} comes after {len(events)}")
        if seq == 1:
            self._lost = {one for one in self._lost if one[1] != session_id}
        client = acting.get()
        body = event_body(session_id, seq, event, None if client is None else client.name_in(session_id))
        events.append(Emitted(body, isinstance(event, DROPPABLE), isinstance(event, MessageAppended)))
        for (link, heard), hearing in self.hearings.items():
            if heard == session_id:
                if events[-1].is_delta and link.out.unsent_bytes > BEHIND_BYTES:
                    hearing.may_miss.add(seq)
                elif not events[-1].is_delta and link.out.unsent_bytes > LOST_BYTES:
                    self._lost.add((link, session_id, seq))
        match event:
            case AgentStart(turn_id=turn_id):
                self._turn(session_id, turn_id).began_at = self._now()
            case AgentEnd(turn_id=turn_id) | AgentError(turn_id=turn_id):
                self._turn(session_id, turn_id).is_over = True
            case SessionClosed():
                # The next one that opens it finds the queued prompts without an owner.
                self.check_questions()
                self.events[session_id] = []
                self.turns = {key: turn for key, turn in self.turns.items() if key[0] != session_id}
            case _:
                pass

    def _turn(self, session_id: str, turn_id: str) -> Turn:
        return self.turns.setdefault((session_id, turn_id), Turn())

    # --- from the program -------------------------------------------------------------------------------

    def on_request(self, link: Link, message: Envelope) -> None:
        """Note a message of a program that the daemon is about to handle."""
        if message.method is UNSET:
            self._asked = {key: one for key, one in self._asked.items() if not _is_answer(one, link, message)}
            return
        if message.id is UNSET or message.params is UNSET:
            return
        params: Told = msgspec.json.decode(bytes(message.params))
        self.pending[link, bytes(message.id)] = (message.method, params)
        if message.method == "agent/prompt":
            hearing = self.hearing(link, params["session_id"])
            hearing.has_closed, hearing.has_prompted = False, True
        if message.method not in MEMBERSHIP:
            return
        hearing = self.hearing(link, params["session_id"])
        hearing.pending, hearing.before, hearing.state = message.method, hearing.state, "maybe"
        if hearing.before == "no":
            hearing.last = None
        hearing.since, hearing.is_dropped = params.get("since_seq"), False
        if message.method == "session/start":
            told = params["client"]
            hearing.has_opened, hearing.has_closed, hearing.name = True, False, told["name"]
            hearing.answers = hearing.answers or told["answers"]
            hearing.has_hook = hearing.has_hook or told["compaction_hook"]

    # --- to the program ---------------------------------------------------------------------------------

    def on_body(self, link: Link, body: bytes) -> None:
        """Check a message that the daemon writes."""
        told: Told = msgspec.json.decode(body)
        method = told.get("method")
        if method is None:
            self._on_answer(link, msgspec.json.encode(told["id"]), told)
        elif method == "agent/event":
            self._on_event(link, body.rstrip(b"\n"), told["params"])
        elif method in ("tool/execute", "session/compacting"):
            self._on_question(link, method, told)
        elif method == "$/cancelRequest":
            id = msgspec.json.encode(told["params"]["id"])
            self._asked = {
                key: one for key, one in self._asked.items() if one.link is not link or one.id != id
            }

    def _on_answer(self, link: Link, id: bytes, told: Told) -> None:
        asked = self.pending.pop((link, id), None)
        if not self.must(asked is not None, f"{link.name} got an answer to {id!r}, which it has not asked"):
            return
        assert asked is not None
        method, params = asked
        error, result = told.get("error"), told.get("result")
        session_id = params.get("session_id", "")
        if error is not None:
            # The session of which it knew the message may have been deleted.
            is_allowed = error["code"] in REFUSALS or (method, error["code"]) == ("session/pin", -32602)
            self.must(is_allowed, f"{link.name} {method} failed: {error}")
            self._note(f"{link.name} {method} {session_id}: {REFUSALS.get(error['code'])}")
        else:
            self._note(f"{link.name} {method} {session_id}: done")
        code = None if error is None else error["code"]
        if method in MEMBERSHIP:
            self._on_membership(link, session_id, method, result, code)
        elif method == "agent/prompt" and result is not None:
            turn = self._turn(session_id, result["turn_id"])
            turn.owner, turn.is_left = link, (link, id) in self._left_prompts
        elif method == "session/delete" and result is not None:
            for (_, heard), hearing in self.hearings.items():
                if heard == session_id:
                    hearing.is_seated = hearing.may_have_closed = False
        self.on_answer(link, int(id), method, params, result)

    def _on_membership(
        self, link: Link, session_id: str, method: str, result: Told | None, code: int | None
    ) -> None:
        hearing = self.hearing(link, session_id)
        hearing.pending = None
        if result is None:
            hearing.state = "no" if hearing.before == "no" else "maybe"
            if method == "session/close" and code == CANCELLED:
                # If it had begun, the client has closed the session all the same.
                hearing.may_have_closed = True
                self._note_left(link, session_id)
            return
        if method in ("session/close", "session/unsubscribe"):
            hearing.state, hearing.last = "no", None
            if method == "session/close":
                hearing.is_seated = hearing.may_have_closed = False
                hearing.has_closed = not self._note_left(link, session_id)
                self._left_at[session_id] = self._now()
            return
        hearing.state = "maybe" if hearing.is_dropped else "yes"
        hearing.is_seated = hearing.is_seated or method == "session/start"
        hearing.may_have_closed = hearing.may_have_closed and method != "session/start"
        seq, count = result["seq"], len(self.events.get(session_id, ()))
        if not self.must(seq <= count, f"{link.name} {method} {session_id}: seq {seq}, only {count} events"):
            return
        if hearing.state == "yes":
            hearing.last = max(seq, hearing.last or 0)
            self._caught_up(link, session_id)
        if method == "session/subscribe" and hearing.since is not None:
            self._expect_replay(link, session_id, hearing.since, result)

    def _note_left(self, link: Link, session_id: str) -> bool:
        """Note that a program's prompts may now be another's. Return whether it is giving one."""
        for (one, _), turn in self.turns.items():
            turn.is_left = turn.is_left or (one == session_id and turn.owner is link)
        prompts = {
            key
            for key, (method, params) in self.pending.items()
            if key[0] is link and method == "agent/prompt" and params["session_id"] == session_id
        }
        self._left_prompts |= prompts
        return bool(prompts)

    def _expect_replay(self, link: Link, session_id: str, since: int, result: Told) -> None:
        seq, missed = result["seq"], result["missed"]
        told = f"{link.name} subscribes to {session_id} since {since}: {result}"
        if not self.must((missed is None) == (since > seq), told) or missed is None:
            return
        events = self.events[session_id][since:seq] if seq else []
        count = len(events) - missed
        # What must come: the messages, and what is in the newest bytes.
        sizes, least = 0, 0
        for at, one in enumerate(reversed(events)):
            sizes += len(one.body)
            least += one.is_message or (sizes <= MAX_BYTES and at < MAX_EVENTS)
        self.must(least <= count <= len(events), f"{told}, of {len(events)}; at least {least} must come")
        if count > 0:
            self._replays[link] = (session_id, [since], count)

    def _on_event(self, link: Link, body: bytes, told: Told) -> None:
        session_id, seq, kind = told["session_id"], told["seq"], told["type"]
        where = f"{link.name} gets event {seq} {kind} of {session_id}"
        if link in self._replays:
            self._on_replayed(link, body, told, where)
            return
        hearing = self.hearing(link, session_id)
        if not self.must(hearing.state != "no", f"{where}, which it neither opened nor subscribed to"):
            return
        if kind == "events_dropped":
            is_lost = (link, session_id, seq) in self._lost and told["resume_after"] == seq - 1
            self.must(is_lost, f"{where}, although it reads")
            self._check_gap(link, session_id, seq)
            hearing.state, hearing.last = ("no" if hearing.pending is None else "maybe"), None
            hearing.before, hearing.is_dropped = "no", True
            return
        if kind != "session_closed":
            events = self.events.get(session_id, [])
            is_same = 0 < seq <= len(events) and events[seq - 1].body == body
            self.must(is_same, f"{where}, which is not what happened")
        self.must(hearing.last is None or seq > hearing.last, f"{where} after {hearing.last}")
        if hearing.state == "yes":
            self._check_gap(link, session_id, seq)
        hearing.last = seq
        if kind == "session_closed":
            hearing.state, hearing.last = ("no" if hearing.pending is None else "maybe"), None
            hearing.before, hearing.is_seated, hearing.may_have_closed = "no", False, False

    def _on_replayed(self, link: Link, body: bytes, told: Told, where: str) -> None:
        session_id, seqs, count = self._replays[link]
        seq = told["seq"]
        is_in_order = told["session_id"] == session_id and seq > seqs[-1]
        self.must(is_in_order, f"{where}, which came out of order in a replay after {seqs[-1]}")
        events = self.events.get(session_id, [])
        is_same = 0 < seq <= len(events) and events[seq - 1].body == body
        self.must(is_same, f"{where} again, which is not what happened")
        seqs.append(seq)
        if len(seqs) > count:
            del self._replays[link]

    def _check_gap(self, link: Link, session_id: str, seq: int) -> None:
        """Check that all events before `seq` came, except deltas for which there was no room."""
        hearing = self.hearing(link, session_id)
        if hearing.last is None:
            return
        missing = [at for at in range(hearing.last + 1, seq) if at not in hearing.may_miss]
        self.must(not missing, f"{link.name} did not get the events {missing} of {session_id}")
        hearing.may_miss = {at for at in hearing.may_miss if at >= seq}

    def _caught_up(self, link: Link, session_id: str) -> None:
        """Check that a connection got all events so far."""
        hearing, count = self.hearing(link, session_id), len(self.events.get(session_id, ()))
        self._check_gap(link, session_id, count + 1)
        hearing.last = count

    # --- questions --------------------------------------------------------------------------------------

    def _on_question(self, link: Link, method: str, told: Told) -> None:
        params, id = told["params"], msgspec.json.encode(told["id"])
        session_id = params["session_id"]
        hearing = self.hearing(link, session_id)
        call_id = params.get("call_id", "compaction")
        for one in self._asked.values():
            is_same = (one.session_id, one.call_id) == (session_id, call_id)
            self.must(
                not is_same or not one.link.is_open,
                f"{method} {call_id} of {session_id} is asked of {link.name} and of {one.link.name}",
            )
        open_links = tuple(one for one in self.links if self._is_there(one, session_id))
        asked = Question(link, session_id, params.get("turn_id", ""), call_id, id, open_links)
        self._asked[link.name.encode() + id] = asked
        if method == "session/compacting":
            self.must(hearing.has_hook, f"{link.name} is asked about a compaction of {session_id}")
        else:
            self.must(not hearing.has_closed, f"{link.name} is asked for {session_id}, which it has closed")
            self.questions.append(asked)

    def _is_there(self, link: Link, session_id: str) -> bool:
        """Return whether a program is connected, and neither has closed a session nor is closing it."""
        hearing = self.hearing(link, session_id)
        return link.is_open and not hearing.has_closed and hearing.pending != "session/close"

    def check_questions(self) -> None:
        """Check that each tool call went to the program that gave the prompt, or to its successor."""
        for one in self.questions:
            turn = self._turn(one.session_id, one.turn_id)
            hearing = self.hearing(one.link, one.session_id)
            owner = turn.owner
            told = f"{one.call_id} of {one.session_id} {one.turn_id} went to {one.link.name}"
            if owner is None:
                # The session was closed meanwhile, or it is a prompt of an earlier daemon.
                may_answer = hearing.has_opened or hearing.has_prompted
                self.must(may_answer, f"{told}, which never opened the session")
                continue
            if owner is not one.link:
                is_owners = owner in one.open_links and not turn.is_left
                self.must(not is_owners, f"{told}, but {owner.name} gave the prompt")
                is_successor = hearing.answers or hearing.name in self._names_of_successors(
                    owner, one.session_id
                )
                self.must(is_successor and hearing.has_opened, f"{told}, not a successor of {owner.name}")
        self.questions.clear()

    def _names_of_successors(self, owner: Link, session_id: str) -> set[str]:
        """Return the names of programs that may answer for `owner`: its own, and those of its heirs."""
        heirs = [one for (_, heard), one in self.hearings.items() if heard == session_id and one.answers]
        names = [one.name for one in (self.hearing(owner, session_id), *heirs)]
        return {name for name in names if name is not None}

    # --- who has what open ------------------------------------------------------------------------------

    def on_gone(self, link: Link) -> None:
        """Forget a connection that the daemon has ended."""
        for (one, session_id), hearing in self.hearings.items():
            if one is link:
                hearing.state, hearing.is_seated, hearing.pending = "no", False, None
                hearing.may_have_closed = False
                self._left_at[session_id] = self._now()
        self.pending = {key: asked for key, asked in self.pending.items() if key[0] is not link}
        self._asked = {key: one for key, one in self._asked.items() if one.link is not link}
        self.links.remove(link)

    def members(self, session_id: str) -> tuple[set[str], set[str]]:
        """Return the names of the connections (that have a session open, that may have it open)."""
        found: tuple[set[str], set[str]] = (set(), set())
        for (link, one), hearing in self.hearings.items():
            if one == session_id and hearing.is_seated:
                found[hearing.may_have_closed].add(link.name)
        return found

    def check_rest(self) -> None:
        """Check what must hold when all requests are answered: everybody got every event."""
        for (link, session_id), hearing in self.hearings.items():
            if hearing.state == "yes":
                self._caught_up(link, session_id)
        self.check_questions()

    def check_turn(self, session_id: str, turn_id: str) -> None:
        """Check that a prompt that is being answered is not one that nobody reads any more."""
        turn = self._turn(session_id, turn_id)
        self.must(not turn.is_over, f"{turn_id} of {session_id} is over and still answered")
        owner = turn.owner
        if owner is None or self._is_there(owner, session_id) or turn.began_at is None:
            return
        names = self._names_of_successors(owner, session_id)
        opened = [self.hearing(link, session_id) for link in self.links if self._is_there(link, session_id)]
        if any(one.has_opened and (one.answers or one.name in names) for one in opened):
            return
        since = max(owner.closed_at or 0.0, turn.began_at, self._left_at.get(session_id, 0.0))
        waited_s = self._now() - since
        self.must(
            waited_s <= GRACE_S + SLACK_S,
            f"{turn_id} of {session_id} has had no client for {waited_s:.1f} seconds",
        )


def _is_answer(asked: Question, link: Link, message: Envelope) -> bool:
    return asked.link is link and message.id is not UNSET and asked.id == bytes(message.id)

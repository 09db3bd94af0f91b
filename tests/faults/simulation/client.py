"""The simulated client of one session: its random requests, and what it knows from the answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random

import msgspec
from msgspec import Raw

from compactd.agent import turns
from compactd.compaction.run import compact, prune
from compactd.core.budget.profiles import PROFILES
from compactd.core.history.append import AppendRequest
from compactd.core.planning.request import CompactRequest
from compactd.formats.messages.base import read_messages
from compactd.protocol.errors import (
    CannotFit,
    CompactdError,
    NothingToUndo,
    SessionBusy,
    SessionCorrupt,
    StorageFailed,
)
from compactd.protocol.settings import GivenSettings
from compactd.session import redact as redacting
from compactd.session import undo as rewinding
from compactd.session.manager import Sessions, Start
from compactd.session.session import Session
from compactd.storage.protocols import Durability
from tests.faults.simulation.watched import Kept, Reference, must
from tests.properties.life import newest_stays, numbers, reopened, shown

WORDS = ["so", "we", "went", "on", "and", "looked", "at", "it", "once", "more", "until", "all", "was", "well"]
_LENGTHS = (*(3, 5, 10, 20) * 4, 40, 100, 600)
REFUSALS = (NothingToUndo, CannotFit, SessionBusy)
"""Errors that a request may get on a healthy disk."""

Ask = Callable[["Client", Session], Coroutine[object, object, None]]


class Client:
    """One client of the daemon. It raises `AssertionError` for what it finds wrong."""

    def __init__(self, name: str, dice: Random, reference: Reference, note: Callable[[str], None]) -> None:
        self.name = name
        self.durability: Durability = "disk" if dice.random() < 0.8 else "os"
        self._profile = dice.choice(tuple(PROFILES))
        self._window = dice.choice((2_000, *(200_000,) * 5))
        self._dice = dice
        self._reference = reference
        self._kept: Kept | None = None
        """The session it uses. After a deletion without an answer there may be another one."""
        self._note = note
        self._made = 0
        self.said: dict[str, bytes] = {}
        """The acknowledged bytes of each entry, in order."""
        self.path: list[str] = []
        """The entries on the branch that the session is on."""
        self._unanswered: list[list[Raw]] = []
        """Appends that got no answer. If they are sent again, they are stored once."""
        self._open_calls: list[str] = []
        self._is_path_known = True
        self.is_healthy = True
        """False where a refusal of the disk may be the answer."""

    # --- starting and looking ------------------------------------------------------------------------

    async def start(self, sessions: Sessions) -> Session | None:
        """Opens the session; compares what is in it with what it knows."""
        want = Start(
            session_id=self.name,
            durability=self.durability,
            compaction=GivenSettings(profile=self._profile, context_window=self._window),
        )
        try:
            started = await sessions.start(want)
        except SessionCorrupt:
            known = self._reference.sessions.get(self.name)
            must(known is not None and not known.acknowledged, "damaged, though it was synced")
            self._note("corrupt")
            await self.delete(sessions)
            return None
        except StorageFailed as error:
            must(not self.is_healthy, error.message)
            return None
        self._recognise()
        assert started.resumed or not self.said, "a session with messages was made anew"
        self._reference.maybe.discard(self.name)
        self.look(started.session, closely=self._dice.random() < 0.3)
        return started.session

    def forget(self) -> None:
        """Nothing of it is certain any more: it was deleted, or kept in the system's memory alone."""
        self.said.clear()
        self.path.clear()
        self._unanswered.clear()
        self._open_calls.clear()
        self._is_path_known = True

    def _recognise(self) -> None:
        """Forgets what it knows where the session that is there is not the one it knew."""
        kept = self._reference.sessions.get(self.name)
        if kept is not self._kept:
            self._kept = kept
            self.forget()

    def look(self, session: Session, *, closely: bool = True) -> None:
        """Everything that was acknowledged is there, in order, byte for byte; the laws hold."""
        originals = session.state.originals
        for entry_id, source in self.said.items():
            assert entry_id in originals, f"{entry_id} is gone"
            assert bytes(originals[entry_id].source or b"") == source, f"{entry_id} was changed"
        order = [entry_id for entry_id in originals if entry_id in self.said]
        assert order == list(self.said), "the order was changed"
        path = [item.entry_id for item in session.state.path_items()]
        if self._is_path_known:
            there = set(path)
            assert [one for one in self.path if one not in there] == [], "left the branch"
        self.path, self._is_path_known = [one for one in path if one in originals], True
        if not closely:
            return
        newest_stays(session)
        again = reopened(session)
        assert (shown(again), numbers(again)) == (shown(session), numbers(session)), "a replay differs"

    # --- asking -----------------------------------------------------------------------------------------

    async def ask(self, session: Session, what: str) -> None:
        """One request. A refusal that may be is an answer too."""
        self._recognise()
        epoch, leaf = session.state.epoch, len(session.entries)
        try:
            await _ASKS[what](self, session)
        except StorageFailed as error:
            must(not self.is_healthy, f"{what}: {error.message}")
            self._note(f"{self.name} {what}: refused by the disk")
        except REFUSALS as error:
            self._note(f"{self.name} {what}: {type(error).__name__}")
        else:
            self._note(f"{self.name} {what}: done, {len(session.entries) - leaf} entries")
            if what in ("undo", "redo", "branch", "redact"):
                assert session.state.epoch > epoch, f"{what} left the epoch as it was"

    async def append(self, session: Session) -> None:
        """Some messages; now and then some that were sent before and got no answer."""
        if self._unanswered and self._dice.random() < 0.5:
            raws = self._unanswered.pop(0)
        else:
            raws = [self._message() for _ in range(self._dice.choice((1, 1, 1, 2, 3, 6)))]
        read = read_messages(raws)
        self._unanswered.append(raws)
        new = AppendRequest(read=read, tokens=tuple(session.count_message(message) for message, _ in read))
        taken = session.append(new)
        await session.wait_durable(taken.commit_id)
        if raws in self._unanswered:
            self._unanswered.remove(raws)
        ids = (*taken.intake.entry_ids,)
        assert len(ids) == len(raws)
        for entry_id, (message, raw) in zip(ids, read, strict=True):
            assert self.said.setdefault(entry_id, bytes(raw)) == bytes(raw)
            if message.id not in taken.intake.duplicates:  # these may be on a branch that was left
                self.path.append(entry_id)
        self.said = {one: self.said[one] for one in sorted(self.said, key=_number)}

    async def compact(self, session: Session) -> None:
        """Compact with one of the budgets. A second compaction in a row must do nothing."""
        request = self._dice.choice(
            (
                CompactRequest(keep_recent=100),
                CompactRequest(keep_messages=2),
                CompactRequest(target_tokens=600),
                CompactRequest(force=True),
            )
        )
        epoch = session.state.epoch
        result = await compact(session, request)
        if result.compacted:
            assert session.state.epoch > epoch
            assert result.tokens_after < result.tokens_before

    async def undo(self, session: Session) -> None:
        """See `session/undo`."""
        await session.wait_durable(rewinding.undo(session)[1])

    async def redo(self, session: Session) -> None:
        """See `session/redo`."""
        await session.wait_durable(rewinding.redo(session)[1])

    async def prune(self, session: Session) -> None:
        """See `session/prune`."""
        await prune(session)

    async def begin(self, session: Session) -> None:
        """See `turn/begin`."""
        await turns.begin(session)

    async def configure(self, session: Session) -> None:
        """Other settings, another system prompt."""
        given = GivenSettings(prune_protect=self._dice.choice((0, 200)), prune_minimum=0)
        prompt = self._dice.choice((None, "be brief", "be thorough " * 20))
        number = session.configure("configure", compaction=given, system_prompt=prompt)
        if number is not None:
            await session.wait_durable(number)

    async def pin(self, session: Session) -> None:
        """Any message."""
        if self.said:
            await session.wait_durable(
                session.pin([self._dice.choice(list(self.said))], self._dice.random() < 0.7)
            )

    async def branch(self, session: Session) -> None:
        """Back to any message on the branch."""
        if not self.path:
            raise NothingToUndo("no message to go back to")
        at = int(self._dice.random() * len(self.path))
        self._is_path_known = False
        await session.wait_durable(rewinding.branch(session, self.path[at]))

    async def redact(self, session: Session) -> None:
        """Some message's words leave the disk."""
        if not self.said:
            raise NothingToUndo("nothing to redact")
        entry_id = self._dice.choice(list(self.said))
        source = self.said.pop(entry_id)
        self._unanswered = [raws for raws in self._unanswered if source not in map(bytes, raws)]
        await redacting.redact(session, [entry_id])
        text = msgspec.json.decode(source)["id"]
        self._reference.secrets.append(_secret(text).encode())

    async def delete(self, sessions: Sessions) -> None:
        """See `session/delete`."""
        try:
            await sessions.delete(self.name)
        except StorageFailed as error:
            must(not self.is_healthy, error.message)
        except CompactdError as error:
            self._note(f"{self.name} delete: {type(error).__name__}")
        self.forget()

    def _message(self) -> Raw:
        self._made += 1
        number = f"{self.name}.{self._made}"
        dice = self._dice
        words = " ".join(dice.choices(WORDS, k=dice.choice(_LENGTHS)))
        text = f"word {_secret(number)} is here: {words}"
        kind = dice.random()
        message: dict[str, object]
        if self._open_calls and kind < 0.7:
            block = {"type": "tool_result", "call_id": self._open_calls.pop(), "content": text}
            message = {"role": "tool", "content": [block], "id": number}
        elif kind < 0.4:
            message = {"role": "user", "content": text, "id": number}
        elif kind < 0.7:
            message = {"role": "assistant", "content": text, "id": number}
        else:
            self._open_calls.append(f"call {number}")
            block = {
                "type": "tool_call",
                "call_id": f"call {number}",
                "name": "run",
                "arguments": {"x": text},
            }
            message = {"role": "assistant", "content": [block], "id": number}
        raw = msgspec.json.encode(message)
        # Line ends between tokens, as a client may send them.
        return Raw(raw.replace(b',"content"', b',\n "content"') if dice.random() < 0.1 else raw)


def _secret(message_id: str) -> str:
    """A word of this message alone."""
    return "sk-{}-wxyz".format(message_id.replace(".", "-no-"))


def _number(entry_id: str) -> int:
    return int(entry_id[1:])


_ASKS: dict[str, Ask] = {
    "append": Client.append,
    "compact": Client.compact,
    "undo": Client.undo,
    "redo": Client.redo,
    "prune": Client.prune,
    "begin": Client.begin,
    "configure": Client.configure,
    "pin": Client.pin,
    "branch": Client.branch,
    "redact": Client.redact,
}

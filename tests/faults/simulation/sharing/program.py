"""A simulated program that uses sessions of a shared daemon: its random requests, and how it reads."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec
from msgspec import Struct

from tests.faults.simulation.client import WORDS
from tests.faults.simulation.sharing.laws import MEMBERSHIP, Laws, Told
from tests.faults.simulation.sharing.link import Ending, Link

SETTINGS = {"estimator": "chars4", "keep_recent_tokens": 100}
USES = {
    "session/append": 30,
    "agent/prompt": 14,
    "session/pin": 8,
    "session/compact": 2,
    "session/undo": 3,
    "agent/abort": 4,
    "session/context": 2,
    "session/history": 1,
    "session/configure": 2,
    "session/list": 1,
    "turn/begin": 1,
}
"""How often each request is made, compared with the others."""
BIG_PIN = 6_000
"""Times that a message is named in one request, for an event of 36 kB."""


class Known(Struct):
    """What all programs together know about one session from the answers."""

    said: dict[str, bytes] = {}
    """The acknowledged messages by entry."""
    prompts: dict[str, str] = {}
    """The acknowledged prompts: text and turn."""
    generation: int = 0
    """How often it was deleted."""

    def forget(self) -> None:
        """The session is deleted, or may be."""
        self.generation += 1
        self.said.clear()
        self.prompts.clear()


class Program:
    """One program. It is connected, or not; it reads at once, or slowly."""

    def __init__(
        self,
        number: int,
        sessions: dict[str, Known],
        dice: Random,
        note: Callable[[str], None],
    ) -> None:
        self.number = number
        # Two programs may have one name: each answers for the other.
        self._name = dice.choice((f"p{number}", f"p{number}", "p1", None))
        self._answers = dice.random() < 0.3
        self._has_hook = dice.random() < 0.2
        self._sessions = sessions
        self._dice = dice
        self._note = note
        self.link: Link | None = None
        self._laws: Laws
        self._made = 0
        self._asked = 0
        self._is_slow = False
        self._waiting: list[tuple[bytes, str]] = []
        """Questions that it has not answered: id and method."""
        self._unanswered: dict[str, list[list[bytes]]] = {}
        """By session, appends that got no answer. If they are sent again, they are stored once."""
        self._first_numbers: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        """By session and generation, for each append of this connection: the request's number, and the
        numbers of its first and last entry."""

    def connect(self, link: Link, laws: Laws) -> None:
        """Begin with a new connection."""
        self.link, self._laws = link, laws
        self._waiting.clear()
        self._first_numbers.clear()
        self._is_slow = self._dice.random() < 0.25

    def disconnect(self) -> None:
        """The connection is gone, however that came."""
        self.link = None

    # --- reading ----------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read what is there; if it is slow, now and then a part. Answer some of the questions."""
        link, dice = self.link, self._dice
        if link is None or not link.pipe.unread:
            return
        most = 1_000_000
        if self._is_slow:
            if dice.random() < 0.7:
                return
            most = 1 + int(dice.random() * 30)
        for body in link.read(most):
            if b'"method":"tool/execute"' in body or b'"method":"session/compacting"' in body:
                told = msgspec.json.decode(body)
                self._waiting.append((msgspec.json.encode(told["id"]), told["method"]))
        if dice.random() < 0.6:
            self.answer()

    def read_all(self) -> None:
        """Read everything, and answer all questions."""
        self._is_slow = False
        self.read()
        while self.link is not None and self._waiting:
            self.answer()

    def answer(self) -> None:
        """Answer one of the daemon's questions, or cancel it."""
        if self.link is None or not self._waiting:
            return
        id, method = self._waiting.pop(int(self._dice.random() * len(self._waiting)))
        kind = self._dice.random()
        if kind < 0.1:
            self._send(b'{"jsonrpc":"2.0","id":%b,"error":{"code":1,"message":"no"}}' % id)
            return
        result: Told = {"content": "the text of a file"}
        if method == "session/compacting":
            result = {"cancel": True} if kind < 0.3 else {}
        self._send(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, msgspec.json.encode(result)))

    # --- asking -----------------------------------------------------------------------------------------

    def act(self) -> None:
        """One request, or something else that a program does."""
        dice = self._dice
        assert self.link is not None
        session_id = dice.choice(list(self._sessions))
        hearing = self._laws.hearing(self.link, session_id)
        kind = dice.random()
        if kind < 0.05:
            self._is_slow = not self._is_slow
        elif kind < 0.08:
            self._cancel()
        elif kind < 0.30 or (not hearing.is_seated and kind < 0.6):
            self._join_or_leave(session_id)
        else:
            self._use(session_id)

    def leave(self) -> None:
        """End the connection in one of several ways."""
        link, dice = self.link, self._dice
        assert link is not None
        if self._waiting and dice.random() < 0.3:
            self.answer()
        kind = dice.random()
        if kind < 0.5:
            self._note(f"{link.name} dies")
            link.kill(dice.choice((0.0, 0.0, 0.01, 1.0)))
        else:
            ending: Ending = "input" if kind < 0.9 else "exit"
            self._note(f"{link.name} leaves: {ending}")
            link.leave(ending)
        self.link = None

    def _cancel(self) -> None:
        """Cancel a request that is not answered."""
        assert self.link is not None
        mine = [
            id
            for (link, id), (method, _) in self._laws.pending.items()
            if link is self.link and method != "session/delete"
        ]
        if mine:
            self._send(
                b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%b}}' % self._dice.choice(mine)
            )

    def _join_or_leave(self, session_id: str) -> None:
        """Open or close a session, or ask for its events, or for no more of them."""
        assert self.link is not None
        dice, hearing = self._dice, self._laws.hearing(self.link, session_id)
        if hearing.pending is not None:
            return
        weights = (2, 6, 3, 2, 1) if hearing.is_seated else (12, 1, 3, 1, 1)
        method = dice.choices((*MEMBERSHIP, "session/delete"), weights)[0]
        params: Told = {"session_id": session_id}
        if method == "session/start":
            client = {"name": self._name, "answers": self._answers, "compaction_hook": self._has_hook}
            params |= {"client": client, "compaction": SETTINGS}
            if dice.random() < 0.3:
                params |= {
                    "title": dice.choice(("Ours", "Mine")),
                    "system_prompt": dice.choice(("brief", "long")),
                }
        elif method == "session/subscribe" and dice.random() < 0.7:
            count = len(self._laws.events.get(session_id, ()))
            params["since_seq"] = int(dice.random() * (count + 3))
        self._ask(method, params)
        if method != "session/delete":
            # The request is handled later; nothing else about this is asked meanwhile.
            hearing.pending = method

    def _use(self, session_id: str) -> None:
        dice, known = self._dice, self._sessions[session_id]
        method = dice.choices(list(USES), list(USES.values()))[0]
        params: Told = {"session_id": session_id}
        match method:
            case "session/append":
                params["messages"] = [msgspec.Raw(raw) for raw in self._messages(session_id)]
            case "agent/prompt":
                self._made += 1
                params["text"] = f"prompt p{self.number}.{self._made} of {self._words()}"
            case "session/pin":
                if not known.said:
                    return
                times = BIG_PIN if dice.random() < 0.15 else 1
                params |= {
                    "entry_ids": [dice.choice(list(known.said))] * times,
                    "pinned": dice.random() < 0.6,
                }
            case "session/compact":
                params |= dice.choice(({"force": True}, {"keep_recent": 100}, {"keep_messages": 2}))
            case "session/configure":
                params["title"] = dice.choice(("Ours", "Mine"))
            case "session/list":
                params = {}
            case _:
                pass
        self._ask(method, params)

    def _messages(self, session_id: str) -> list[bytes]:
        """New messages; now and then some that got no answer."""
        dice, unanswered = self._dice, self._unanswered.setdefault(session_id, [])
        if unanswered and dice.random() < 0.3:
            return unanswered.pop(0)
        raws = []
        for _ in range(dice.choice((1, 1, 1, 2, 4))):
            self._made += 1
            message = {
                "role": dice.choice(("user", "user", "assistant")),
                "content": self._words(),
                "id": f"p{self.number}.{self._made}",
            }
            raws.append(msgspec.json.encode(message))
        unanswered.append(raws)
        return raws

    def _words(self) -> str:
        return " ".join(self._dice.choices(WORDS, k=self._dice.choice((3, 5, 10, 10, 100))))

    def _ask(self, method: str, params: Told) -> None:
        assert self.link is not None
        self._asked += 1
        self._note(f"{self.link.name} asks {self._asked}: {method} {params.get('session_id', '')}")
        asked = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self._send(msgspec.json.encode(asked))

    def _send(self, body: bytes) -> None:
        assert self.link is not None
        self.link.send(body)

    # --- what it knows from the answers -----------------------------------------------------------------

    def on_answer(self, number: int, method: str, params: Told, result: Told | None) -> None:
        """Note what an answer acknowledges. `number`: which request of the program it answers."""
        known = self._sessions.get(params.get("session_id", ""))
        if known is None:
            return
        if result is None:
            return
        if method == "agent/prompt":
            known.prompts[params["text"]] = result["turn_id"]
        elif method == "session/append":
            self._on_appended(number, params, result, known)

    def _on_appended(self, number: int, params: Told, result: Told, known: Known) -> None:
        raws = [msgspec.json.encode(message) for message in params["messages"]]
        unanswered = self._unanswered.get(params["session_id"], [])
        if raws in unanswered:
            unanswered.remove(raws)
        for entry_id, raw in zip(result["entry_ids"], raws, strict=True):
            before = known.said.setdefault(entry_id, raw)
            self._laws.must(before == raw, f"{entry_id} of {params['session_id']} is two messages")
        if not result["duplicates"]:
            numbers = [int(entry_id[1:]) for entry_id in result["entry_ids"]]
            self._laws.must(numbers == sorted(numbers), "messages of one request are stored in another order")
            key = (params["session_id"], known.generation)
            self._check_order(self._first_numbers.setdefault(key, []), number, numbers[0], numbers[-1])

    def _check_order(self, all_: list[tuple[int, int, int]], request: int, first: int, last: int) -> None:
        """Check that messages of one connection are stored in the order of its requests."""
        for other, from_, to in all_:
            is_in_order = to < first if other < request else last < from_
            self._laws.must(is_in_order, f"the messages of requests {other} and {request} changed places")
        all_.append((request, first, last))
        del all_[:-8]

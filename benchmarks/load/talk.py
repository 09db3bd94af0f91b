"""The messages of a load test's session, and the reference that knows the bytes of each, in order."""

from __future__ import annotations

import random

import msgspec
from msgspec import Raw, Struct

from benchmarks.load.line import Line

TEXT = """a the of to session journal cut plan test error file line value index path daemon keep never always
über naïve 数据 données 😀 \\u0041 \\n {} [] " '"""
WORDS = tuple(TEXT.split())
"""Words, including characters that JSON must escape and others that it may escape."""


class Entry(Struct, frozen=True):
    """The fields of an entry of `session/history` that are checked."""

    entry_id: str
    kind: str
    message: Raw = Raw(b"null")


class History(Struct, frozen=True):
    """The answer of `session/history`."""

    entries: list[Entry]


class Appended(Struct, frozen=True):
    """The fields of the answer of `session/append` that are checked."""

    entry_ids: list[str]
    duplicates: list[str]


class Wrong(AssertionError):
    """Something that was acknowledged did not come back as it was sent."""


class Speaker:
    """One session's client. It sends what was not acknowledged again, under the same ids, as clients do: so
    that each message must be there exactly once."""

    def __init__(self, session_id: str, dice: random.Random) -> None:
        self.session_id = session_id
        self._dice = dice
        self._made = 0
        self.said: list[bytes] = []
        """The messages that were acknowledged, byte for byte, oldest first."""
        self.waiting: list[bytes] = []
        """Sent, and not yet acknowledged."""

    def turn(self) -> list[bytes]:
        """The messages of a turn, as bytes: a question, calls and their results, an answer."""
        made = [self._message("user", msgspec.json.encode(self._text(30)))]
        for _ in range(self._dice.choice((0, 1, 1, 2, 4))):
            self._made += 1
            call = f"{self.session_id}-c{self._made}"
            text = msgspec.json.encode(self._text(12))
            # White space and number forms that no encoder would write: kept byte for byte.
            arguments = b'{"path" : "src/%d.py",  "offset":1.0e1, "limit":%d}' % (self._made, self._made)
            made.append(
                self._message(
                    "assistant",
                    b'[{"type":"text","text":%b},{"type":"tool_call","call_id":"%b","name":"read","arguments":%b}]'
                    % (text, call.encode(), arguments),
                )
            )
            result = msgspec.json.encode(self._text(self._dice.choice((5, 60, 200, 1_000))))
            made.append(
                self._message(
                    "tool",
                    b'[{"type":"tool_result","call_id":"%b","content":%b}]' % (call.encode(), result),
                )
            )
        made.append(self._message("assistant", msgspec.json.encode(self._text(40))))
        return made

    async def append(self, line: Line, messages: list[bytes]) -> None:
        """Sends what waits and these; returns when they are acknowledged."""
        self.waiting += messages
        sent = list(self.waiting)
        params = b'{"session_id":%b,"messages":[%b]}' % (
            msgspec.json.encode(self.session_id),
            b",".join(sent),
        )
        done = msgspec.json.decode(await line.call("session/append", Raw(params)), type=Appended)
        if len(done.entry_ids) != len(sent):
            raise Wrong(f"{self.session_id}: {len(sent)} messages, {len(done.entry_ids)} entries")
        self.said += sent
        del self.waiting[: len(sent)]

    async def look(self, line: Line) -> int:
        """Compares all that was acknowledged; how many messages. What waits may be there, whole, in order."""
        answer = await line.call("session/history", {"session_id": self.session_id})
        history = msgspec.json.decode(answer, type=History)
        found = [bytes(one.message) for one in history.entries if one.kind == "message"]
        for at, (wanted, got) in enumerate(zip(self.said, found, strict=False)):
            if wanted != got:
                raise Wrong(f"{self.session_id}, message {at}: sent {wanted[:200]!r}, got {got[:200]!r}")
        if len(found) < len(self.said):
            raise Wrong(f"{self.session_id}: {len(self.said)} acknowledged, {len(found)} are there")
        for wanted, got in zip(self.waiting, found[len(self.said) :], strict=False):
            if wanted != got:
                raise Wrong(
                    f"{self.session_id}: not acknowledged, and neither absent nor whole: {got[:200]!r}"
                )
        if len(found) > len(self.said) + len(self.waiting):
            raise Wrong(f"{self.session_id}: more messages than were sent")
        return len(self.said)

    def _message(self, role: str, content: bytes) -> bytes:
        self._made += 1
        name = f"{self.session_id}-m{self._made}"
        return b'{"role":"%b","content":%b,"id":"%b"}' % (role.encode(), content, name.encode())

    def _text(self, words: int) -> str:
        self._made += 1
        count = self._dice.randrange(1, 2 * words)
        return f"{self._made} " + " ".join(self._dice.choices(WORDS, k=count))

"""A session as a check drives it, and messages of a known size: four characters are one token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from compactd_conformance import shapes
from compactd_conformance.frames import Broken, Fault, read
from compactd_conformance.peer import Peer

Message = Mapping[str, object]

KEEP = 600
"""Tokens of the verbatim tail that checks ask for."""

BUDGETS: tuple[dict[str, object], ...] = (
    {"keep_recent": KEEP},
    {"keep_recent": 200},
    {"keep_messages": 3},
    {"keep_messages": 2},
)
"""One after the other they cut at many places of a turn."""

_WORDS = "so we went on and looked at it once more until all was well "


def text(tokens: int, seed: int = 0) -> str:
    """Text of exactly so many tokens, without a fact in it."""
    start = seed * 7 % len(_WORDS)
    return (_WORDS * (tokens * 4 // len(_WORDS) + 2))[start : start + tokens * 4 - 1] + "."


def user(content: str, **more: object) -> Message:
    """A person's message."""
    return {"role": "user", "content": content, **more}


def assistant(content: str, **more: object) -> Message:
    """A model's message."""
    return {"role": "assistant", "content": content, **more}


def calls(*named: tuple[str, str, Mapping[str, object]]) -> Message:
    """A model's message that is calls: (id, tool, arguments) each."""
    blocks = [{"type": "tool_call", "call_id": i, "name": n, "arguments": a} for i, n, a in named]
    return {"role": "assistant", "content": blocks}


def result(call_id: str, content: str) -> Message:
    """What a tool gave back."""
    return {"role": "tool", "content": [{"type": "tool_result", "call_id": call_id, "content": content}]}


def turns(count: int, tokens: int, first: int = 0) -> tuple[Message, ...]:
    """So many pairs of a user's and a model's message, each of so many tokens, no two the same."""
    return tuple(
        message
        for n in range(first, first + count)
        for message in (user(f"({n}) {text(tokens - 2, 2 * n)}"), assistant(text(tokens, 2 * n + 1)))
    )


def worked(count: int, tokens: int = 150) -> tuple[Message, ...]:
    """So many turns of an agent: asked, two calls at once, their results, an answer."""
    return tuple(
        message
        for n in range(count)
        for message in (
            user(f"Request {n}: {text(20, n)}"),
            calls((f"a{n}", "read", {"path": f"src/a{n}.py"}), (f"b{n}", "run", {"command": f"make t{n}"})),
            result(f"a{n}", text(tokens, n)),
            result(f"b{n}", text(tokens, n + 1)),
            assistant(text(30, n)),
        )
    )


class Talk:
    """One session of one process."""

    def __init__(self, peer: Peer, id: str) -> None:
        self.peer = peer
        self.id = id

    @classmethod
    def start(cls, peer: Peer, params: Mapping[str, object]) -> Talk:
        """Starts a session, or opens one."""
        return cls(peer, peer.call("session/start", params, shapes.Started).session_id)

    def ask(self, method: str, **params: object) -> int:
        """Sends a request of this session; its id."""
        return self.peer.ask(method, {"session_id": self.id, **params})

    def refusal(self, method: str, **params: object) -> Fault:
        """The error that a request of this session is answered with."""
        return self.peer.refused(self.ask(method, **params))

    def append(self, *messages: Message, **params: object) -> shapes.Appended:
        """Appends messages."""
        return self.peer.result(self.ask("session/append", messages=messages, **params), shapes.Appended)

    def compact(self, **params: object) -> shapes.Compaction:
        """Compacts; without params to `KEEP` tokens."""
        return self.peer.result(
            self.ask("session/compact", **(params or {"keep_recent": KEEP})), shapes.Compaction
        )

    def compacted(self, **params: object) -> shapes.Compaction:
        """As `compact`, where something is sure to be done."""
        done = self.compact(**params)
        if not done.compacted:
            raise Broken("a compaction, where there is much to compact", f"none: {done.reason}")
        return done

    def context(self, format: str = "neutral") -> shapes.Context:
        """What the next request must contain."""
        return self.peer.result(self.ask("session/context", format=format), shapes.Context)

    def history(self) -> tuple[shapes.HistoryEntry, ...]:
        """Every entry."""
        return self.peer.result(self.ask("session/history"), shapes.History).entries

    def state(self) -> shapes.State:
        """What the session is doing."""
        return self.peer.result(self.ask("agent/state"), shapes.State)

    def search(self, query: str) -> tuple[shapes.Hit, ...]:
        """Where it was said."""
        return self.peer.result(self.ask("session/search", query=query), shapes.Hits).hits

    def rewind(self, method: str) -> shapes.Rewound:
        """`session/undo` or `session/redo`."""
        return self.peer.result(self.ask(method), shapes.Rewound)

    def texts(self) -> tuple[str, ...]:
        """The texts of the view, one a message."""
        return tuple(said(read(raw, Said)) for raw in self.context().messages)

    def written(self) -> tuple[str, ...]:
        """The texts of all messages that the history has, compacted or not, without summaries."""
        return tuple(said(read(entry.message, Said)) for entry in self.history() if entry.kind == "message")


def resumed(peer: Peer, talk: Talk) -> tuple[Talk, shapes.Started]:
    """The same session in this process, opened."""
    started = peer.call("session/start", {"session_id": talk.id}, shapes.Started)
    return Talk(peer, talk.id), started


def contents(messages: Sequence[Message]) -> tuple[str, ...]:
    """The texts of messages whose content is one."""
    return tuple(str(message["content"]) for message in messages)


class Block(msgspec.Struct, frozen=True):
    """A block of our own shape, as far as checks look into it."""

    type: str
    text: str = ""
    call_id: str = ""
    content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: bool = False


class Said(msgspec.Struct, frozen=True):
    """A message of our own shape."""

    role: str
    content: str | tuple[Block, ...]
    entry_id: str | None = None


def blocks_of(message: Said) -> Sequence[Block]:
    """Its blocks; a string is one."""
    content = message.content
    return (Block(type="text", text=content),) if isinstance(content, str) else content


def said(message: Said) -> str:
    """The text of a message."""
    return "\n".join(block.text for block in blocks_of(message) if block.type == "text")

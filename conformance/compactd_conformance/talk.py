"""A session that a check drives, and messages of a known size for it: four characters are one token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from compactd_conformance import shapes
from compactd_conformance.frames import Broken, Fault, read
from compactd_conformance.peer import Peer

Message = Mapping[str, object]

KEEP = 600
"""The keep-recent budget of the checks, in tokens."""

BUDGETS: tuple[dict[str, object], ...] = (
    {"keep_recent": KEEP},
    {"keep_recent": 200},
    {"keep_messages": 3},
    {"keep_messages": 2},
)
"""Budgets of compactions that together place the cut point at many positions of a turn."""

_WORDS = "so we went on and looked at it once more until all was well "


def text(tokens: int, seed: int = 0) -> str:
    """Return text of exactly `tokens` tokens, without facts. Different seeds give different texts."""
    start = seed * 7 % len(_WORDS)
    return (_WORDS * (tokens * 4 // len(_WORDS) + 2))[start : start + tokens * 4 - 1] + "."


def user(content: str, **more: object) -> Message:
    """Return a user's message."""
    return {"role": "user", "content": content, **more}


def assistant(content: str, **more: object) -> Message:
    """Return a model's message."""
    return {"role": "assistant", "content": content, **more}


def calls(*named: tuple[str, str, Mapping[str, object]]) -> Message:
    """Return a model's message that consists of calls, each as (id, tool, arguments)."""
    blocks = [{"type": "tool_call", "call_id": i, "name": n, "arguments": a} for i, n, a in named]
    return {"role": "assistant", "content": blocks}


def result(call_id: str, content: str) -> Message:
    """Return a tool message with one result: `content`, for the call `call_id`."""
    return {"role": "tool", "content": [{"type": "tool_result", "call_id": call_id, "content": content}]}


def turns(count: int, tokens: int, first: int = 0) -> tuple[Message, ...]:
    """Return `count` pairs of a user's and a model's message. Each has `tokens` tokens, and all differ."""
    return tuple(
        message
        for n in range(first, first + count)
        for message in (user(f"({n}) {text(tokens - 2, 2 * n)}"), assistant(text(tokens, 2 * n + 1)))
    )


def agent_turns(count: int, tokens: int = 150) -> tuple[Message, ...]:
    """Return `count` turns of an agent: request, two parallel calls, their results, an answer."""
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
        """Call `session/start` with `params`, which starts a new session or opens an existing one."""
        return cls(peer, peer.call("session/start", params, shapes.Started).session_id)

    def ask(self, method: str, **params: object) -> int:
        """Send a request of this session and return its id."""
        return self.peer.ask(method, {"session_id": self.id, **params})

    def refusal(self, method: str, **params: object) -> Fault:
        """Send a request of this session and return the error of its answer."""
        return self.peer.error_answer(self.ask(method, **params))

    def append(self, *messages: Message, **params: object) -> shapes.Appended:
        """Append messages and return the result."""
        return self.peer.result(self.ask("session/append", messages=messages, **params), shapes.Appended)

    def compact(self, **params: object) -> shapes.Compaction:
        """Compact the session and return the result. Without params, the keep-recent budget is `KEEP`."""
        return self.peer.result(
            self.ask("session/compact", **(params or {"keep_recent": KEEP})), shapes.Compaction
        )

    def compact_or_fail(self, **params: object) -> shapes.Compaction:
        """Call `compact`. Raise `Broken` if nothing was compacted."""
        done = self.compact(**params)
        if not done.compacted:
            raise Broken(
                "a compaction, because the session has many messages to compact",
                f"no compaction: {done.reason}",
            )
        return done

    def context(self, format: str = "neutral") -> shapes.Context:
        """Return the messages of the next request."""
        return self.peer.result(self.ask("session/context", format=format), shapes.Context)

    def history(self) -> tuple[shapes.HistoryEntry, ...]:
        """Return all entries of the session's history."""
        return self.peer.result(self.ask("session/history"), shapes.History).entries

    def state(self) -> shapes.State:
        """Return the state of the session."""
        return self.peer.result(self.ask("agent/state"), shapes.State)

    def search(self, query: str) -> tuple[shapes.Hit, ...]:
        """Return the messages that contain the query."""
        return self.peer.result(self.ask("session/search", query=query), shapes.Hits).hits

    def rewind(self, method: str) -> shapes.Rewound:
        """Call `session/undo` or `session/redo`."""
        return self.peer.result(self.ask(method), shapes.Rewound)

    def texts(self) -> tuple[str, ...]:
        """Return the texts of the view, one per message."""
        return tuple(neutral_text(read(raw, NeutralMessage)) for raw in self.context().messages)

    def history_texts(self) -> tuple[str, ...]:
        """Return the texts of all messages in the history, compacted or not, without summaries."""
        return tuple(
            neutral_text(read(entry.message, NeutralMessage))
            for entry in self.history()
            if entry.kind == "message"
        )


def resume(peer: Peer, talk: Talk) -> tuple[Talk, shapes.Started]:
    """Open the session of `talk` in the process `peer`. Return (the session as opened in `peer`, the result
    of `session/start`).
    """
    started = peer.call("session/start", {"session_id": talk.id}, shapes.Started)
    return Talk(peer, talk.id), started


def contents(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the texts of messages whose content is a string."""
    return tuple(str(message["content"]) for message in messages)


class NeutralBlock(msgspec.Struct, frozen=True):
    """The fields of a neutral block that the checks read."""

    type: str
    text: str = ""
    call_id: str = ""
    content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: bool = False


class NeutralMessage(msgspec.Struct, frozen=True):
    """A message in neutral form."""

    role: str
    content: str | tuple[NeutralBlock, ...]
    entry_id: str | None = None


def blocks_of(message: NeutralMessage) -> Sequence[NeutralBlock]:
    """Return the blocks of a message. A string is one block."""
    content = message.content
    return (NeutralBlock(type="text", text=content),) if isinstance(content, str) else content


def neutral_text(message: NeutralMessage) -> str:
    """Return the text of a message."""
    return "\n".join(block.text for block in blocks_of(message) if block.type == "text")

"""Read the order of the requests in an agent's session file, and what happened between them.

The requests themselves, and which records are copies of one request, come from the readers of `compactd
usage`. A trail adds what only an audit needs: the conversation that a request belongs to (a sub-agent has one
of its own), its line, its time to the millisecond, and the compactions, prunes and rewinds before it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from importlib import import_module
from io import BytesIO
from typing import Final, Literal, Protocol

import msgspec
from msgspec import Struct

from compactd.cli.usage.readers import LINE_AGENTS, LineReader, is_one_value, read_document
from compactd.cli.usage.requests import FileUsage
from compactd.core.cost.ledger import Change

MAIN = ""
"""The name of the conversation with the user. Every sub-agent's, and every chat of aider, has another one."""

BoundaryKind = Literal["compaction", "prune"]
AFTER_A_PROMPT: Final = "after a prompt"
Sight = Literal["resumed", "new version", "thinking changed", "after a prompt"]
"""What else a file shows between two requests. It may have changed the system prompt, the tools or the
request, but the file does not say so."""


class Place(Struct, kw_only=True):
    """Where a request is in its file."""

    chain: str = MAIN
    """The conversation that the request belongs to. Each has a cache of its own."""
    at: float | None = None
    """When it was answered, in seconds since 1970; None if the file does not say."""
    line: int | None = None
    """The number of its first line, from 1; None if the file is one document."""
    entry_id: str | None = None
    """What the file calls the answer; None if it has no name."""
    touched_at: float | None = None
    """When an earlier request without a usage report, such as an interrupted one, last used the cache; None
    if there was none since the request before."""
    changes: set[Change] = set()
    """What changed since the request before it in the same conversation, apart from the model."""
    seen: tuple[Sight, ...] = ()
    """What else happened since the request before it in the same conversation."""
    is_summary: bool = False
    """Whether the request only wrote a summary."""


class Boundary(Struct, frozen=True, kw_only=True):
    """A compaction or a prune that the file records."""

    kind: BoundaryKind
    chain: str = MAIN
    position: int
    """How many requests of the file came before it."""
    at: float | None = None
    line: int | None = None
    trigger: str = ""
    """What caused it, in the agent's word: `auto` or `manual`."""
    tokens_before: int | None = None
    """The size of the context that the agent recorded."""


class Trail(Struct, frozen=True, kw_only=True):
    """The requests of one session file, in order."""

    usage: FileUsage
    places: tuple[Place, ...]
    """For each request in `usage.requests`, its place."""
    boundaries: tuple[Boundary, ...]
    contradictions: int = 0
    """How many usage reports contradict themselves."""
    shows_compactions: bool = True
    """Whether the agent's files record compactions."""


class TrailBuilder:
    """A trail that is being read."""

    def __init__(self, usage: FileUsage) -> None:
        self.usage = usage
        self.places: list[Place] = []
        self.boundaries: list[Boundary] = []
        self.contradictions = 0
        self._changes: dict[str, set[Change]] = {}
        self._touched: dict[str, float] = {}
        self._seen: dict[str, dict[Sight, None]] = {}

    def change(self, chain: str, change: Change) -> None:
        """Note a change for the next request of `chain`."""
        self._changes.setdefault(chain, set()).add(change)

    def see(self, chain: str, sight: Sight) -> None:
        """Note something for the next request of `chain` that may have changed it."""
        self._seen.setdefault(chain, {})[sight] = None

    def touch(self, chain: str, at: float | None) -> None:
        """Note that a request of `chain` without a usage report may have used the cache."""
        if at is not None:
            self._touched[chain] = max(at, self._touched.get(chain, 0.0))

    def add_boundary(
        self,
        kind: BoundaryKind,
        *,
        chain: str = MAIN,
        at: float | None = None,
        line: int | None = None,
        trigger: str = "",
        tokens_before: int | None = None,
    ) -> None:
        """Add a compaction or a prune, and note it as a change of `chain`."""
        self.boundaries.append(
            Boundary(
                kind=kind,
                chain=chain,
                position=len(self.places),
                at=at,
                line=line,
                trigger=trigger,
                tokens_before=tokens_before,
            )
        )
        self.change(chain, kind)

    def place_requests(self, place: Place) -> list[int]:
        """Give `place` to each request that the reader has added since the last call. Return their
        positions."""
        first = len(self.places)
        new = self.usage.requests[first:]
        for request in new:
            # aider writes only when a chat began, which is not when a request was answered.
            own = None if self.usage.agent == "aider" else request.at or None
            at = place.at if place.at is not None else own
            self.places.append(
                msgspec.structs.replace(
                    place,
                    at=at,
                    touched_at=self._touched.pop(place.chain, None),
                    seen=tuple(self._seen.pop(place.chain, ())),
                    changes=self._changes.pop(place.chain, set()) | place.changes,
                )
            )
        return list(range(first, first + len(new)))

    def trail(self, *, shows_compactions: bool = True) -> Trail:
        """Return what was read so far."""
        return Trail(
            usage=self.usage,
            places=tuple(self.places),
            boundaries=tuple(self.boundaries),
            contradictions=self.contradictions,
            shows_compactions=shows_compactions,
        )


class Follower(Protocol):
    """Reads of a line what the usage reader does not."""

    marks: tuple[bytes, ...]
    """The follower gets the lines that contain one of these; all lines if there are none."""

    def line(self, number: int, line: bytes) -> None:
        """Read a line. The usage reader has already read it. Raise `msgspec.MsgspecError` if it is
        damaged."""
        ...


def read_trail(data: bytes, usage: FileUsage) -> Trail:
    """Return the trail of a session file with the content `data`. `usage` says which agent wrote it, and what
    else is known of the session; its requests are added to it. O(bytes).
    """
    agent = usage.agent
    builder = TrailBuilder(usage)
    if agent in LINE_AGENTS and not (agent == "gemini-cli" and is_one_value(data)):
        _read_lines(data, builder)
        return builder.trail()
    read_document(data, usage)
    if agent == "opencode":
        from compactd.cli.audit.opencode import place_messages

        place_messages(data, builder)
    if agent == "aider":
        _place_chats(builder)
    builder.place_requests(Place())
    return builder.trail(shows_compactions=agent == "opencode")


def _place_chats(builder: TrailBuilder) -> None:
    """Place the requests of aider's history, which the reader has already added to the builder's usage. The
    history has one chat after the other; the time of a request is that of its chat's beginning."""
    requests, builder.usage.requests = builder.usage.requests, []
    number = 0
    for position, request in enumerate(requests):
        number += not position or request.at != requests[position - 1].at
        builder.usage.requests.append(request)
        builder.place_requests(Place(chain=f"chat {number}"))


def _read_lines(data: bytes, builder: TrailBuilder) -> None:
    usage = builder.usage
    module = import_module(f"compactd.cli.usage.{LINE_AGENTS[usage.agent]}")
    reader: LineReader = module.Reader(usage)
    marks: tuple[bytes, ...] = module.MARKS
    follower = _follower(builder)
    for number, line in enumerate(BytesIO(data), start=1):
        is_reported = any(mark in line for mark in marks)
        if not is_reported and follower.marks and not any(mark in line for mark in follower.marks):
            continue
        if not line.endswith(b"\n") and not line.rstrip().endswith(b"}"):
            continue  # The agent is still writing this line.
        try:
            if is_reported:
                reader.line(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            usage.unreadable += line.endswith(b"\n")
        # The reader has counted a damaged line, if it has a usage report.
        with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
            follower.line(number, line)
        builder.place_requests(Place(line=number))


def _follower(builder: TrailBuilder) -> Follower:
    if builder.usage.agent == "claude-code":
        from compactd.cli.audit.claude_code import ClaudeCodeFollower

        return ClaudeCodeFollower(builder)
    from compactd.cli.audit.line_agents import FOLLOWERS

    return FOLLOWERS[builder.usage.agent](builder)


def seconds_of(time: str | int | float | None) -> float | None:
    """Return seconds since 1970 (UTC) for an ISO 8601 time, or for a number of milliseconds; None for
    anything else. A time without a zone is UTC.
    """
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        return time / 1000 if 0 < time < 1e14 else None
    if not isinstance(time, str):
        return None
    try:
        moment = datetime.fromisoformat(time)
        if moment.tzinfo is None:
            moment = datetime.fromisoformat(f"{time}+00:00")
        at = moment.timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return at if at > 0 else None

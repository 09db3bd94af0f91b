"""What a recorded session is once it is read, whichever program wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.core.budget.recorded_window import Evidence, Kind
from compactd.core.history.entries import is_summary
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import Block, Image, Message, Meta, Role, Text, Thinking

_TRUE = Raw(b"true")

_decode_string = msgspec.json.Decoder(str).decode

Line = tuple[Message, Raw]
"""A message and the same in neutral shape, as bytes."""


MAX_EVIDENCE = 63
"""Numbers about the window that are kept, besides the newest."""


class SessionFile(Struct, frozen=True, kw_only=True):
    """A recorded session."""

    format: str
    messages: tuple[Line, ...]
    """Oldest first; the summaries that the other program wrote stand where it wrote them."""
    session_id: str | None = None
    title: str | None = None
    model: str | None = None
    """As the program names it, with the provider before a `/` where the file tells it."""
    working_dir: str | None = None
    system_prompt: str | None = None
    tools: tuple[Raw, ...] = ()
    """Those that the model was offered, in neutral shape, where the file tells it."""
    compactions: int = 0
    first_kept: tuple[tuple[int, int], ...] = ()
    """(place of a summary in `messages`, place of the first message before it that stayed in the context)."""
    pinned: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(place of a summary, places of the older messages that stayed without being part of that tail)."""
    evidence: tuple[Evidence, ...] = ()
    """What the file tells of its model's window, of the model in force alone."""
    model_from: int = 0
    """Place of the first message since `model` is in force."""
    warnings: tuple[str, ...] = ()
    """What could not be read, in sentences."""


class Collected:
    """A session while it is being read."""

    def __init__(self, format: str) -> None:
        self.format = format
        self.messages: list[Line] = []
        self.warnings: list[str] = []
        self.session_id: str | None = None
        self.title: str | None = None
        self.model: str | None = None
        self.working_dir: str | None = None
        self.system_prompt: str | None = None
        self.tools: tuple[Raw, ...] = ()
        self.compactions = 0
        self.first_kept: dict[int, int] = {}
        self.pinned: dict[int, tuple[int, ...]] = {}
        self.evidence: list[Evidence] = []
        """Of the model in force."""
        self.model_from = 0
        """Place of the first message since `model` is in force."""
        self.left_out: Counter[str] = Counter()
        """What was passed over on purpose, and how often."""
        self._answers: list[int] = []
        """Places of the answers among the first `_looked_at` messages."""
        self._looked_at = 0

    def warn(self, text: str) -> None:
        """Notes something that could not be read."""
        self.warnings.append(text)

    def names_model(self, model: str) -> None:
        """The next answers are this model's. What the file told of another one's window is void."""
        if self.model is not None and model != self.model:
            self.evidence.clear()
            self.model_from = len(self.messages)
        self.model = model

    def tells_window(self, kind: Kind, tokens: int) -> None:
        """Notes a number of the file that tells the window of the model in force. 0 tells nothing."""
        if tokens > 0:
            others = [one for one in self.evidence if (one.kind, one.tokens) != (kind, tokens)]
            self.evidence = [*others[-MAX_EVIDENCE:], Evidence(kind, tokens)]

    def add(
        self,
        role: Role,
        content: Sequence[Block],
        *,
        id: str | None = None,
        created_at: float | None = None,
        usage: Raw | None = None,
        stop_reason: str | None = None,
        meta: Meta | None = None,
    ) -> None:
        """Takes in the next message; one without content is none."""
        if has_content(content) or role == "tool":
            self.take(
                Message(
                    role=role,
                    content=tuple(content),
                    id=id,
                    created_at=created_at,
                    usage=usage,
                    stop_reason=stop_reason,
                    meta=meta,
                )
            )

    def take(self, message: Message) -> None:
        """Takes in the next message as it is."""
        self.messages.append((message, Raw(encode_message(message))))

    def summary(
        self, text: str, *, id: str | None = None, created_at: float | None = None, meta: Meta | None = None
    ) -> None:
        """Takes in a summary that the other program wrote, where it wrote it."""
        self.compactions += 1
        self.take(
            Message(
                role="user",
                content=(Text(text=text),),
                id=id,
                created_at=created_at,
                meta=meta or Meta(type="compaction_summary"),
            )
        )

    def report(self, usage: Raw | None) -> None:
        """Gives the newest answer its usage report, where it has none yet."""
        messages, answers = self.messages, self._answers
        for at in range(self._looked_at, len(messages)):
            if messages[at][0].role == "assistant":
                answers.append(at)
        self._looked_at = len(messages)
        if answers and usage is not None:
            message = messages[answers[-1]][0]
            if message.usage is None:
                whole = replace(message, usage=usage)
                messages[answers[-1]] = (whole, Raw(encode_message(whole)))

    def take_back(self, start: int, what: str) -> None:
        """Leaves out the messages from `start` on, which the program took back by `what`."""
        gone = self.messages[start:]
        if gone:
            self.warn(f"{len(gone)} messages were taken back by a {what}")
        del self.messages[start:]
        self.compactions -= sum(is_summary(message) for message, _ in gone)
        # Not by a look at all of them: a file may take back often.
        self._looked_at = min(self._looked_at, start)
        while self._answers and self._answers[-1] >= start:
            self._answers.pop()
        for kept in (self.first_kept, self.pinned):
            while kept and (place := next(reversed(kept))) >= start:
                del kept[place]

    def pass_over(self, what: str) -> None:
        """Counts something that is no part of the conversation, to be told once at the end."""
        self.left_out[what] += 1

    def finished(self) -> SessionFile:
        """The session as read so far."""
        return SessionFile(
            format=self.format,
            messages=tuple(self.messages),
            session_id=self.session_id,
            title=self.title,
            model=self.model,
            working_dir=self.working_dir,
            system_prompt=self.system_prompt,
            tools=self.tools,
            compactions=self.compactions,
            first_kept=tuple(self.first_kept.items()),
            pinned=tuple(self.pinned.items()),
            evidence=tuple(self.evidence),
            model_from=min(self.model_from, len(self.messages)),
            warnings=(
                *self.warnings,
                *(f"{count:,} × {what}: left out" for what, count in self.left_out.items()),
            ),
        )


def live_places(
    messages: Sequence[Message], first_kept: Mapping[int, int], pinned: Mapping[int, Sequence[int]]
) -> list[int]:
    """The places of the messages that the next request holds: the last summary, what stayed, what followed.

    `first_kept`, `pinned`: as of `SessionFile`, by place. O(messages).
    """
    last = next((at for at in reversed(range(len(messages))) if is_summary(messages[at])), -1)
    if last < 0:
        return list(range(len(messages)))
    kept = max(0, first_kept.get(last, last))
    stayed = (at for at in pinned.get(last, ()) if 0 <= at < kept)
    return [last, *stayed, *range(kept, last), *range(last + 1, len(messages))]


def has_content(content: Sequence[Block]) -> bool:
    """False for nothing but empty text: what an aborted request leaves behind."""
    return any(
        bool(block.text or (isinstance(block, Thinking) and block.redacted))
        if isinstance(block, Text | Thinking)
        else not isinstance(block, Image) or bool(block.data or block.url)
        for block in content
    )


def numbered(id: str | None, at: int) -> str | None:
    """The id of the message at index `at` of those that one record holds: the first has the record's."""
    return f"{id}-{at + 1}" if id is not None and at else id


def text_field(given: dict[str, Raw], name: str) -> str | None:
    """The string `given[name]`; none where it is missing or something else."""
    raw = given.get(name)
    if raw is None:
        return None
    try:
        return _decode_string(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def is_true(given: dict[str, Raw], name: str) -> bool:
    """Whether `given[name]` is the literal true."""
    return given.get(name) == _TRUE


def unix_seconds(text: str | None) -> float | None:
    """Unix seconds of an ISO 8601 time, UTC where it names no zone; none where it is no time.

    Nor is 1970's first moment: so a format that demands a time is written where nobody knows it.
    """
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() or None

"""The common form of a recorded session: what every reader returns, whichever program wrote the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.core.budget.recorded_window import Evidence, EvidenceKind
from compactd.core.history.entries import is_summary
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Block, Image, Message, Meta, Role, Text, Thinking

_TRUE = Raw(b"true")

_decode_string = msgspec.json.Decoder(str).decode

MessageLine = tuple[Message, Raw]
"""(message, the same in neutral form as bytes)."""


MAX_EVIDENCE = 63
"""How many numbers that show the size of the context window are kept, in addition to the newest."""


class FileRequest(Struct, frozen=True, kw_only=True):
    """A request to a model that a file reports, of the conversation or of a sub-agent."""

    usage: Raw
    """The usage report, as the file has it. If the file has several of one request, the last one."""
    model: str
    """The model that answered; empty if the file does not say."""
    at: float | None
    """When it was answered; None if the file does not say."""
    chain: str = ""
    """Which sub-agent made it; empty if it is a request of the conversation."""
    place: int = 0
    """How many messages of the session are before it; the position of the answer if it is one of them."""
    is_answer: bool = False
    """Whether the answer is a message of the session whose usage report this is. An aborted or failed answer
    is not."""
    cost: float | None = None
    """The cost that the file reports, in US dollars; None if it reports none."""


class SessionFile(Struct, frozen=True, kw_only=True):
    """A recorded session."""

    format: str
    messages: tuple[MessageLine, ...]
    """The messages, oldest first. Summaries that the other program wrote are at their original places."""
    session_id: str | None = None
    title: str | None = None
    model: str | None = None
    """The program's name for the model, as `provider/id` if the file names the provider."""
    working_dir: str | None = None
    system_prompt: str | None = None
    tools: tuple[Raw, ...] = ()
    """The tools that were offered to the model, in neutral form, if the file contains them."""
    compactions: int = 0
    first_kept: tuple[tuple[int, int], ...] = ()
    """For each summary, (its position in `messages`, the position of the first message before it that stayed
    in the context).
    """
    pinned: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """For each summary, (its position in `messages`, the positions of older messages that also stayed in the
    context, although they are before the first kept one).
    """
    evidence: tuple[Evidence, ...] = ()
    """What the file shows about the context window of the current model."""
    model_from: int = 0
    """The position of the first message since `model` is in use."""
    requests: tuple[FileRequest, ...] = ()
    """All requests that the file reports, in its order. Empty for formats whose messages have all reports."""
    warnings: tuple[str, ...] = ()
    """Sentences that say what could not be read."""


class SessionBuilder:
    """A session that is being read."""

    def __init__(self, format: str) -> None:
        self.format = format
        self.messages: list[MessageLine] = []
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
        """What the file shows about the context window of the current model."""
        self.model_from = 0
        """The position of the first message since `model` is in use."""
        self.requests: dict[str, FileRequest] = {}
        """What identifies a request -> the request."""
        self.left_out: Counter[str] = Counter()
        """What was skipped on purpose -> how often."""
        self._answers: list[int] = []
        """Positions of the answers among the first `_looked_at` messages."""
        self._looked_at = 0

    def warn(self, text: str) -> None:
        """Add a warning about something that could not be read."""
        self.warnings.append(text)

    @contextmanager
    def skipping(self, what: str, number: int) -> Iterator[None]:
        """If the code in this context raises `CompactdError`, warn that a part of the file was left out. The
        part is named by its kind `what` and its `number`.
        """
        try:
            yield
        except CompactdError as error:
            self.warn(f"{what} {number} was left out: {error.message}")

    def set_model(self, model: str, provider: str = "") -> None:
        """Set the model of the next answers, as `provider/model` if the provider is known. Discard what the
        file showed about another model's window. An empty `model` is ignored.
        """
        if not model:
            return
        model = f"{provider}/{model}" if provider else model
        if self.model is not None and model != self.model:
            self.evidence.clear()
            self.model_from = len(self.messages)
        self.model = model

    def add_window_evidence(self, kind: EvidenceKind, tokens: int) -> None:
        """Add a number that shows how large the current model's context window is; `kind` says how. 0 is
        ignored.
        """
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
        """Add a message. A message without content is ignored, unless it is a tool message."""
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
        """Add a message unchanged."""
        self.messages.append((message, Raw(encode_message(message))))

    def summary(
        self, text: str, *, id: str | None = None, created_at: float | None = None, meta: Meta | None = None
    ) -> None:
        """Add a summary that the file's program wrote. Its place is after the messages added so far."""
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
        """Add a usage report to the newest answer, if it has none yet."""
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
        """Remove the messages from `start` on, which the program took back. `what` names the operation."""
        gone = self.messages[start:]
        if gone:
            self.warn(f"{len(gone)} messages were taken back by a {what}")
        del self.messages[start:]
        self.compactions -= sum(is_summary(message) for message, _ in gone)
        # Do not scan all messages here, because a file may take back messages often.
        self._looked_at = min(self._looked_at, start)
        while self._answers and self._answers[-1] >= start:
            self._answers.pop()
        for kept in (self.first_kept, self.pinned):
            while kept and (place := next(reversed(kept))) >= start:
                del kept[place]

    def count_skipped(self, what: str) -> None:
        """Count something that is not part of the conversation. It is reported once, at the end."""
        self.left_out[what] += 1

    def finish(self) -> SessionFile:
        """Return the session as read so far."""
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
            requests=tuple(self.requests.values()),
            warnings=(
                *self.warnings,
                *(f"{count:,} × {what}: left out" for what, count in self.left_out.items()),
            ),
        )


def live_places(
    messages: Sequence[Message], first_kept: Mapping[int, int], pinned: Mapping[int, Sequence[int]]
) -> list[int]:
    """Return the positions of the messages in the next request: the last summary, the older messages that
    stayed in the context, and the messages after the summary.

    `first_kept`, `pinned`: as in `SessionFile`, by position. O(messages).
    """
    last = next((at for at in reversed(range(len(messages))) if is_summary(messages[at])), -1)
    if last < 0:
        return list(range(len(messages)))
    kept = max(0, first_kept.get(last, last))
    stayed = (at for at in pinned.get(last, ()) if 0 <= at < kept)
    return [last, *stayed, *range(kept, last), *range(last + 1, len(messages))]


def branch_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids of the entries on the branch that ends at `leaf`, from its root on. `parents` maps an
    entry's id to that of its parent. The root's parent is not in `parents`, or is on the branch already.
    """
    branch: dict[str, None] = {}
    while leaf is not None and leaf in parents and leaf not in branch:
        branch[leaf] = None
        leaf = parents[leaf]
    return list(branch)[::-1]


def has_content(content: Sequence[Block]) -> bool:
    """Return whether `content` has a block that is not empty. An aborted request can leave empty text."""
    return any(
        bool(block.text or (isinstance(block, Thinking) and block.redacted))
        if isinstance(block, Text | Thinking)
        else not isinstance(block, Image) or bool(block.data or block.url)
        for block in content
    )


def plain_content(blocks: tuple[Block, ...]) -> str | tuple[Block, ...]:
    """Return the content of a tool result: its text if it is a single block of text, otherwise its blocks."""
    if len(blocks) == 1 and isinstance(blocks[0], Text):
        return blocks[0].text
    return blocks


def message_id(id: str | None, at: int) -> str | None:
    """Return the id of the message at index `at` among the messages that were made from one record.

    The first has the record's `id`, the second `<id>-2`. None if the record has no id.
    """
    return f"{id}-{at + 1}" if id is not None and at else id


def text_field(given: dict[str, Raw], name: str) -> str | None:
    """Return the string `given[name]`; None if it is missing or something else."""
    raw = given.get(name)
    if raw is None:
        return None
    try:
        return _decode_string(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def is_true(given: dict[str, Raw], name: str) -> bool:
    """Return whether `given[name]` is the literal true."""
    return given.get(name) == _TRUE


def unix_seconds(text: str | None) -> float | None:
    """Return the Unix seconds of an ISO 8601 time, in UTC if it has no time zone; None if it is not a time.

    The first moment of 1970 also gives None: compactd's writers use it if a format requires a time that is
    unknown.
    """
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() or None

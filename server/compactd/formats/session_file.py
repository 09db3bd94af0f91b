"""What a recorded session is once it is read, whichever program wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Raw, Struct

from compactd.formats.neutral_out import encode_message
from compactd.formats.parts import first_byte, string
from compactd.messages import Block, Image, Message, Meta, Role, Text, Thinking

Line = tuple[Message, Raw]
"""A message and the same in neutral shape, as bytes."""


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
    compactions: int = 0
    first_kept: tuple[tuple[int, int], ...] = ()
    """(place of a summary in `messages`, place of the first message before it that stayed in the context)."""
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
        self.compactions = 0
        self.first_kept: dict[int, int] = {}

    def warn(self, text: str) -> None:
        """Notes something that could not be read."""
        self.warnings.append(text)

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
            compactions=self.compactions,
            first_kept=tuple(self.first_kept.items()),
            warnings=tuple(self.warnings),
        )


def has_content(content: Sequence[Block]) -> bool:
    """False for nothing but empty text: what an aborted request leaves behind."""
    return any(
        bool(block.text or (isinstance(block, Thinking) and block.redacted))
        if isinstance(block, Text | Thinking)
        else not isinstance(block, Image) or bool(block.data or block.url)
        for block in content
    )


def text_field(given: dict[str, Raw], name: str) -> str | None:
    """The string `given[name]`; none where it is missing or something else."""
    raw = given.get(name)
    return string(raw, f"$.{name}") if raw is not None and first_byte(raw) == b'"' else None


def is_true(given: dict[str, Raw], name: str) -> bool:
    """Whether `given[name]` is the literal true."""
    return given.get(name) == Raw(b"true")


def unix_seconds(text: str | None) -> float | None:
    """Unix seconds of an ISO 8601 time, UTC where it names no zone; none where it is no time."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

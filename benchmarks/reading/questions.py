"""The questions of the reading test, with the key for a grader.

A language model wrote them from the record alone, before it saw any hand-over. They name a recording by its
hash, and the key is in the writer's own words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

FOLDER: Final = Path(__file__).parent / "questions"

Kind = Literal["goal", "user", "decision", "state", "fact", "failed"]
KINDS: Final[tuple[Kind, ...]] = ("goal", "user", "decision", "state", "fact", "failed")


class Question(Struct, frozen=True):
    """A question whose answer somebody who takes over needs."""

    id: str
    kind: Kind
    question: str
    points: tuple[str, ...]
    """What a complete answer says, in one to three separate points."""


class Questions(Struct, frozen=True):
    """The questions about one recording."""

    session: str
    """The recording's hash."""
    questions: tuple[Question, ...]

    @property
    def asked(self) -> str:
        """The questions as a reader sees them, without the key."""
        return "\n".join(f"{one.id}: {one.question}" for one in self.questions)


def load_questions() -> dict[str, Questions]:
    """Return the questions by the hash of their recording."""
    files = sorted(FOLDER.glob("*.json"))
    found = (msgspec.json.decode(file.read_bytes(), type=Questions) for file in files)
    return {one.session: one for one in found}

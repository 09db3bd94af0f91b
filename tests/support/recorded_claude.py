"""Plays recorded sessions of Claude Code through the hook: each event, and the transcript as it was then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.hook_runs import PATIENT, Answer, told
from tests.support.recorded import folder

VERSIONS = ("2.1.197", "2.1.240", "2.1.330")
MANUAL_THEN_AUTO = "print-manual-then-auto"

_data = folder()
RECORDINGS = None if _data is None else _data.parent / "claude-code"

needs_recordings = pytest.mark.skipif(
    RECORDINGS is None or not RECORDINGS.exists(), reason="the recorded sessions are not on this machine"
)


class Played(NamedTuple):
    """An event and what the hook answered."""

    name: str
    """The event's name and what follows it in the file's name, such as `SessionStart-compact`."""
    event: dict[str, Any]
    answer: Answer


Tell = Callable[[dict[str, Any]], Answer]


class RecordedSession:
    """A recorded session, whose transcript grows in `home` as the events are played."""

    def __init__(
        self, home: Path, scenario: str, version: str = "2.1.330", *, tell: Tell | None = None
    ) -> None:
        """`tell` gives an event to the hook and returns what it answered; by default, in this process."""
        assert RECORDINGS is not None
        self.home = home
        self._tell = tell or (lambda event: told(home, "claude-code", event, PATIENT))
        self._folder = RECORDINGS / version / scenario
        self.path = home / "recorded.jsonl"
        rows = self._folder / "transcript.jsonl"
        self._rows = rows.read_bytes().splitlines(keepends=True) if rows.exists() else []
        self._shown = 0
        self.session_id = ""
        self._show(0)

    def play(self, *, left_out: tuple[str, ...] = ()) -> Iterator[Played]:
        """Play the events, except those whose names begin with one of `left_out`."""
        for file in sorted((self._folder / "events").iterdir()):
            name = file.stem.partition("-")[2]
            if name.startswith(left_out):
                continue
            event = json.loads(file.read_bytes())
            self.session_id = self.session_id or event["session_id"]
            event["transcript_path"] = str(self.path)
            event["cwd"] = str(self.home)
            yield Played(name, event, self._tell(event))
            inner = "agent_id" in event
            if not inner and name.startswith(("UserPromptSubmit", "PostCompact")):
                self._show(self._shown + 1)

    def texts(self, **options: Any) -> list[str]:
        """Return what the hook gave back, in the order of the events."""
        return [one.answer.text for one in self.play(**options) if one.answer.text]

    def _show(self, start: int) -> None:
        """Show the rows from `start` up to the next prompt or compaction, which Claude Code writes after its
        event.
        """
        end = start
        while end < len(self._rows) and not (end >= start and _is_anchor(json.loads(self._rows[end]))):
            end += 1
        self._shown = end
        self.path.write_bytes(b"".join(self._rows[:end]))


def _is_anchor(row: dict[str, Any]) -> bool:
    return row.get("subtype") == "compact_boundary" or "promptSource" in row


def state_path(home: Path) -> Path:
    """Return the file of the only session's state."""
    (path,) = (home / "data" / "hooks").glob("*.json")
    return path


__all__ = ["MANUAL_THEN_AUTO", "RECORDINGS", "VERSIONS", "Played", "RecordedSession", "needs_recordings"]

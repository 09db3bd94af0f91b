"""compactd as a compactor of the suite: one session for each run, compacted in each round by `extract`.

The suite gives each round the text that the previous one returned. compactd does not need it: the session
goes on, and its journal still has the originals, as in every session that is compacted more than once.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw, Struct

from compactd.client import Client, RpcError
from compactd.formats.messages.base import read_messages
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Text

MODEL = "openai/gpt-4o"
WINDOW = 10_000_000
"""Nothing is due by itself: only the budget decides."""

ROLES = frozenset({"user", "assistant"})
"""The roles of turns that become messages. System turns become the system prompt, which no compaction
changes."""


class _Started(Struct):
    session_id: str


class _Context(Struct):
    messages: list[Raw]


class Compactd:
    """A compactor. The daemon's unit is tokens and the suite's is characters, so it tries target sizes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.session_id: str | None = None
        """The session of the run. Each round compacts it once."""
        self._target = 0
        """The largest target, in tokens, whose context fits into the budget."""

    def compact(self, turns: Sequence[tuple[str, str]], round_number: int, budget_chars: int) -> str:
        """Return the context after this round. It has at most `budget_chars` characters, if any target gives
        that. `turns` are roles and texts; only those of round 1 are read.
        """
        if round_number == 1:
            self._start(turns)
            self._target = self._largest_target(budget_chars)
        self._compacted(self._target)
        if len(self._text()) > budget_chars:
            self._target = self._largest_target(budget_chars)
            self._compacted(self._target)
        return self._text()

    def _start(self, turns: Sequence[tuple[str, str]]) -> None:
        if unknown := {role for role, _ in turns} - ROLES - {"system"}:
            raise ValueError(f"compactd has no message for a turn of the role {', '.join(sorted(unknown))}")
        self._close()
        system = "\n".join(text for role, text in turns if role == "system")
        settings = {"enabled": False, "context_window": WINDOW}
        self.session_id = self._client.ask(
            "session/start",
            {"model": MODEL, "compaction": settings, "system_prompt": system, "persist": False},
            _Started,
        ).session_id
        messages = [{"role": role, "content": text} for role, text in turns if role in ROLES]
        self._client.call("session/append", {"session_id": self.session_id, "messages": messages})

    def _close(self) -> None:
        if self.session_id is not None:
            self._client.call("session/close", {"session_id": self.session_id})

    def _largest_target(self, budget_chars: int) -> int:
        """Return the largest target whose context has at most `budget_chars` characters, by bisection, or if
        there is none, the smallest that compactd accepts. The session does not change.
        """
        best = None
        # A token of a summary has more than two characters.
        too_small, too_large = 0, max(2, budget_chars // 2)
        while too_large - too_small > 1:
            target = (too_small + too_large) // 2
            chars = self._chars_at(target)
            if chars is not None and chars > budget_chars:
                too_large = target
                continue
            too_small = target
            if chars is not None:
                best = target
        return too_large if best is None else best

    def _chars_at(self, target: int) -> int | None:
        """Return the characters of the context if it is compacted to `target` tokens; None if `target` is too
        small for compactd."""
        is_compacted = self._compacted(target)
        if is_compacted is None:
            return None
        chars = len(self._text())
        if is_compacted:
            self._undo()
        return chars

    def _compacted(self, target: int) -> bool | None:
        """Compact to `target` tokens. Return whether that changed the context; None if `target` is too small
        for compactd.
        """
        params = {
            "session_id": self.session_id,
            "strategy": "extract",
            "force": True,
            "target_tokens": target,
        }
        try:
            return self._client.ask("session/compact", params, CompactionResult).compacted
        except RpcError as error:
            if error.code != CannotFit.code:
                raise
            return None

    def _undo(self) -> None:
        self._client.call("session/undo", {"session_id": self.session_id})

    def _text(self) -> str:
        """Return the text of the context, without the system prompt."""
        context = self._client.ask("session/context", {"session_id": self.session_id}, _Context)
        blocks = [block for message, _ in read_messages(context.messages) for block in message.content]
        return "\n".join(block.text for block in blocks if isinstance(block, Text))

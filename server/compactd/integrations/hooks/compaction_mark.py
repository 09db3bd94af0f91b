"""What the events of Claude Code say about a compaction before it is done.

A model's fork writes the summary. The end of that fork (`SubagentStop`) is the only event that contains the
summary before the session starts again: `PostCompact` and the transcript's records come after that
(2.1.197, 2.1.240 and 2.1.330, run 2026-11). The order is PreCompact, SubagentStop, SessionStart, PostCompact.

A compaction that fails sends PreCompact and nothing else. A sub-agent that compacts its own conversation
sends the same events with its id, but the end of its fork does not say whose it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from compactd.integrations.hooks.events import HookEvent
    from compactd.integrations.hooks.hook_state import HookState

MAX_MARK_S: Final = 900.0
"""A compaction that began more than this many seconds ago has failed."""
REPEAT_S: Final = 2.0
MAX_INNER: Final = 16
MAX_SUMMARY_CHARS: Final = 262_144


class CompactionMark(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A compaction of the session that has begun."""

    at: float
    trigger: str = ""
    """`manual` or `auto`; empty if the agent does not say."""
    prompt_id: str = ""
    summary: str = ""
    """The summary, as the context gets it; empty if it is not known."""
    is_disputed: bool = False
    """Whether the summary may be that of a sub-agent's own conversation."""

    def repeats(self, before: CompactionMark) -> bool:
        """Return whether this is the mark of the same event as `before`, which another hook has handled."""
        return bool(self.prompt_id) and self.prompt_id == before.prompt_id and self.at - before.at < REPEAT_S


def note(state: HookState, event: HookEvent, now: float) -> None:
    """Record in `state` what `event` says about a compaction. `now`: the Unix time."""
    inner = {agent: at for agent, at in state.inner.items() if 0 <= now - at <= MAX_MARK_S}
    if event.is_inner:
        if event.kind == "before" and len(inner) < MAX_INNER:
            inner[event.agent_id] = now
        elif event.kind in ("start", "after", "inner_end"):
            inner.pop(event.agent_id, None)
    elif event.kind == "before":
        state.mark = CompactionMark(at=now, trigger=event.trigger, prompt_id=event.prompt_id)
        state.is_inner_compaction = False
    elif event.kind == "fork_end":
        _add_summary(state, event, now, is_disputed=bool(inner))
    elif event.kind in ("prompt", "end") or (event.kind == "start" and event.source != "compact"):
        # The agent goes on without a compaction, so it failed.
        state.mark = None
    state.inner = inner


def is_of_sub_agent(state: HookState, event: HookEvent, newest_role: Callable[[], str]) -> bool:
    """Return whether a sub-agent compacted its own conversation before the session starts with `event`.

    2.1.197 and 2.1.240 do not say so (2.1.330 does). When the session compacts by itself, it is about to
    answer a prompt or a tool's result; while a sub-agent works, the session's newest message is the model's
    (all three versions, run 2026-11). `newest_role` returns the role of that message.
    """
    mark = state.mark
    is_auto = mark is not None and mark.trigger == "auto"
    return event.agent == "claude-code" and is_auto and newest_role() == "assistant"


def take_summary(state: HookState, event: HookEvent, now: float) -> str:
    """Return the summary of the compaction after which the session starts again with `event`; empty if it is
    not known. Forget the mark.
    """
    mark, state.mark = state.mark, None
    if mark is None or mark.is_disputed or not _is_of(mark, event, now):
        return ""
    return mark.summary


def _add_summary(state: HookState, event: HookEvent, now: float, *, is_disputed: bool) -> None:
    mark = state.mark
    if mark is not None and event.summary and _is_of(mark, event, now):
        # If the fork had to try again, the last summary is the one that is used.
        state.mark = replace(
            mark,
            summary=event.summary[:MAX_SUMMARY_CHARS],
            is_disputed=mark.is_disputed or is_disputed,
        )


def _is_of(mark: CompactionMark, event: HookEvent, now: float) -> bool:
    ids = {mark.prompt_id, event.prompt_id} - {""}
    return 0 <= now - mark.at <= MAX_MARK_S and len(ids) <= 1

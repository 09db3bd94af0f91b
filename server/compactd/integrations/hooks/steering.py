"""Say what a summary has to contain before Claude Code's model writes it.

Claude Code puts what a hook prints at PreCompact under "Additional Instructions" of the request for the
summary (2.1.330, run 2026-11). After `/compact`, it also shows that text to the user and the model. So the
text is short, and only what the user typed is called the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from compactd.core.authors.authors import USER, stretches
from compactd.core.constraints.constraints import constraints_of, fitting_constraints
from compactd.core.history.entries import Item
from compactd.core.text.atoms import atoms, plain_path
from compactd.core.text.quoting import without_frames
from compactd.core.work.calls import shorten
from compactd.core.work.file_operations import arguments_of, is_change, paths_in
from compactd.core.work.plan import Plan
from compactd.core.work.tool_kinds import tool_kind
from compactd.formats.messages.neutral import decode_message
from compactd.integrations.hooks.hook_state import MirroredMessage
from compactd.protocol.messages import ToolCall, ToolResult

MAX_CHARS: Final = 1_500
"""The most characters of the text."""
MAX_RULE_CHARS: Final = 900
"""The most characters of the user's constraints in it. A longer constraint is left out."""
MAX_TASKS: Final = 8
MAX_TASK_CHARS: Final = 120
MAX_NAMES: Final = 12
MAX_NAME_CHARS: Final = 80
MAX_TYPED_CHARS: Final = 20_000
"""How many characters of the newest typed messages are searched for names."""

_LEAD: Final = "The summary must contain the following."
_RULES: Final = "Constraints that the user set, word for word:"
_TASKS: Final = "Tasks of the assistant's plan that are not done:"
_CHANGED: Final = "Files that the assistant changed:"
_NAMES: Final = "Names that the user wrote:"


def steering_text(held: Sequence[MirroredMessage], folder: str) -> str:
    """Return what a summary of the messages `held` (oldest first) has to contain; empty if there is nothing.
    `folder`: the working directory. O(typed characters + calls).
    """
    typed = [_item(one) for one in held if one.is_typed]
    said = constraints_of(typed)
    rules = [one.text for one in fitting_constraints(said.in_force, MAX_RULE_CHARS, len)]
    tasks, changed = _of_calls(one for one in held if _may_call(one.message))
    names = [name for name in _typed_names(typed) if not any(name in rule for rule in rules)]
    sections = (
        _bulleted(_RULES, [_line(rule) for rule in rules]),
        _bulleted(_TASKS, tasks),
        _listed(_CHANGED, [plain_path(path, folder) for path in changed]),
        _listed(_NAMES, names),
    )
    text = _LEAD
    for section in sections:
        if section and len(text) + len(section) < MAX_CHARS:
            text = f"{text}\n{section}"
    return text if text != _LEAD else ""


def _item(held: MirroredMessage) -> Item:
    return Item(entry_id=held.entry_id, body=decode_message(held.message), tokens=held.tokens)


def _may_call(message: bytes) -> bool:
    return b'"tool_call"' in message or b'"tool_result"' in message


def _of_calls(held: Iterable[MirroredMessage]) -> tuple[list[str], list[str]]:
    """Return (the tasks of the agent's plan that are not done, the newest files that it changed)."""
    plan = Plan()
    changed: dict[str, None] = {}
    calls: dict[str, ToolCall] = {}
    for one in held:
        for block in decode_message(one.message).content:
            if isinstance(block, ToolCall):
                arguments = arguments_of(block)
                kind = tool_kind(block.name, arguments)
                if kind == "plan":
                    plan.read_list(arguments, one.entry_id)
                elif kind == "task_update":
                    plan.read_updated(arguments, one.entry_id)
                elif kind == "task_create":
                    calls[block.call_id] = block
                elif kind in ("edit", "write", "patch") and is_change(arguments):
                    for path in paths_in(arguments):
                        changed.pop(path, None)
                        changed[path] = None
            elif isinstance(block, ToolResult) and block.call_id in calls:
                created = arguments_of(calls.pop(block.call_id))
                plan.read_created(created, str(block.content), one.entry_id)
    tasks = [task.text for task in plan.result() if task.status in ("open", "in_progress")]
    return [_line(shorten(text, MAX_TASK_CHARS)) for text in tasks[:MAX_TASKS]], list(changed)[-MAX_NAMES:]


def _typed_names(typed: Sequence[Item]) -> list[str]:
    """Return the names, such as paths and identifiers, in the newest typed messages; the newest message's
    first.
    """
    left = MAX_TYPED_CHARS
    found: dict[str, None] = {}
    for item in reversed(typed):
        for stretch in stretches(item.message):
            if stretch.author == USER and left > 0:
                found.update((text, None) for _, text in atoms(stretch.text[:left]))
                left -= len(stretch.text)
    names = [name for name in found if not any(name in other and name != other for other in found)]
    return names[:MAX_NAMES]


def _line(text: str) -> str:
    """Return `text` on one line, without anything that could pass for structure."""
    return without_frames(" ".join(text.split()))


def _bulleted(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((heading, *(f"- {line}" for line in lines))) if lines else ""


def _listed(heading: str, names: Sequence[str]) -> str:
    shown = [_line(name) for name in names if len(name) <= MAX_NAME_CHARS and name.isprintable()]
    return f"{heading} {', '.join(shown)}" if shown else ""

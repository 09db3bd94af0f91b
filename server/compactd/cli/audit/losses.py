"""Measure what an agent's compactions lost: the user's constraints, open tasks, and facts used again later.

Each quantity has one function. A constraint is lost if the hook would restore it
(`integrations/hooks/lost_facts.py`) and the context does not have its words: to restore one too many does no
harm, but to say that it is lost would be wrong. A task in a file cannot be lost by a compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.authors.authors import is_typed
from compactd.core.constraints.constraints import Constraint, constraints_of
from compactd.core.extract.facts import FactCache
from compactd.core.history.entries import Item, is_summary
from compactd.core.text.atoms import COMMON_WORDS
from compactd.core.text.message_text import join_text_blocks
from compactd.core.work.state import WorkReader
from compactd.formats.files.detect import read
from compactd.integrations.hooks.events import AGENTS, AgentName
from compactd.integrations.hooks.lost_facts import SeparatedMessages, absent_constraints, separate
from compactd.integrations.hooks.transcript_steps import CompactionStep, steps_of, without_restored
from compactd.protocol.messages import Message
from compactd.protocol.work import PlanTask

TOLD_SHARE = 0.5
"""A constraint or task counts as lost only if the context has fewer than this share of its words, apart from
common ones: what is said in other words shares some, and who accuses must be sure."""
_MIN_WORD_CHARS = 3
_WORD_CHARS = 6
"""How many characters of a word are compared, so that `balance` and `balanced` are the same."""


class Loss(Struct, frozen=True, kw_only=True):
    """What one compaction lost."""

    messages: int
    """How many messages it removed."""
    constraints: tuple[str, ...]
    """The user's constraints in force whose words the context does not have since this compaction."""
    constraints_before: int
    """How many constraints were in the context before it."""
    tasks: tuple[str, ...]
    """The unfinished tasks of the agent's plan whose words the context does not have, and that were not done
    later."""
    tasks_before: int
    """How many unfinished tasks the plan had, unless it is in a file."""
    facts_used_again: int
    """How many facts (paths, names, numbers) of the removed messages the agent wrote again later, before the
    next compaction."""
    facts_lost: int
    """Those of them that the context lacked after the compaction."""
    files_read_again: int
    """How many files the agent had read before the compaction and read again after it, before the next."""


class Conversation(Struct, frozen=True, kw_only=True):
    """The messages of the conversation with the user, and its compactions."""

    messages: tuple[Message, ...]
    compactions: tuple[RecordedCompaction, ...]


class RecordedCompaction(Struct, frozen=True, kw_only=True):
    """A compaction in a session file."""

    position: int
    """How many of the messages came before it."""
    summary: str
    stays: str = ""
    """Text that the agent kept next to its summary."""
    stayed: frozenset[int] = frozenset()
    """The positions of earlier messages that stayed in the context."""


def losses_of(
    data: bytes, agent: str, working_dir: str, told: Callable[[str], None] = lambda text: None
) -> list[Loss]:
    """Return what each compaction of a session file lost, oldest first. `told` is called with the progress.
    O(length of the texts). Raise `CompactdError` if the file cannot be read.
    """
    told("reading the messages")
    conversation = conversation_of(data, agent)
    items = [
        Item(entry_id=f"e{number}", body=message, tokens=0, kind=_kind(message))
        for number, message in enumerate(conversation.messages, start=1)
    ]
    cache = FactCache(working_dir or None)
    work = WorkReader()
    losses: list[Loss] = []
    lost_before: set[str] = set()
    begin = 0
    every = conversation.compactions
    for number, compaction in enumerate(every, start=1):
        told(f"looking for what compaction {number:,} of {len(every):,} lost")
        end = every[number].position if number < len(every) else len(items)
        until, later = items[: compaction.position], items[compaction.position : end]
        gone = until[begin:]
        for item in gone:
            work.add(item)
        typed = {item.entry_id for item in until if is_typed(item.message)}
        stayed = {items[position].entry_id for position in compaction.stayed if position < len(until)}
        parts = separate(gone, compaction.summary, compaction.stays, typed=typed, stayed=stayed)
        said, absent = lost_constraints(until, compaction, typed, stayed, lost_before)
        plan = () if work.has_plan_in_file else work.work().plan
        unfinished, missing = lost_tasks(plan, told_words(parts))
        used, lost = lost_facts(gone, parts, later, cache)
        losses.append(
            Loss(
                messages=len(gone) - len(stayed),
                constraints=tuple(one.text for one in absent),
                constraints_before=said,
                tasks=tuple(task.text for task in missing),
                tasks_before=len(unfinished),
                facts_used_again=used,
                facts_lost=lost,
                files_read_again=files_read_again(gone, later, cache),
            )
        )
        lost_before.update(one.text for one in absent)
        begin = compaction.position
    for item in items[begin:]:
        work.add(item)
    done = {task.text for task in work.work().plan if task.status == "done"}
    return [replace(loss, tasks=tuple(task for task in loss.tasks if task not in done)) for loss in losses]


def lost_constraints(
    until: Sequence[Item],
    compaction: RecordedCompaction,
    typed: set[str],
    stayed: set[str],
    lost_before: set[str],
) -> tuple[int, tuple[Constraint, ...]]:
    """Return (how many constraints were in the context before a compaction, those that it lost). `until`: all
    messages before it. `lost_before`: constraints that earlier compactions lost.
    """
    parts = separate(until, compaction.summary, compaction.stays, typed=typed, stayed=stayed)
    said = constraints_of(until)
    held = [one for one in said.in_force if one.text not in lost_before]
    absent = [
        one for one in absent_constraints(said, compaction.summary, parts.left) if one.text not in lost_before
    ]
    told = told_words(parts) if absent else frozenset[str]()
    return len(held), tuple(one for one in absent if not is_told(one.text, told))


def lost_tasks(plan: Sequence[PlanTask], told: frozenset[str]) -> tuple[list[PlanTask], list[PlanTask]]:
    """Return (the unfinished tasks of a plan, those of them that are not told in a context with the words
    `told`)."""
    unfinished = [task for task in plan if task.status in ("open", "in_progress")]
    return unfinished, [task for task in unfinished if not is_told(task.text, told)]


def told_words(parts: SeparatedMessages) -> frozenset[str]:
    """Return the words of the context after a compaction. O(its length)."""
    return _words(_text_of(parts.shown))


def is_told(text: str, told: frozenset[str]) -> bool:
    """Return whether a constraint or task may be in a context with the words `told`, in whatever markup, case
    and order. A text without telling words may be."""
    wanted = _words(text)
    return len(wanted & told) >= TOLD_SHARE * len(wanted)


def lost_facts(
    gone: Sequence[Item], parts: SeparatedMessages, later: Sequence[Item], cache: FactCache
) -> tuple[int, int]:
    """Return (how many facts of the messages `gone` the agent wrote again in the messages `later`, how many
    of these the context lacked after the compaction).
    """
    before = _atoms(gone, cache)
    again = before & _atoms([item for item in later if item.message.role == "assistant"], cache)
    return len(again), len(again - _atoms(parts.shown, cache))


def files_read_again(gone: Sequence[Item], later: Sequence[Item], cache: FactCache) -> int:
    """Return how many files were read both in the messages `gone` and in the messages `later`."""
    before = {path for item in gone for _, path in cache.files(item).read}
    return len(before & {path for item in later for _, path in cache.files(item).read})


def conversation_of(data: bytes, agent: str) -> Conversation:
    """Return the conversation in a session file. Raise `CompactdError` if it cannot be read."""
    for name in AGENTS:
        if name == agent:
            return _from_steps(data, name)
    return _from_file(data, agent)


def _from_steps(data: bytes, agent: AgentName) -> Conversation:
    """Return the conversation as the hook reads it."""
    messages: list[Message] = []
    compactions: list[RecordedCompaction] = []
    positions: dict[str, int] = {}
    for step in steps_of(agent, data, None, is_last=True)[0]:
        if isinstance(step, CompactionStep):
            if compactions and compactions[-1].summary == step.summary:
                continue  # The agent has written it again.
            compactions.append(
                RecordedCompaction(
                    position=len(messages),
                    summary=step.summary,
                    stays=step.stays,
                    stayed=_stayed(step, positions),
                )
            )
            continue
        message = without_restored(step.message)
        if message is None or (message.id is not None and message.id in positions):
            continue
        if message.id is not None:
            positions[message.id] = len(messages)
        messages.append(message)
    return Conversation(messages=tuple(messages), compactions=tuple(compactions))


def _stayed(step: CompactionStep, positions: dict[str, int]) -> frozenset[int]:
    stayed = {positions[name] for name in step.kept if name in positions}
    first, last = positions.get(step.first_kept), positions.get(step.last_kept)
    if first is not None and last is not None:
        stayed.update(range(first, last + 1))
    return frozenset(stayed)


def _from_file(data: bytes, agent: str) -> Conversation:
    """Return the conversation as a session file's reader reads it."""
    file = read(data, agent)
    first_kept, pinned = dict(file.first_kept), dict(file.pinned)
    messages: list[Message] = []
    compactions: list[RecordedCompaction] = []
    places: list[int] = []
    """For each message of the file, how many messages came before it."""
    for number, (message, _) in enumerate(file.messages):
        places.append(len(messages))
        if not is_summary(message):
            messages.append(message)
            continue
        first = first_kept.get(number, number)
        stayed = {places[at] for at in pinned.get(number, ()) if at < number}
        compactions.append(
            RecordedCompaction(
                position=len(messages),
                summary=join_text_blocks(message.content),
                stayed=frozenset(stayed | set(range(places[min(first, number)], len(messages)))),
            )
        )
    return Conversation(messages=tuple(messages), compactions=tuple(compactions))


def _kind(message: Message) -> str:
    return "summary" if is_summary(message) else "message"


def _text_of(items: Sequence[Item]) -> str:
    return "\n".join(join_text_blocks(item.message.content) for item in items)


def _words(text: str) -> frozenset[str]:
    """Return the beginnings of the words in a text, without short and common ones."""
    kept = "".join(char if char.isalnum() else " " for char in text.casefold())
    return frozenset(
        word[:_WORD_CHARS]
        for word in kept.split()
        if len(word) >= _MIN_WORD_CHARS and word not in COMMON_WORDS
    )


def _atoms(items: Sequence[Item], cache: FactCache) -> frozenset[int]:
    return frozenset().union(*(cache.learn(item).atoms for item in items))

"""Put the units (lines) that the extract picked under the headings of the summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from compactd.core.constraints.constraints import bullets, without_them
from compactd.core.extract.conversation import Conversation
from compactd.core.extract.line_roles import ARGUMENT, ASSISTANT, COMMAND, HEADER, NOTE, RESULT_ROLES, USER
from compactd.core.extract.story_room import NO_STORY, USER_LEAD, StoryText
from compactd.core.history.entries import number_of
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.quoting import TOOL_MARK, neutralise, quote_line
from compactd.core.text.summary_format import (
    CHANGES,
    CONSTRAINTS,
    CONTEXT,
    DONE,
    EXCERPTS,
    FAILURES,
    GOAL,
    HEADINGS,
    SECTIONS,
    Layout,
)
from compactd.core.work.aider import without_command
from compactd.core.work.tool_kinds import tool_kind
from compactd.protocol.messages import Message, Text

SHELL_CALLS: Final = "Other commands"
"""What precedes the commands of which no line is quoted. Other calls without a line, such as a read file, say
nothing."""

MIN_TOLD_CHARS: Final = 20
"""A shorter line may occur in the story by chance."""
PLACE_CHARS: Final = 24
"""A line is found in its message by its first characters, this many."""
_ITEM_HEAD = LazyPattern(rf"- \[e\d+\] (?:{USER_LEAD})?")
"""Matches the mark before the first line of an item about a message of the user."""
_RUNS = LazyPattern(
    r"(?!(?:from|import|def|class|for|if|elif|else|while|with|return|print|assert|try|except|do|done|fi|then|EOF)\b)"
    r"[\w./-]+(?: |\Z)"
)
"""Matches a line that runs a program, as far as it shows: it begins with a name, and no word of a script."""
_BULLET = LazyPattern(r"\A(?:[-*•] |\d+[.)] )")

Quoted = dict[tuple[int, ...], tuple[Sequence[str], str]]
"""What is quoted of a group of calls or texts, by its picked units: (the lines, what names it without lines).
"""


def sections(
    conversation: Conversation,
    picks: Sequence[int],
    layout: Layout = SECTIONS,
    story: StoryText = NO_STORY,
    quoted: Quoted | None = None,
) -> dict[str, list[str]]:
    """Return the lines of each section, by the section's name: those of the story, then the picked lines in
    the order of the conversation. `picks` are the indices of the picked lines (units of the conversation).
    `quoted` keeps what is quoted of each group, for a later call with other picks and the same story.
    O(picks)."""
    quoted = {} if quoted is None else quoted
    found: dict[str, list[str]] = {part: [] for part in (*HEADINGS, CHANGES)}
    found[CONSTRAINTS].extend(bullets(conversation.demands.in_force))
    told_in = story.laid_out(layout)
    items = {part: [(at, list(lines)) for at, lines in some] for part, some in told_in.items()}
    goals = dict(items.pop(GOAL, ()))
    done = items.pop(DONE, [])
    steps = {at: lines for at, lines in done if f"] {USER_LEAD}" in lines[0]}
    for part, some in items.items():
        found[part] += _lines_of(some)
    told = "\n".join(story.lines)
    said = " ".join(told.split())
    before = len(found[CONTEXT])
    alone: list[str] = []
    groups: dict[int, list[int]] = {}
    for i in sorted(picks):
        groups.setdefault(conversation.group(i), []).append(i)
    tried = conversation.failed_calls if layout.apart else frozenset()
    for group, members in groups.items():
        first = conversation.place(members[0])
        entry = conversation.order[first.item][0].entry_id
        if first.role == USER:
            _add_user_words(conversation, members, entry, found, goals, steps, said)
        elif first.role == HEADER:
            failed = group in conversation.failed
            place = CONTEXT
            if layout.apart and not failed and group in conversation.changing:
                place = CHANGES
            elif first.text in tried:
                # A call that succeeded after failing belongs to the failures, because it shows what fixed
                # them.
                place = FAILURES
            key = tuple(members)
            if key not in quoted:
                quoted[key] = _quote_call(conversation, members, entry, told, failed=failed)
            lines, name = quoted[key]
            found[place].extend(lines)
            if name:
                alone.append(name)
        else:
            key = tuple(members)
            if key not in quoted:
                quoted[key] = _quote_text(conversation, members, entry, told), ""
            found[CONTEXT].extend(quoted[key][0])
    if alone:
        found[CONTEXT].append(f"- {SHELL_CALLS}: {'; '.join(alone)}")
    found[GOAL] += _lines_of(sorted(goals.items()))
    found[DONE][:0] = _lines_of(done)
    if len(found[CONTEXT]) > before:
        found[CONTEXT].insert(before, EXCERPTS)
    return found


def _lines_of(items: Iterable[tuple[int, Sequence[str]]]) -> list[str]:
    return [line for _, lines in items for line in lines]


def _add_user_words(
    conversation: Conversation,
    members: Sequence[int],
    entry: str,
    found: dict[str, list[str]],
    goals: dict[int, list[str]],
    steps: Mapping[int, list[str]],
    told: str,
) -> None:
    """Add the picked lines of a user's message, without those that are in `told`, a text on one line. Limits
    go to `found` under Constraints, wishes to the item of their message in `steps` or else in `goals`. Lines
    that the user did not type (such as a pasted log) go to `found` under Critical Context."""
    limits: list[str] = []
    wishes: list[str] = []
    pasted: list[int] = []
    for i in members:
        place = conversation.place(i)
        if place.role != USER or not conversation.is_typed(place):
            if place.role != USER or conversation.text_outside_lists(place).strip():
                pasted.append(i)
            continue
        said = conversation.text_outside_lists(place).strip()
        text = _BULLET.sub("", without_them(said, conversation.demands), count=1)
        for old in conversation.replaced:
            if old in text:
                text = text.replace(old, "").strip()
        # The story tells `/ask why?` without the command.
        if not text or " ".join(neutralise(without_command(text)).split()) in told:
            continue
        # Constraints that the summary already lists were removed from the line. What remains of the line may
        # set no limit.
        is_limit = place.marked and conversation.sets_limit(text)
        (limits if is_limit else wishes).append(neutralise(text))
    if limits:
        found[CONSTRAINTS].extend((f"- {limits[0]}", *(f"  {line}" for line in limits[1:])))
        found[CONSTRAINTS][-1] += f" [{entry}]"
    if wishes:
        index = conversation.place(members[0]).item
        item = steps.get(index) or goals.get(index)
        if item is None:
            item = goals[index] = [f"- [{entry}] {wishes.pop(0)}"]
        if wishes:
            item.extend(f"  {line}" for line in wishes)
            item[:] = _in_order(item, conversation.order[index][0].message)
    if pasted:
        lines = [conversation.quote(conversation.place(i), "unknown") for i in pasted]
        found[CONTEXT].append(_with_reference(lines[0], entry))
        found[CONTEXT].extend(lines[1:])


def _in_order(item: Sequence[str], message: Message) -> list[str]:
    """Return the lines of an item about a message in the order of that message, as far as they can
    be found. The mark before the first line stays first. O(message + lines)."""
    head = _ITEM_HEAD.match(item[0])
    mark = "" if head is None else head[0]
    said = [item[0][len(mark) :], *(line.removeprefix("  ") for line in item[1:])]
    texts = [block.text for block in message.content if isinstance(block, Text)]
    whole = " ".join(" ".join(texts).replace("*", "").split())
    at = -1
    places: list[tuple[int, int]] = []
    for n, line in enumerate(said):
        begin = " ".join(line.replace("*", "").split()).lstrip("-·# ")[:PLACE_CHARS].rstrip(" …:")
        found = whole.find(begin) if begin else -1
        at = found if found >= 0 else at
        places.append((at, n))
    ordered = [said[n] for _, n in sorted(places)]
    return [f"{mark}{ordered[0]}", *(f"  {line}" for line in ordered[1:])]


def _quote_call(
    conversation: Conversation, members: Sequence[int], entry: str, told: str, *, failed: bool
) -> tuple[list[str], str]:
    """Return the picked lines of a tool call: the call, then the lines of its arguments or of its result,
    without those that are in `told`. For a command without such lines, return no line, but its name."""
    text = conversation.text(conversation.place(members[0]))
    name, _, rest = text.partition(" ")
    is_command = tool_kind(name, {}) == "shell"
    head = quote_line(f"`{rest}`" if is_command and rest else "Script" if is_command else text, "assistant")
    ending = " failed" if failed else ""
    body: list[str] = []
    for i in members[1:]:
        line = conversation.place(i)
        is_foreign = line.role in RESULT_ROLES or line.role == NOTE
        words = conversation.quote(line, "tool" if is_foreign else "assistant")
        if is_command and line.role == ARGUMENT:
            head += f" ({words})"  # the agent's words about the command
        elif is_command and not rest and line.role == COMMAND and _RUNS.match(line.text) is not None:
            head, rest = f"`{words}`", words  # the first line of a long command stands for it
        elif not _is_told(words, told):
            body.append(words)
    if body:
        return [f"- [{entry}] {head}{ending}:", *body], ""
    return [], f"{head}{ending} [{entry}]" if is_command and rest else ""


def _quote_text(conversation: Conversation, members: Sequence[int], entry: str, told: str) -> list[str]:
    """Return the picked lines of a group that contains no tool call: an assistant's text, an earlier summary,
    a note of a program, or a result whose call is unknown. Lines that are in `told` are left out."""
    body: list[str] = []
    for i in members:
        place = conversation.place(i)
        is_own = place.role == ASSISTANT and not conversation.is_quotation(place)
        words = conversation.quote(place, "assistant" if is_own else "unknown")
        if not _is_told(words, told):
            body.append(words)
    return [_with_reference(body[0], entry), *body[1:]] if body else []


def _is_told(line: str, told: str) -> bool:
    """Return whether the story says the same as a quoted line."""
    bare = _BULLET.sub("", line.removeprefix(TOOL_MARK).strip(), count=1)
    return len(bare) >= MIN_TOLD_CHARS and bare in told


def _with_reference(line: str, entry: str) -> str:
    """Return the first line of a message with the reference to it. A line that was given back to an agent has
    none: its message is not in the journal."""
    reference = f"[{entry}] " if number_of(entry) is not None else ""
    if line.startswith(TOOL_MARK):
        return f"{reference}{line}"
    return f"- {reference}{_BULLET.sub('', line.strip(), count=1)}"

"""Put the units (lines) that the extract picked under the headings of the summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compactd.core.constraints.constraints import bullets, without_them
from compactd.core.extract.conversation import Conversation
from compactd.core.extract.line_roles import ASSISTANT, HEADER, NOTE, RESULT_ROLES, TODO, USER
from compactd.core.text.quoting import neutralise
from compactd.core.text.summary_format import (
    BLOCKED,
    CHANGES,
    CONSTRAINTS,
    CONTEXT,
    DECISIONS,
    DONE,
    FAILURES,
    GOAL,
    HEADINGS,
    IN_PROGRESS,
    NEXT,
    SECTIONS,
    Layout,
)

_BULLET = re.compile(r"\A(?:[-*•] |\d+[.)] )")


def sections(
    conversation: Conversation, picks: Sequence[int], layout: Layout = SECTIONS
) -> dict[str, list[str]]:
    """Return the lines of each section, by the section's name, in the order of the conversation. `picks` are
    the indices of the picked lines (units of the conversation). O(picks)."""
    found: dict[str, list[str]] = {part: [] for part in (*HEADINGS, CHANGES, FAILURES)}
    found[CONSTRAINTS].extend(bullets(conversation.demands.in_force))
    groups: dict[int, list[int]] = {}
    for i in sorted(picks):
        groups.setdefault(conversation.group(i), []).append(i)
    mended = conversation.mended_calls
    tried = conversation.failed_calls if layout.apart else frozenset()
    for group, members in groups.items():
        first = conversation.place(members[0])
        entry = conversation.order[first.item][0].entry_id
        if first.role == USER:
            _add_user_words(conversation, members, entry, found)
        elif first.role == HEADER:
            failed = group in conversation.failed
            blocked = failed and first.text not in mended
            place = CONTEXT
            if layout.apart and not failed and group in conversation.changing:
                place = CHANGES
            elif first.text in tried:
                # A call that succeeded after failing belongs to the failures, because it shows what fixed
                # them.
                place = FAILURES
            _add_call(conversation, members, entry, found, failed=failed, blocked=blocked, place=place)
        else:
            _add_text(conversation, members, entry, found)
    return found


def _add_user_words(
    conversation: Conversation, members: Sequence[int], entry: str, found: dict[str, list[str]]
) -> None:
    """Add the picked lines of a user's message to `found`. Limits go under Constraints and wishes under Goal,
    with one bullet for adjacent lines. A line that the user did not type (such as a pasted log) goes under
    Critical Context."""
    runs: list[tuple[str, list[str]]] = []
    for i in members:
        place = conversation.place(i)
        if place.role != USER:
            found[CONTEXT].append(_plain(conversation.quote(place, "unknown"), entry))
            continue
        said = conversation.text_outside_lists(place).strip()
        text = _BULLET.sub("", without_them(said, conversation.demands), count=1)
        if not text:
            continue
        if not conversation.is_typed(place):
            found[CONTEXT].append(_plain(conversation.quote(place, "unknown"), entry))
            continue
        # Constraints that the summary already lists were removed from the line. What remains of the line may
        # set no limit.
        is_limit = place.marked and (text == _BULLET.sub("", said, count=1) or conversation.sets_limit(text))
        heading = CONSTRAINTS if is_limit else GOAL
        text = neutralise(text)
        if runs and runs[-1][0] == heading:
            runs[-1][1].append(text)
        else:
            runs.append((heading, [text]))
    for heading, lines in runs:
        body = [f"- {lines[0]}", *(f"  {line}" for line in lines[1:])]
        body[-1] += f" [{entry}]"
        found[heading].extend(body)


def _add_call(
    conversation: Conversation,
    members: Sequence[int],
    entry: str,
    found: dict[str, list[str]],
    *,
    failed: bool,
    blocked: bool,
    place: str,
) -> None:
    """Add the picked lines of a tool call to `found`. A call with lines of its arguments or of its result
    goes under `place`. A call alone is a completed step, or a blocker if it failed and never succeeded
    later."""
    head = conversation.quote(conversation.place(members[0]), "assistant")
    body: list[str] = []
    for i in members[1:]:
        line = conversation.place(i)
        if line.role == TODO:
            _add_todo(conversation.text(line), found)
        else:
            is_foreign = line.role in RESULT_ROLES or line.role == NOTE
            body.append(conversation.quote(line, "tool" if is_foreign else "assistant"))
    if body:
        found[place].append(f"[{entry} {head}]" if not failed else f"[{entry} {head}] failed")
        found[place].extend(body)
    elif blocked:
        found[BLOCKED].append(f"- {entry} {head}: failed")
    elif len(members) == 1:
        found[DONE if place == CONTEXT else place].append(f"- [x] {entry} {head}")


def _add_todo(entry: str, found: dict[str, list[str]]) -> None:
    """Add an entry of the newest todo list, given as `status: text`, under Done, In Progress or Next
    Steps."""
    status, _, text = entry.partition(": ")
    text = neutralise(text)
    if status in ("completed", "done"):
        found[DONE].append(f"- [x] {text}")
    elif status == "in_progress":
        found[IN_PROGRESS].append(f"- [ ] {text}")
    else:
        found[NEXT].append(f"{len(found[NEXT]) + 1}. {text}")


def _add_text(
    conversation: Conversation, members: Sequence[int], entry: str, found: dict[str, list[str]]
) -> None:
    """Add to `found` the picked lines of a group that contains no tool call: an assistant's text, an earlier
    summary, a note of a program, or a result whose call is unknown. The assistant's decisions go under Key
    Decisions, all other lines under Critical Context."""
    body: list[str] = []
    decided: list[str] = []
    for i in members:
        place = conversation.place(i)
        is_own = place.role == ASSISTANT and not conversation.is_quotation(place)
        if is_own and place.marked:
            text = conversation.text(place)
            decided.append("- " + neutralise(_BULLET.sub("", text.strip(), count=1)))
        elif is_own:
            body.append(conversation.quote(place, "assistant"))
        else:
            body.append(conversation.quote(place, "unknown"))
    if decided:
        decided[-1] += f" [{entry}]"
        found[DECISIONS].extend(decided)
    if body:
        body[0] = _plain(body[0], entry)
        found[CONTEXT].extend(body)


def _plain(text: str, entry: str) -> str:
    """Return `text` with the reference to its entry in front."""
    return f"[{entry}] {text}"

"""Show what `compactd resume` and `compactd handoff` did: as text, or as JSON."""

from __future__ import annotations

import os
import re

import msgspec

from compactd.cli.agent_files.move import Moved
from compactd.cli.agent_files.places import TITLES
from compactd.cli.agent_files.resume import how_to_resume, place_of
from compactd.cli.agent_files.written import show_resumption, show_written
from compactd.cli.framework.compacting import retention_text
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO
from compactd.cli.framework.load_file import describe, session_facts
from compactd.cli.framework.page import Page, one_line, plural, print_notes
from compactd.formats.files.session_formats import title_of

_MAX_TOOLS = 4
"""How many names of tools one line shows."""
_MINOR = re.compile(
    r"not kept: (?:the time|the message's id|the stop reason|how the (?:text|tool result) is split"
    r"|the order of the message's blocks|the model's provider|the session's id|the model$"
    r"|that no person wrote|that the message is of the kind)"
)
"""The beginnings of the warnings that are printed with --json only: they concern no words, or what the tags
of `prepare_for_other_agent` say too.
"""
_NUMBERS = re.compile(r" \([\d–, ]+(?:and [\d,]+ more)?\)$")
"""The numbers of messages at the end of a warning."""


def show_moved(page: Page, moved: Moved) -> int:
    """Print what was done, and return the exit code."""
    is_done = moved.order.is_handoff or (moved.result is not None and moved.result.compacted)
    if page.is_json:
        page.json(_facts(moved))
    else:
        _show(page, moved) if is_done else _show_nothing(page, moved)
        print_notes(moved.warnings)
    return DONE if is_done else NOTHING_TO_DO


def _facts(moved: Moved) -> dict[str, object]:
    """Return what was done as JSON."""
    known, result = moved.known, moved.result
    return {
        "from": moved.conversation.format,
        "to": moved.order.target_agent,
        "session": session_facts(moved.conversation),
        "model": known.model if moved.model is None else moved.model.model,
        "model_from": None if moved.model is None else moved.model.origin,
        "window": known.window,
        "limit_tokens": moved.limit,
        "tokens_before": moved.tokens,
        "tokens_after": moved.tokens if result is None else result.tokens_after,
        "compacted": result is not None and result.compacted,
        "compaction": None if result is None else msgspec.to_builtins(result),
        "written": moved.written.facts if moved.written is not None else None,
        "not_kept": moved.lost,
        "tools_of_other_agent": moved.tools,
        "warnings": moved.warnings,
        **moved.choice.facts,
    }


def _show(page: Page, moved: Moved) -> None:
    order, known = moved.order, moved.known
    what, would = ("Compacted", "compact") if moved.model is None else ("Handed over", "hand over")
    names = title_of(moved.conversation.format), TITLES[order.target_agent]
    whose = f"for {names[1]}" if moved.model is None else f"from {names[0]} to {names[1]}"
    page.line(f"Would {would} {whose}" if order.options.dry_run else f"✓ {what} {whose}")
    page.line()
    page.row("session", describe(moved.conversation, in_context=True))
    origin = known.window_origin if moved.model is None else moved.model.origin
    name = known.model if moved.model is None else moved.model.model
    page.row("model", f"{name or 'not known'} · window {known.window_number} ({origin})")
    page.row("size", _size_text(moved))
    if moved.result is not None and moved.result.compacted and moved.result.retention is not None:
        page.row("kept", retention_text(moved.result.retention))
    if moved.tools:
        named = ", ".join(map(one_line, moved.tools[:_MAX_TOOLS]))
        more = f" and {len(moved.tools) - _MAX_TOOLS:,} more" if len(moved.tools) > _MAX_TOOLS else ""
        page.row("tools", f"calls of {named}{more} stay in the history; {names[1]} has its own tools")
    page.line()
    said = [_NUMBERS.sub("", one) for one in moved.lost if not _MINOR.match(one)]
    if moved.written is None:
        for one in said:
            page.line(one, "due")
        page.line("nothing was written")
        return
    show_written(page, moved.written, said)


def _size_text(moved: Moved) -> str:
    result = moved.result
    if result is None:
        return f"{moved.tokens:,} tokens of {moved.limit:,} that fit: all messages, word for word"
    fit = f" ({moved.limit:,} fit)" if moved.limit is not None else ""
    if not result.compacted:
        return f"{moved.tokens:,} tokens{fit}: all messages, word for word, because {result.reason}"
    # In its own agent, the size is that of a request: the agent's system prompt and tools are counted.
    unit = "tokens per request" if moved.model is None else "tokens"
    return (
        f"{result.tokens_before:,} → {result.tokens_after:,} {unit}{fit}: "
        f"{plural(result.messages_removed, 'message')} became a summary, "
        f"{result.kept_messages:,} stayed word for word"
    )


def _show_nothing(page: Page, moved: Moved) -> None:
    """Print that the session was not compacted, and how to resume it as it is."""
    conversation, agent = moved.conversation, moved.order.target_agent
    reason = moved.result.reason if moved.result is not None else ""
    page.line(f"No compaction needed: {reason.removeprefix('nothing to compact: ')}")
    page.line("nothing was written; --target N makes it smaller")
    if conversation.session_id is None:
        return
    id, where = conversation.session_id, conversation.working_dir
    place = place_of(agent, id, where, moved.source, os.environ)
    resumption = how_to_resume(agent, moved.source, id, where, place)
    if resumption is not None and agent != "opencode":
        page.line()
        show_resumption(page, agent, resumption)

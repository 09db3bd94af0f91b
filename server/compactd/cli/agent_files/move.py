"""Continue a session in an agent: choose it, make it small enough, write it where the agent looks for it.

`compactd resume` continues a session in the agent that wrote it, and always compacts it. `compactd handoff`
continues it in another agent, and compacts it only if it does not fit into that agent's window.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.cli.agent_files.choose import Choice, choose_session, current_folder, describe
from compactd.cli.agent_files.places import AGENTS, ALIASES, TITLES
from compactd.cli.agent_files.resume import agent_root, how_to_resume, place_of
from compactd.cli.agent_files.target_model import TargetModel, target_model
from compactd.cli.agent_files.written import (
    WrittenSession,
    check_place,
    show_resumption,
    show_written,
    write_session,
)
from compactd.cli.framework.compacted_file import CONTINUED
from compactd.cli.framework.compacting import (
    check_sizes,
    compact_session,
    request_before,
    retention_text,
    show_progress,
)
from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.load_file import append_conversation, check_path, load, session_facts
from compactd.cli.framework.load_file import describe as describe_conversation
from compactd.cli.framework.model_facts import ModelFacts, ask_conversation_facts
from compactd.cli.framework.page import Page, one_line, plural, print_notes
from compactd.cli.framework.progress import ProgressSpinner
from compactd.client import Client
from compactd.core.budget.recorded_window import NOTHING_RECORDED
from compactd.formats.files.session_file import MessageLine
from compactd.formats.files.session_formats import title_of
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import CompactionResult, ToolCall, ToolResult
from compactd.storage.paths import cache_folder

FOLDER = "handoff"
"""The folder in compactd's cache for files of agents that open a session from any folder."""

MAX_RESERVED = 20_000
"""The most tokens that are left free for the other agent's own system prompt and tools. Claude Code's took
about 20,000, Codex's 7,500 (2.1.330, 0.169.0, seen 2026-11).
"""
USUAL_SHARE = 0.8
"""The share of the window that a session may fill if the user has turned automatic compaction off."""

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


class Move(Struct, frozen=True, kw_only=True):
    """What the user asks for: which session, which agent, which size."""

    command: str
    """The command's name."""
    source_agent: str | None
    """The agent that wrote the session; None for any agent but `target_agent`."""
    target_agent: str
    file: str | None
    pick: bool
    target: int | None
    keep_recent: int | None
    keep_messages: int | None
    instructions: str | None
    model: str | None
    window: int | None
    dry_run: bool

    @property
    def has_size(self) -> bool:
        """Whether the user asks for a size, so that the session is compacted in any case."""
        return any(size is not None for size in (self.target, self.keep_recent, self.keep_messages))


class _Moved(Struct, frozen=True, kw_only=True):
    """What was done."""

    order: Move
    choice: Choice
    conversation: LoadedConversation
    """The session as its file has it."""
    known: ModelFacts
    model: TargetModel | None
    """The model of the other agent; None if the session stays with its agent."""
    limit: int | None
    """The most tokens that the session may have in the other agent."""
    tokens: int
    """The size before, as the target's model counts it."""
    result: CompactionResult | None
    """None if the session was not compacted."""
    written: WrittenSession | None
    tools: tuple[str, ...]
    """The tools that the session calls and the other agent does not have by these names."""
    warnings: tuple[str, ...]


def move(order: Move, page: Page) -> int:
    """Carry out `order`, print the result, and return the exit code. The session's own file is never
    changed, and no file is replaced.
    """
    check_sizes(order.command, order.target, order.keep_recent, order.keep_messages)
    if order.target_agent not in CONTINUED:
        raise CommandError(
            f"{TITLES[order.target_agent]} cannot be continued from a file: no way is known.",
            hint=f"compactd writes sessions for {', '.join(TITLES[one] for one in CONTINUED)}.",
            exit_code=USAGE,
        )
    if order.source_agent == order.target_agent and order.command == "handoff":
        raise CommandError(
            f"--from and --to are both {TITLES[order.target_agent]}.",
            hint=f"To continue a session in its own agent: compactd resume {order.target_agent}",
            exit_code=USAGE,
        )
    choice = _choose(order, page)
    source = check_path(choice.name)
    if not order.dry_run and agent_root(order.target_agent, os.environ) is not None:
        check_place(order.target_agent)
    with (
        ProgressSpinner(f"reading {one_line(source.name)}") as waiting,
        Client(on_event=show_progress(waiting)) as client,
    ):
        moved = _carry_out(client, waiting, order, choice, source)
    is_done = moved.result is None or moved.result.compacted or order.command == "handoff"
    if page.is_json:
        page.json(_facts(moved))
    else:
        _show(page, moved) if is_done else _show_nothing(page, moved, source)
        print_notes(moved.warnings)
    return DONE if is_done else NOTHING_TO_DO


def _choose(order: Move, page: Page) -> Choice:
    """Return the session that the order is about. Raise `CommandError` if there is none of this folder."""
    if order.file is not None:
        if order.pick:
            raise CommandError("FILE and --pick cannot be combined: --pick chooses a file.", exit_code=USAGE)
        known = ALIASES.get(order.file, order.file)
        if known in AGENTS and not Path(order.file).exists():
            raise CommandError(
                f"cannot read {order.file}: there is no such file.",
                hint=f"FILE is a session file. See `compactd {order.command} --help`.",
                exit_code=USAGE,
            )
        return Choice(name=order.file)
    agents = tuple(one for one in AGENTS if one != order.target_agent)
    choice = choose_session(
        agents if order.source_agent is None else (order.source_agent,), pick=order.pick, page=page
    )
    if not choice.is_of_folder and not order.pick and choice.found is not None:
        whose = "a coding agent" if order.source_agent is None else TITLES[order.source_agent]
        raise CommandError(
            f"no session of {whose} belongs to this folder.",
            hint=f"Name a FILE, or use --pick. The newest session: {describe(choice.found)}",
            exit_code=NOTHING_TO_DO,
        )
    return choice


def _carry_out(client: Client, waiting: ProgressSpinner, order: Move, choice: Choice, source: Path) -> _Moved:
    version = _version(source)
    loaded = load(source)
    _check_agent(order, loaded, choice.name)
    notes = [*_in_use(loaded), *_about_folder(order, loaded)]
    conversation = loaded
    if _about_folder(order, loaded):
        conversation = replace(loaded, working_dir=str(current_folder() or Path.home()))
    waiting.set_text(f"counting {plural(len(conversation.live), 'message')}")
    model: TargetModel | None = None
    model_name, window = order.model, order.window
    tools: tuple[str, ...] = ()
    if order.command == "handoff":
        model = _target_model(client, order, conversation)
        model_name, window = model.model, model.window
        tools = _tools_of(conversation.live)
        conversation = _for_other_agent(conversation, order.target_agent, model)
    conversation = replace(conversation, messages=conversation.live)
    fed = append_conversation(client, conversation, model=model_name, window=window)
    facts = ask_conversation_facts(client, fed, conversation)
    context = request_before(conversation, facts, conversation.live)
    if not context.used:
        raise CommandError(
            f"{choice.name} contains no messages that can be used.",
            hint=f"`compactd doctor {choice.name}` shows why.",
        )
    limit = None if model is None else _limit(facts)
    result: CompactionResult | None = None
    if limit is None or order.has_size or context.used > limit:
        waiting.set_text("compacting")
        params = {
            "target_tokens": limit // 2 if limit is not None and not order.has_size else order.target,
            "keep_recent": order.keep_recent,
            "keep_messages": order.keep_messages,
            "instructions": order.instructions,
        }
        result = context.scaled_result(compact_session(client, fed.session_id, choice.name, params))
        if limit is not None and result.tokens_after > limit:
            notes.append(f"the session is still larger than the {limit:,} tokens that fit")
    written: WrittenSession | None = None
    if not order.dry_run and (result is None or result.compacted or model is not None):
        written = write_session(
            client,
            fed.session_id,
            conversation,
            order.target_agent,
            source=source,
            target=None,
            folder=cache_folder(os.environ) / FOLDER,
        )
    if version != _version(source):
        notes.append("the session was written meanwhile; what was added is not in the new one")
    return _Moved(
        order=order,
        choice=choice,
        conversation=loaded,
        known=facts,
        model=model,
        limit=limit,
        tokens=context.used,
        result=result,
        written=written,
        tools=tools,
        warnings=(*notes, *conversation.warnings, *fed.warnings),
    )


def _version(source: Path) -> tuple[int, int] | None:
    """Return what changes when the file is written; None for a pipe."""
    about = source.stat()
    return (about.st_mtime_ns, about.st_size) if source.is_file() else None


def _about_folder(order: Move, conversation: LoadedConversation) -> list[str]:
    """Return a note if the new session belongs to the current folder, because that of the session is not
    known or does not exist. A session that stays with its agent stays in its folder.
    """
    folder = conversation.working_dir
    if not folder:
        return ["the file names no folder, so the new session belongs to this one"]
    if order.command == "handoff" and not Path(folder).is_dir():
        return [f"there is no folder {folder}, so the new session belongs to this one"]
    return []


def _check_agent(order: Move, conversation: LoadedConversation, name: str) -> None:
    """Raise `CommandError` if the file is not of the agent that the user names, or already of the target."""
    found = conversation.format
    if order.source_agent is not None and found != order.source_agent:
        hint = f"Use --from {found}." if order.command == "handoff" else f"Use `compactd resume {found}`."
        raise CommandError(
            f"{name} is no session of {TITLES[order.source_agent]}, but of {title_of(found)}.",
            hint=hint if found in AGENTS else "Leave out --from." if order.command == "handoff" else "",
            exit_code=USAGE,
        )
    if order.command == "handoff" and found == order.target_agent:
        raise CommandError(
            f"{name} is a session of {TITLES[found]} already.",
            hint=f"To continue it there: compactd resume {found} {name}",
            exit_code=USAGE,
        )


def _in_use(conversation: LoadedConversation) -> list[str]:
    """Return a note if the session ends in the middle of a turn."""
    blocks = [block for message, _ in conversation.live for block in message.content]
    answered = {block.call_id for block in blocks if isinstance(block, ToolResult)}
    is_open = [block for block in blocks if isinstance(block, ToolCall) and block.call_id not in answered]
    if not is_open:
        return []
    return [
        f"the session ends in the middle of a turn ({plural(len(is_open), 'tool call')} without a result): "
        "if its agent still runs, wait for it and try again"
    ]


def _tools_of(lines: Sequence[MessageLine]) -> tuple[str, ...]:
    """Return the names of the tools that the messages call, each once."""
    names = {
        block.name: None for message, _ in lines for block in message.content if isinstance(block, ToolCall)
    }
    return tuple(names)


def _target_model(client: Client, order: Move, conversation: LoadedConversation) -> TargetModel:
    """Return the model that the other agent will use, with its window as far as it is known."""
    folder = Path(conversation.working_dir or ".")
    if order.model is not None:
        found = TargetModel(model=order.model, origin="given by you")
    else:
        found = target_model(order.target_agent, folder, conversation.model, os.environ)
    if order.window is not None:
        given = "given by you" if order.model else f"{found.origin}; the window is given by you"
        return replace(found, window=order.window, origin=given)
    if found.window is None and found.max_window is not None and found.model is not None:
        largest = client.models_lookup(model=found.model).context_window
        if largest > found.max_window:
            return replace(found, window=found.max_window)
    return found


def _for_other_agent(conversation: LoadedConversation, agent: str, model: TargetModel) -> LoadedConversation:
    """Return the conversation without what belongs to the agent that it is from: system prompt, tools, what
    its provider reported, and its model.
    """
    name = model.model
    # Claude Code and Gemini CLI write a model only next to the answers that it gave.
    is_written = agent in ("pi", "opencode") or (agent == "codex" and model.is_named)
    lines = tuple(_without_usage(line) for line in conversation.live)
    return replace(
        conversation,
        messages=lines,
        live=lines,
        model=name if is_written else None,
        system_prompt=None,
        tools=(),
        context_window=None,
        evidence=(),
        accepted=(),
        recorded=NOTHING_RECORDED,
    )


def _without_usage(line: MessageLine) -> MessageLine:
    message, _ = line
    if message.usage is None:
        return line
    bare = replace(message, usage=None)
    return bare, Raw(encode_message(bare))


def _limit(facts: ModelFacts) -> int:
    """Return how many tokens a session may have so that the agent does not compact it at once."""
    window = facts.window or 0
    threshold = facts.threshold or int(USUAL_SHARE * window)
    return max(1, threshold - min(MAX_RESERVED, window // 8))


# --- what is printed ----------------------------------------------------------------------------------


def _facts(moved: _Moved) -> dict[str, object]:
    """Return the result as JSON."""
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
        "tools_of_other_agent": moved.tools,
        "warnings": moved.warnings,
        **moved.choice.facts,
    }


def _show(page: Page, moved: _Moved) -> None:
    order, known = moved.order, moved.known
    what, would = ("Compacted", "compact") if moved.model is None else ("Handed over", "hand over")
    names = title_of(moved.conversation.format), TITLES[order.target_agent]
    whose = f"for {names[1]}" if moved.model is None else f"from {names[0]} to {names[1]}"
    page.line(f"Would {would} {whose}" if order.dry_run else f"✓ {what} {whose}")
    page.line()
    page.row("session", describe_conversation(moved.conversation, in_context=True))
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
    if moved.written is None:
        page.line("nothing was written")
        return
    said = [_NUMBERS.sub("", one) for one in moved.written.file.warnings if not _MINOR.match(one)]
    show_written(page, moved.written, said)


def _size_text(moved: _Moved) -> str:
    result = moved.result
    if result is None:
        return f"{moved.tokens:,} tokens of {moved.limit:,} that fit: all messages, word for word"
    fit = f" ({moved.limit:,} fit)" if moved.limit is not None else ""
    if not result.compacted:
        return f"{moved.tokens:,} tokens{fit}: all messages, word for word, because {result.reason}"
    return (
        f"{result.tokens_before:,} → {result.tokens_after:,} tokens{fit}: "
        f"{plural(result.messages_removed, 'message')} became a summary, "
        f"{result.kept_messages:,} stayed word for word"
    )


def _show_nothing(page: Page, moved: _Moved, source: Path) -> None:
    """Print that the session was not compacted, and how to resume it as it is."""
    conversation, agent = moved.conversation, moved.order.target_agent
    reason = moved.result.reason if moved.result is not None else ""
    page.line(f"No compaction needed: {reason.removeprefix('nothing to compact: ')}")
    page.line("nothing was written; --target N makes it smaller")
    if conversation.session_id is None:
        return
    id, where = conversation.session_id, conversation.working_dir
    place = place_of(agent, id, where, source, os.environ)
    resumption = how_to_resume(agent, source, id, where, place)
    if resumption is not None and agent != "opencode":
        page.line()
        show_resumption(page, agent, resumption)

"""Continue a session in an agent: choose it, make it small enough, write it where the agent looks for it.

`compactd resume` continues a session in the agent that wrote it, and always compacts it. `compactd handoff`
continues it in another agent, and compacts it only if it does not fit into that agent's window.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.cli.agent_files.choose import Choice, choose_session, current_folder, describe
from compactd.cli.agent_files.places import AGENTS, ALIASES, TITLES, named_folder
from compactd.cli.agent_files.resume import agent_root, new_session_id
from compactd.cli.agent_files.target_model import TargetModel, target_model
from compactd.cli.agent_files.written import (
    WrittenSession,
    check_place,
    write_session,
)
from compactd.cli.framework.compacted_file import CONTINUED, compacted_file
from compactd.cli.framework.compacting import (
    check_sizes,
    compact_session,
    request_before,
    show_progress,
)
from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.exit_codes import NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.load_file import append_conversation, check_path, load
from compactd.cli.framework.model_facts import ModelFacts, ask_conversation_facts
from compactd.cli.framework.page import Page, one_line, plural
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


class MoveOptions(Struct, frozen=True, kw_only=True):
    """The options that `resume` and `handoff` share."""

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


class Move(Struct, frozen=True, kw_only=True):
    """What the user asks for: which session, which agent, which size."""

    command: str
    """The command's name."""
    source_agent: str | None
    """The agent that wrote the session; None for any agent but `target_agent`."""
    target_agent: str
    options: MoveOptions

    @property
    def is_handoff(self) -> bool:
        """Whether the session continues in another agent."""
        return self.command == "handoff"


class Moved(Struct, frozen=True, kw_only=True):
    """What was done."""

    order: Move
    choice: Choice
    source: Path
    """The session's file."""
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
    lost: tuple[str, ...]
    """What the new file lacks, or would lack if it were written."""
    tools: tuple[str, ...]
    """The tools that the session calls and the other agent does not have by these names."""
    warnings: tuple[str, ...]


def move(order: Move, page: Page) -> Moved:
    """Carry out `order`, and print which session was chosen. The session's own file is never changed, and no
    file is replaced.
    """
    check_sizes(order.command, order.options.target, order.options.keep_recent, order.options.keep_messages)
    _check_agents(order)
    choice = _choose(order, page)
    source = check_path(choice.name)
    if not order.options.dry_run and agent_root(order.target_agent, os.environ) is not None:
        check_place(order.target_agent)
    with (
        ProgressSpinner(f"reading {one_line(source.name)}") as waiting,
        Client(on_event=show_progress(waiting)) as client,
    ):
        return _carry_out(client, waiting, order, choice, source)


def _check_agents(order: Move) -> None:
    """Raise `CommandError` if no session can be written for the target, or if it is the source as well."""
    target = order.target_agent
    if target not in CONTINUED:
        raise CommandError(
            f"{TITLES[target]} cannot be continued from a file: no way is known.",
            hint=f"compactd writes sessions for {', '.join(TITLES[one] for one in CONTINUED)}.",
            exit_code=USAGE,
        )
    if order.is_handoff and order.source_agent == target:
        raise CommandError(
            f"--from and --to are both {TITLES[target]}.",
            hint=f"To continue a session in its own agent: compactd resume {target}",
            exit_code=USAGE,
        )


def _choose(order: Move, page: Page) -> Choice:
    """Return the session that the order is about. Raise `CommandError` if there is none of this folder."""
    if order.options.file is not None:
        if order.options.pick:
            raise CommandError("FILE and --pick cannot be combined: --pick chooses a file.", exit_code=USAGE)
        known = ALIASES.get(order.options.file, order.options.file)
        if known in AGENTS and not Path(order.options.file).exists():
            raise CommandError(
                f"cannot read {order.options.file}: there is no such file.",
                hint=f"FILE is a session file. See `compactd {order.command} --help`.",
                exit_code=USAGE,
            )
        return Choice(name=order.options.file)
    agents = tuple(one for one in AGENTS if one != order.target_agent)
    choice = choose_session(
        agents if order.source_agent is None else (order.source_agent,), pick=order.options.pick, page=page
    )
    if not choice.is_of_folder and not order.options.pick and choice.found is not None:
        whose = "a coding agent" if order.source_agent is None else TITLES[order.source_agent]
        raise CommandError(
            f"no session of {whose} belongs to this folder.",
            hint=f"Name a FILE, or use --pick. The newest session: {describe(choice.found)}",
            exit_code=NOTHING_TO_DO,
        )
    return choice


def _carry_out(client: Client, waiting: ProgressSpinner, order: Move, choice: Choice, source: Path) -> Moved:
    version = _version(source)
    loaded = load(source)
    if not loaded.working_dir and loaded.format == "gemini-cli":
        loaded = replace(loaded, working_dir=named_folder(source))
    _check_agent(order, loaded, choice.name)
    about_folder = _about_folder(loaded)
    notes = [*_in_use(loaded), *about_folder]
    conversation = replace(loaded, messages=loaded.live)
    if about_folder:
        conversation = replace(conversation, working_dir=str(current_folder() or Path.home()))
    waiting.set_text(f"counting {plural(len(loaded.live), 'message')}")
    model: TargetModel | None = None
    if order.is_handoff:
        model = _target_model(client, order, conversation)
        conversation = _for_other_agent(conversation, order.target_agent, model)
    fed = append_conversation(
        client,
        conversation,
        model=order.options.model if model is None else model.model,
        window=order.options.window if model is None else model.window,
    )
    facts = ask_conversation_facts(client, fed, conversation)
    context = request_before(conversation, facts, conversation.live)
    if not context.used:
        raise CommandError(
            f"{choice.name} contains no messages that can be used.",
            hint=f"`compactd doctor {choice.name}` shows why.",
        )
    limit = None if model is None else _limit(facts)
    result: CompactionResult | None = None
    if limit is None or order.options.has_size or context.used > limit:
        waiting.set_text("compacting")
        done = compact_session(client, fed.session_id, choice.name, _params(order, limit))
        result = context.scaled_result(done)
    if limit is not None and result is not None and result.tokens_after > limit:
        notes.append(f"the session is still larger than the {limit:,} tokens that fit")
    written: WrittenSession | None = None
    lost: tuple[str, ...] = ()
    if not order.options.dry_run and (order.is_handoff or (result is not None and result.compacted)):
        written = write_session(
            client,
            fed.session_id,
            conversation,
            order.target_agent,
            source=source,
            target=None,
            folder=cache_folder(os.environ) / FOLDER,
            is_moved=bool(about_folder),
        )
        lost = written.file.warnings
    elif order.options.dry_run:
        lost = compacted_file(
            client, fed.session_id, conversation, order.target_agent, new_session_id(order.target_agent, None)
        ).warnings
    if version != _version(source):
        notes.append("the session was written meanwhile; what was added is not in the new one")
    return Moved(
        order=order,
        choice=choice,
        source=source,
        conversation=loaded,
        known=facts,
        model=model,
        limit=limit,
        tokens=context.used,
        result=result,
        written=written,
        lost=lost,
        tools=_tools_of(loaded.live) if order.is_handoff else (),
        warnings=(*notes, *loaded.warnings, *fed.warnings),
    )


def _params(order: Move, limit: int | None) -> dict[str, object]:
    """Return the params of `session/compact`. Without a size, a session for another agent gets half of what
    fits there, so that there is room to go on.
    """
    return {
        "target_tokens": order.options.target if limit is None or order.options.has_size else limit // 2,
        "keep_recent": order.options.keep_recent,
        "keep_messages": order.options.keep_messages,
        "instructions": order.options.instructions,
    }


def _version(source: Path) -> tuple[int, int] | None:
    """Return what changes when the file is written; None for a pipe."""
    about = source.stat()
    return (about.st_mtime_ns, about.st_size) if source.is_file() else None


def _about_folder(conversation: LoadedConversation) -> list[str]:
    """Return a note if the new session belongs to the current folder, because that of the session is not
    known or does not exist.
    """
    folder = conversation.working_dir
    if not folder:
        return ["the file names no folder, so the new session belongs to this one"]
    if not Path(folder).is_dir():
        return [f"there is no folder {folder}, so the new session belongs to this one"]
    return []


def _check_agent(order: Move, conversation: LoadedConversation, name: str) -> None:
    """Raise `CommandError` if the file is not of the agent that the user names, or already of the target."""
    found = conversation.format
    if order.source_agent is not None and found != order.source_agent:
        hint = f"Use --from {found}." if order.is_handoff else f"Use `compactd resume {found}`."
        raise CommandError(
            f"{name} is no session of {TITLES[order.source_agent]}, but of {title_of(found)}.",
            hint=hint if found in AGENTS else "Leave out --from." if order.is_handoff else "",
            exit_code=USAGE,
        )
    if order.is_handoff and found == order.target_agent:
        raise CommandError(
            f"{name} is a session of {TITLES[found]} already.",
            hint=f"To continue it there: compactd resume {found} {name}",
            exit_code=USAGE,
        )


def _in_use(conversation: LoadedConversation) -> list[str]:
    """Return a note if the session ends in the middle of a turn."""
    waiting: dict[str, None] = {}
    for message, _ in conversation.live:
        if message.role == "user" and not any(isinstance(one, ToolResult) for one in message.content):
            waiting.clear()
        for block in message.content:
            match block:
                case ToolCall():
                    waiting[block.call_id] = None
                case ToolResult():
                    waiting.pop(block.call_id, None)
                case _:
                    pass
    if not waiting:
        return []
    return [
        f"the session ends in the middle of a turn ({plural(len(waiting), 'tool call')} without a result): "
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
    found = target_model(
        order.target_agent, folder, conversation.model, os.environ, given=order.options.model
    )
    if order.options.window is not None:
        given = "given by you" if order.options.model else f"{found.origin}; the window is given by you"
        return replace(found, window=order.options.window, origin=given)
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

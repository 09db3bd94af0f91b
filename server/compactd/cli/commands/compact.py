"""`compactd compact FILE`: compacts a session file and shows sizes before and after, and the summary."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from compactd.cli.agent_files.choose import AGENT, PICK, SESSION_FILE, choose_file
from compactd.cli.agent_files.written import WrittenSession, check_place, show_written, write_session
from compactd.cli.framework.command import Command, Flag, Option
from compactd.cli.framework.compacted_file import FORMATS
from compactd.cli.framework.compacting import (
    check_sizes,
    compact_session,
    facts_total,
    is_total_known,
    request_before,
    retention_text,
    show_progress,
)
from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.load_file import (
    SUPPORTED_FILES_HINT,
    append_conversation,
    check_path,
    describe,
    load,
    session_facts,
)
from compactd.cli.framework.model_facts import NAME_IT, ModelFacts, ask_conversation_facts
from compactd.cli.framework.options import FORCE, MODEL, WINDOW, size_options
from compactd.cli.framework.output import check_writable
from compactd.cli.framework.page import Page, make_encodable, one_line, plural, print_notes
from compactd.cli.framework.progress import ProgressSpinner
from compactd.cli.inspect.context import RequestBreakdown
from compactd.client import Client
from compactd.protocol.messages import CompactionResult, Retention

COUNTED_LINE_START = "[Compacted "
"""The beginning of the line in which a summary counts the messages that it does not quote."""

ABOUT = f"""\
Compacts a session file: replaces older messages by a summary and keeps the newest word
for word. It starts from the agent's current context: if the agent has compacted the
session before, from the summary of that compaction on (--all takes the whole file).
FILE is never changed. --output writes the compacted session as the same kind of file
and shows how its agent resumes it; --resumable writes it where the agent looks for it.
No model is asked and nothing is sent anywhere, unless your settings name a model for
summaries.

{SUPPORTED_FILES_HINT}
"""

STRATEGIES = ("auto", "summarize", "extract", "truncate")

MAX_LOST_SHOWN = 5
"""The most lost facts that are printed without `--lost`."""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    file: str | None
    pick: bool
    agent: str | None
    target: int | None
    keep_recent: int | None
    keep_messages: int | None
    strategy: str | None
    instructions: str | None
    model: str | None
    window: int | None
    output: str | None
    to: str | None
    resumable: bool
    force: bool
    dry_run: bool
    all: bool
    lost: bool


def run(options: Options, page: Page) -> int:
    """Read the file, compact it, print the result and write the output."""
    check_sizes("compact", options.target, options.keep_recent, options.keep_messages)
    outputs = ("--output" if options.output else "", "--resumable" if options.resumable else "")
    if options.dry_run and any(outputs):
        raise CommandError(
            f"--dry-run writes nothing, so it cannot be combined with {outputs[0] or outputs[1]}.",
            exit_code=USAGE,
        )
    if all(outputs):
        raise CommandError(
            "--output and --resumable cannot be combined.",
            hint="--resumable chooses the file itself.",
            exit_code=USAGE,
        )
    if options.to and not any(outputs):
        raise CommandError(
            "--to chooses the format of the file that --output or --resumable writes.",
            hint="Add --output FILE or --resumable.",
            exit_code=USAGE,
        )
    choice = choose_file(options.file, pick=options.pick, agent=options.agent, page=page)
    options = replace(options, file=choice.name)
    source = check_path(choice.name)
    target = check_writable(options.output, source, force=options.force) if options.output else None
    with (
        ProgressSpinner(f"reading {one_line(source.name)}") as waiting,
        Client(on_event=show_progress(waiting)) as client,
    ):
        conversation = load(source)
        if options.resumable:
            check_place(options.to or conversation.format)
        waiting.set_text(f"counting {plural(len(conversation.messages), 'message')}")
        is_whole = options.all or len(conversation.live) == len(conversation.messages)
        lines = conversation.messages if is_whole else conversation.live
        fed = append_conversation(
            client, conversation, model=options.model, window=options.window, live_only=not is_whole
        )
        facts = ask_conversation_facts(client, fed, conversation)
        context = request_before(conversation, facts, lines)
        waiting.set_text("compacting")
        result = context.scaled_result(compact_session(client, fed.session_id, choice.name, _params(options)))
        wrote: WrittenSession | None = None
        if result.compacted and (target is not None or options.resumable):
            wrote = write_session(
                client,
                fed.session_id,
                conversation,
                options.to or conversation.format,
                source=source,
                target=target,
            )
        done = _CommandResult(
            conversation=conversation,
            is_whole=is_whole,
            context=context,
            result=result,
            known=facts,
            warnings=(*conversation.warnings, *fed.warnings),
            options=options,
            wrote=wrote,
        )
    if page.is_json:
        page.json({**_facts(done), **choice.facts})
    else:
        _show(page, done)
        print_notes(done.warnings)
    return DONE if result.compacted else NOTHING_TO_DO


class _CommandResult(Struct, frozen=True, kw_only=True):
    """The result of the command."""

    conversation: LoadedConversation
    is_whole: bool
    """True if the compaction started with all messages of the file, not only with the agent's current
    context.
    """
    context: RequestBreakdown
    """The request before the compaction."""
    result: CompactionResult
    """The compaction's result. Its sizes are those of the whole request."""
    known: ModelFacts
    warnings: tuple[str, ...]
    options: Options
    wrote: WrittenSession | None


def _params(options: Options) -> dict[str, object]:
    """Return the params of `session/compact`."""
    return {
        "target_tokens": options.target,
        "keep_recent": options.keep_recent,
        "keep_messages": options.keep_messages,
        "strategy": options.strategy,
        "instructions": options.instructions,
    }


def _facts(done: _CommandResult) -> dict[str, object]:
    """Return the result as JSON: the compaction's result, and the session it is about."""
    known = done.known
    return {
        **msgspec.to_builtins(done.result),
        "session": session_facts(done.conversation),
        "context": {
            "model": known.model,
            "window": known.window,
            "window_confidence": known.confidence,
            "system_tokens": known.system_tokens,
            "tools_tokens": known.tools_tokens,
            "covers": "file" if done.is_whole else "context in force",
            "tokens": done.context.used,
            "parts": done.context.parts,
            "tokens_not_in_file": done.context.not_in_file,
        },
        "output": make_encodable(str(done.wrote.path)) if done.wrote else None,
        "written": done.wrote.facts if done.wrote else None,
        "warnings": done.warnings,
    }


def _show(page: Page, done: _CommandResult) -> None:
    result = done.result
    if not result.compacted:
        # Every reason of the daemon starts with these words, which the line already contains.
        page.line(f"No compaction needed: {result.reason.removeprefix('nothing to compact: ')}")
        if missing := done.context.not_in_file:
            page.line(f"Besides, {missing:,} tokens are system prompt and tools (not in the file).")
        page.line(_how_to_force(done))
        if done.options.output or done.options.resumable:
            page.line("nothing was written")
        return
    tried = "Would compact" if done.options.dry_run else "✓ Compacted"
    page.line(f"{tried} {result.messages_removed:,} messages")
    page.line(f"  Tokens: {result.tokens_before:,} → {result.tokens_after:,} (saved {result.tokens_saved:,})")
    page.line()
    _show_facts(page, done)
    page.line()
    page.text(_sections(result.summary))
    page.line()
    if result.retention is not None and result.retention.lost:
        _show_lost(page, result.retention, show_all=done.options.lost)
    if done.wrote is None:
        hint = "" if done.options.dry_run else "; --output FILE writes the compacted session"
        page.line(f"nothing was written{hint}")
    else:
        show_written(page, done.wrote)


def _how_to_force(done: _CommandResult) -> str:
    """Return a line that says how to compact nevertheless."""
    options, count = done.options, len(done.conversation.live)
    if count < 2:
        return "There is only one message, so no option makes the session smaller."
    if options.keep_messages == 1:
        return "--keep-messages 1 already keeps as little as possible."
    smaller = done.context.estimate // 2 // 1000
    is_smaller = smaller and (options.target is None or smaller * 1000 < options.target)
    target = f"--target {smaller}k or " if is_smaller else ""
    return f"To compact nevertheless, keep less: {target}--keep-messages {2 if count > 4 else 1}"


def _show_facts(page: Page, done: _CommandResult) -> None:
    result, known = done.result, done.known
    page.row("session", describe(done.conversation))
    page.row("covers", _scope_text(done))
    name = known.model or "not named in the file"
    origin = f"a guess; {NAME_IT}" if known.is_guess else known.window_origin
    page.row("model", f"{name} · window {known.window_number} ({origin})", "due" if known.is_guess else "")
    page.row("how", _method_text(result))
    page.row("messages", f"{result.messages_before:,} → {result.messages_after:,}{_kept_text(result)}")
    fixed = [
        f"{name} {tokens:,}"
        for name, tokens in (("system", known.system_tokens), ("tools", known.tools_tokens))
        if tokens
    ]
    missing = done.context.not_in_file
    if fixed:
        stay = "is not conversation and stays" if len(fixed) == 1 else "are not conversation and stay"
        page.row("of that", f"{' and '.join(fixed)} {stay}")
    if missing:
        page.row(
            "besides",
            f"{missing:,} of the tokens are system prompt and tools (not in the file); they stay",
        )
    if result.retention is not None:
        page.row("kept", retention_text(result.retention))
    if result.reason:
        page.row("note", result.reason)


def _scope_text(done: _CommandResult) -> str:
    """Return a text that says which part of the file the numbers are about."""
    if not done.is_whole:
        count = plural(len(done.conversation.live), "message")
        return f"the next request: {count} since the agent's own compaction (--all takes the whole file)"
    if len(done.conversation.live) != len(done.conversation.messages):
        return (
            "the whole file, including messages that the agent's own compaction had removed; no request "
            "was this large"
        )
    return "the next request: all messages of the file"


def _method_text(result: CompactionResult) -> str:
    model = "no model" if result.model is UNSET else f"with {result.model}"
    cost = 0.0 if result.cost is UNSET else result.cost
    return f"{result.strategy}, {model} · {result.duration_ms / 1000:.2f} s · ${cost:.2f}"


def _kept_text(result: CompactionResult) -> str:
    condensed = result.condensed_request
    is_in_tail = condensed is not UNSET and condensed not in result.pinned_entry_ids
    parts = [f"{result.kept_messages - is_in_tail:,} of them kept word for word"]
    if result.pinned_entry_ids:
        parts.append(f"{len(result.pinned_entry_ids):,} pinned")
    if condensed is not UNSET:
        parts.append("the newest request condensed")
    if result.pruned_tool_results:
        parts.append(f"{plural(result.pruned_tool_results, 'tool result')} shortened")
    return "".join(f", {part}" for part in parts)


def _show_lost(page: Page, retention: Retention, *, show_all: bool) -> None:
    total = facts_total(retention)
    count = f"{total - retention.kept:,} of {total:,}" if is_total_known(retention) else "all"
    head = f"lost ({count} details that came up more than once)"
    if not show_all:
        some = " · ".join(one_line(fact) for fact in retention.lost[:MAX_LOST_SHOWN])
        more = " · …" if len(retention.lost) > MAX_LOST_SHOWN else ""
        page.line(f"{head}: {some}{more}   (--lost shows all)")
        return
    page.line(f"{head}:")
    for fact in retention.lost:
        page.line(f"  {one_line(fact)}")
    left = total - retention.kept - len(retention.lost)
    if not is_total_known(retention):
        page.line("  and perhaps others that were used less")
    elif left > 0:
        page.line(f"  and {left:,} that were used less")


def _sections(summary: str) -> str:
    """Return the summary without its introduction, which is meant for a model. The lines that begin with
    `COUNTED_LINE_START` and the sections remain.
    """
    if summary.startswith("## "):
        return summary
    head, mark, rest = summary.partition("\n## ")
    counts = [line for line in head.split("\n") if line.startswith(COUNTED_LINE_START)]
    return "\n".join((*counts, f"## {rest}")) if mark else summary


COMMAND = Command(
    "compact",
    Options,
    run,
    about=ABOUT,
    params=(
        SESSION_FILE,
        PICK,
        AGENT,
        *size_options(
            "size in tokens that the session should have afterwards, e.g. 16k",
            "how many tokens of the newest messages to keep unchanged (20k)",
            "how many of the newest messages to keep unchanged",
        ),
        Option("--strategy", "how to summarise (auto)", choices=STRATEGIES),
        Option("--instructions", "what the summary should focus on"),
        MODEL,
        WINDOW,
        Option(
            "--output",
            "write the compacted session to this file, in the format of FILE",
            metavar="FILE",
            is_file=True,
        ),
        Flag("--resumable", "write it as a new session where its agent looks for sessions"),
        Option(
            "--to",
            f"another format for the output: {', '.join(FORMATS)}",
            metavar="FORMAT",
            choices=FORMATS,
        ),
        FORCE,
        Flag("--dry-run", "write nothing, as without --output"),
        Flag("--all", "compact the whole file, with messages that the agent's own compaction removed"),
        Flag("--lost", "show all lost details, not only the first few", also=("--show-lost",)),
    ),
    examples=(
        (
            "compactd compact",
            "show what a compaction of this folder's newest session would do",
        ),
        (
            "compactd compact session.jsonl --target 16k --output small.jsonl",
            "compact to 16,000 tokens and write a session file of the same kind",
        ),
        (
            "compactd compact ~/.claude/projects/*/SESSION.jsonl --resumable",
            "compact a session of Claude Code, and show the command that continues it",
        ),
        ("compactd compact session.jsonl --json | jq -r .summary", "print only the summary"),
    ),
    is_paged=True,
)

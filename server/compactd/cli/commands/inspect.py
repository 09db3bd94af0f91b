"""`compactd inspect FILE`: shows what uses a session's tokens, and when a compaction is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from compactd._runtime.interpreter import paused_gc
from compactd.cli.agent_files.choose import AGENT, PICK, SESSION_FILE, choose_file
from compactd.cli.commands.models import pricing_of
from compactd.cli.framework.command import Command, Flag, Option
from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.exit_codes import DONE, USAGE, CommandError
from compactd.cli.framework.load_file import (
    SUPPORTED_FILES_HINT,
    TIMEOUT_S,
    append,
    check_path,
    load_session,
    parse_file,
    read_bytes,
    start_session,
)
from compactd.cli.framework.model_facts import ModelFacts, ask_conversation_facts
from compactd.cli.framework.options import FORCE, MODEL, WINDOW
from compactd.cli.framework.output import check_writable, write_file
from compactd.cli.framework.page import Page, make_encodable, one_line, plural, print_notes
from compactd.cli.framework.progress import ProgressSpinner
from compactd.cli.inspect.anatomy import Anatomy, MessagePlace, anatomy_of, places_of
from compactd.cli.inspect.bar import Gauge
from compactd.cli.inspect.context import RequestBreakdown, breakdown_of
from compactd.cli.inspect.cost import Cost, cost_in_file, cost_of
from compactd.cli.inspect.growth import Growth, forecast, growth_of
from compactd.cli.inspect.render import (
    MAX_NAMED_ENTRIES,
    TILES,
    Inspected,
    Smaller,
    context_facts,
    show,
    show_preview,
)
from compactd.cli.inspect.work import work_of
from compactd.client import Client, RpcError
from compactd.core.budget.recorded_window import reported_size
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Message
from compactd.protocol.work import Work

ABOUT = f"""\
Shows what uses the tokens of a session: what fills the context window, the largest
entries, how the context grew, when a compaction is due, and what one would free now.
Also shows where the work stands: plan, changed files, checks, errors and decisions.
--svg and --html also write a picture and a web page. Changes nothing and sends
nothing anywhere.

{SUPPORTED_FILES_HINT}
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    file: str | None
    pick: bool
    agent: str | None
    model: str | None
    window: int | None
    what: bool
    svg: str | None
    html: str | None
    force: bool


def run(options: Options, page: Page) -> int:
    """Read the file, ask the daemon, and print the result."""
    choice = choose_file(options.file, pick=options.pick, agent=options.agent, page=page)
    source = check_path(choice.name)
    targets = _targets(options, source)
    # The client is closed before the thread is waited for, so that Ctrl-C ends a running request.
    with paused_gc(), ThreadPoolExecutor(1) as thread, Client() as client:
        with ProgressSpinner(f"reading {one_line(source.name)}") as waiting:
            data = read_bytes(source)
            conversation = load_session(source, data, parse_file(source, data))
            waiting.set_text(f"counting {plural(len(conversation.messages), 'message')}")
            # While the daemon starts and takes the messages, this process reads what they say of the work,
            # and counts the blocks of each.
            started = thread.submit(
                start_session, client, conversation, model=options.model, window=options.window
            )
            appended = thread.submit(lambda: append(client, started.result().session_id, conversation.live))
            # The compaction begins when all messages are appended. Only `--what` shows the summary, and it
            # takes longer to make than everything else.
            tried = thread.submit(
                lambda: client.session_compact(
                    session_id=started.result().session_id,
                    dry_run=True,
                    plan_only=not options.what,
                    timeout_s=TIMEOUT_S,
                )
            )
            work = work_of(conversation)
            cost = cost_in_file(data, conversation.format)
            begun = started.result()
            session_id = begun.session_id
            facts = ask_conversation_facts(client, begun, conversation)
            counted = count(conversation, facts, most=TILES if targets else MAX_NAMED_ENTRIES)
            entry_ids = appended.result()
            state = client.agent_state(session_id=session_id)
            warnings = (*conversation.warnings, *begun.warnings)
            facts = replace(facts, state=state)
            inspected = examine(conversation, facts, counted, entry_ids, work, cost, warnings)
        if page.is_drawn:
            # The user can read this while the compaction is tried.
            show(page, inspected)
        with ProgressSpinner("trying a compaction"):
            preview = inspected.context.scaled_result(_preview(tried))
            smaller = None if preview.compacted else _smaller(client, session_id, inspected.context)
            inspected = replace(inspected, preview=preview, is_exact=options.what, smaller=smaller)
    wrote = _write(inspected, targets)
    if page.is_json:
        output = {"output": wrote} if wrote else {}
        page.json({**context_facts(inspected), **choice.facts, **output})
    else:
        if not page.is_drawn:
            show(page, inspected)
        show_preview(page, inspected, what=options.what)
        for kind, path in wrote.items():
            page.line(f"wrote {path}: {_KINDS[kind]}")
        print_notes(warnings)
    return DONE


def _preview(tried: Future[CompactionResult]) -> CompactionResult:
    """Wait for the compaction that is being tried, and return its result. If the context cannot be made small
    enough, return a result with `compacted` false instead of raising the error.
    """
    try:
        return tried.result()
    except RpcError as error:
        if error.code != CannotFit.code:
            raise
        return CompactionResult(compacted=False, reason=one_line(error.message).rstrip("."))


def _smaller(client: Client, session_id: str, context: RequestBreakdown) -> Smaller | None:
    """Return what a compaction to a quarter of the estimated context would free; None if it would free
    nothing.
    """
    target = context.estimate // 4 // 1000 * 1000
    if not target:
        return None
    try:
        result = client.session_compact(
            session_id=session_id, dry_run=True, plan_only=True, target_tokens=target, timeout_s=TIMEOUT_S
        )
    except RpcError:
        return None  # A compaction to this size is impossible.
    saved = context.scaled_result(result).tokens_saved
    return Smaller(target_tokens=target, tokens_saved=saved) if result.compacted and saved > 0 else None


_KINDS = {"svg": "a picture", "html": "a page, for any browser"}


def _targets(options: Options, source: Path) -> dict[str, Path]:
    """Return the file to write for each kind of picture (`svg`, `html`). Raise `CommandError` if one cannot
    be written.
    """
    if options.svg is not None and options.svg == options.html:
        raise CommandError("--svg and --html name the same file.", exit_code=USAGE)
    asked = {"svg": options.svg, "html": options.html}
    return {
        kind: check_writable(path, source, force=options.force)
        for kind, path in asked.items()
        if path is not None
    }


def _write(inspected: Inspected, targets: Mapping[str, Path]) -> dict[str, str]:
    """Write the pictures that were asked for. Return the path of each kind. Raise `CommandError` if one
    cannot be written.
    """
    if not targets:
        return {}
    from compactd.cli.inspect.html_page import page
    from compactd.cli.inspect.picture_data import picture_of
    from compactd.cli.inspect.svg import svg

    picture = picture_of(inspected)
    for kind, target in targets.items():
        text = svg(picture) if kind == "svg" else page(picture)
        write_file(target, text.encode())
    return {kind: make_encodable(str(target)) for kind, target in targets.items()}


class Counted(Struct, frozen=True, kw_only=True):
    """What this process's own token estimate says about a conversation, independent of the daemon."""

    places: tuple[MessagePlace, ...]
    """The place (number and turn) of each message of the file, oldest first."""
    live_places: tuple[MessagePlace, ...]
    """The place of each message in the context."""
    anatomy: Anatomy
    growth: Growth


def count(conversation: LoadedConversation, known: ModelFacts, *, most: int = MAX_NAMED_ENTRIES) -> Counted:
    """Return what uses the tokens, the `most` largest entries, and how the context grew. O(length of the
    texts).
    """
    messages = [message for message, _ in conversation.messages]
    live = [message for message, _ in conversation.live]
    places = places_of(messages)
    live_places = [
        places[number - 1] if number else MessagePlace(0, 0) for number in conversation.live_numbers
    ]
    anatomy = anatomy_of(
        live,
        live_places,
        known.counter,
        system_tokens=known.system_tokens,
        tools_tokens=known.tools_tokens,
        mcp_tokens=known.mcp_tokens,
        working_dir=conversation.working_dir,
        most=most,
    )
    growth = growth_of(
        messages,
        places,
        known.counter,
        known.fixed_tokens,
        compacted_after=conversation.compacted_after,
        counted=anatomy.by_message,
    )
    return Counted(places=tuple(places), live_places=tuple(live_places), anatomy=anatomy, growth=growth)


def examine(
    conversation: LoadedConversation,
    known: ModelFacts,
    counted: Counted,
    entry_ids: Sequence[str],
    work: Work,
    cost: Cost | None,
    warnings: Sequence[str],
) -> Inspected:
    """Return everything to show except what a compaction now would do. O(messages).

    `entry_ids`: the entry id of each message in the context. `cost`: what the requests in the file cost; if
    it is None, the cost is computed from the messages.
    """
    messages = [message for message, _ in conversation.messages]
    live = [message for message, _ in conversation.live]
    live_places = counted.live_places
    usage = known.state.token_usage
    used = usage.current_context_tokens or 0
    context = breakdown_of(counted.anatomy.parts, used)
    pricing = pricing_of(known.lookup) if known.lookup else None
    return Inspected(
        conversation=conversation,
        known=known,
        anatomy=replace(
            counted.anatomy,
            largest=tuple(
                replace(entry, tokens=context.scaled(entry.tokens)) for entry in counted.anatomy.largest
            ),
        ),
        context=context,
        gauge=Gauge(
            parts=context.parts,
            used=used,
            window=known.window,
            threshold=known.threshold,
            is_guess=known.is_guess,
            is_estimate=known.is_estimate,
        ),
        report_message=_reported_place(live, live_places, usage.last_prompt_tokens),
        growth=counted.growth,
        forecast=forecast(counted.growth, used, usage.threshold_tokens),
        cost=cost or (cost_of(messages, pricing) if pricing else None),
        pricing=pricing,
        all_places=counted.places,
        places=dict(zip(entry_ids, live_places, strict=True)),
        work=work,
        warnings=tuple(warnings),
    )


def _reported_place(live: Sequence[Message], places: Sequence[MessagePlace], base: int) -> int | None:
    """Return the number of the newest message whose usage report says `base` prompt tokens; None if there is
    none. The current size of the context is based on that report.
    """
    sizes = zip(map(reported_size, reversed(live)), reversed(places), strict=True)
    return next((place.number for size, place in sizes if base and size == base), None)


COMMAND = Command(
    "inspect",
    Options,
    run,
    about=ABOUT,
    params=(
        SESSION_FILE,
        PICK,
        AGENT,
        MODEL,
        WINDOW,
        Flag("--what", "show the summary and what a compaction now would keep"),
        Option("--svg", "write a picture (SVG) to this file", metavar="FILE", is_file=True),
        Option(
            "--html", "write a web page with interactive plots to this file", metavar="FILE", is_file=True
        ),
        FORCE,
    ),
    examples=(
        ("compactd inspect", "show the newest session of this folder's agents"),
        ("compactd inspect --pick", "choose a session from a list"),
        (
            "compactd inspect session.jsonl --window 64k --what",
            "assume a smaller window, and show what would be summarised",
        ),
        (
            "compactd inspect session.jsonl --html context.html",
            "write an interactive page for a browser",
        ),
        (
            "compactd inspect session.jsonl --json | jq .used.percent",
            "print how full the context is, for a script",
        ),
    ),
)

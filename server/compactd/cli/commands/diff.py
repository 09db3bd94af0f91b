"""`compactd diff SESSION|FILE`: shows the context before and after a compaction, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from textwrap import wrap

import msgspec
from msgspec import Struct

from compactd.cli.agent_files.choose import AGENT, PICK, choose_file
from compactd.cli.framework.command import Argument, Command, Flag
from compactd.cli.framework.complete import session_ids
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.load_file import (
    SUPPORTED_FILES_HINT,
    TIMEOUT_S,
    append_conversation,
    check_path,
    load,
    read_bytes,
)
from compactd.cli.framework.options import MODEL, WINDOW, size_options
from compactd.cli.framework.page import Page, one_line, plural, print_notes, shorten_to_columns
from compactd.cli.framework.progress import ProgressSpinner
from compactd.cli.framework.views import FATES, CompactionChange, Fate, MessageRow, last_change
from compactd.cli.inspect.markup import short
from compactd.client import Client
from compactd.storage.paths import data_folder, file_stem

ABOUT = f"""\
Shows what a compaction does to the context: which messages are kept, pinned, pruned
to a stub, or summarised, and their tokens. Before and after are side by side if the
terminal has at least 100 columns. For a stored session or a compactd journal, it
shows the last compaction. For any other file, and for a session that was never
compacted, it shows what a compaction without a model would do now. Changes nothing.

{SUPPORTED_FILES_HINT}
"""

SIDE_BY_SIDE = 100
"""The least width of a terminal, in columns, in which before and after are shown side by side."""
WIDEST = 200
MIDDLE = " │ "

MARKS: dict[Fate, str] = {"kept": "=", "pinned": "*", "pruned": "~", "summarised": "-"}
"""The mark before each message that shows its fate without colour."""

_TOKENS = 8
_KIND = 12


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    session: str | None
    pick: bool
    agent: str | None
    before_after: bool
    target: int | None
    keep_recent: int | None
    keep_messages: int | None
    model: str | None
    window: int | None


class _ShownChange(Struct, frozen=True, kw_only=True):
    """What to show: a change, and the session it belongs to."""

    name: str
    change: CompactionChange | None
    used: int | None = None
    """Tokens of the next request, if no compaction was done."""
    is_tried: bool
    """True if the compaction was only tried, not done."""
    reason: str = ""
    """Why there is no change."""
    warnings: tuple[str, ...] = ()


def run(options: Options, page: Page) -> int:
    """Read the session, try a compaction if none was done, and show the change."""
    budgets = (options.target, options.keep_recent, options.keep_messages)
    if sum(budget is not None for budget in budgets) > 1:
        raise CommandError(
            "--target, --keep-recent and --keep-messages cannot be combined: use one of them.",
            exit_code=USAGE,
        )
    choice = choose_file(options.session, pick=options.pick, agent=options.agent, page=page)
    source = _source(choice.name)
    with ProgressSpinner(f"reading {one_line(source.name)}") as waiting:
        seen = None if any(budgets) else _read_last_compaction(source)
        if seen is None:
            waiting.set_text("trying a compaction")
            seen = _try_compaction(source, options)
    if page.is_json:
        page.json({**_facts(seen), **choice.facts})
    elif seen.change is None:
        page.line(f"No compaction needed: {seen.reason.removeprefix('nothing to compact: ')}")
    else:
        _show(page, seen, seen.change, one_below=options.before_after)
        print_notes(seen.warnings)
    return DONE if seen.change is not None else NOTHING_TO_DO


def _source(name: str) -> Path:
    """Return the file `name`, or the file of the stored session with this id. Raise `CommandError` if there
    is neither.
    """
    if name != "-" and "/" not in name and not (Path(name).exists() or Path(name).is_symlink()):
        stored = data_folder(os.environ) / "sessions" / f"{file_stem(name)}.jsonl"
        if stored.is_file():
            return stored
        raise CommandError(
            f"there is no file {name!r}, and no stored session with this id.",
            hint="`compactd sessions` lists the stored sessions.",
            exit_code=USAGE,
        )
    return check_path(name)


def _read_last_compaction(source: Path) -> _ShownChange | None:
    """Return the last compaction of a compactd journal; None for other files, or if it has none."""
    if not source.is_file():
        return None
    data = read_bytes(source)
    try:
        change = last_change(data)
    except ValueError:
        return None
    return None if change is None else _ShownChange(name=source.name, change=change, is_tried=False)


def _try_compaction(source: Path, options: Options) -> _ShownChange:
    """Compact a copy of the session that is kept in memory, and return what changed."""
    with Client() as client, TemporaryDirectory(prefix="compactd-") as folder:
        conversation = load(source)
        fed = append_conversation(
            client, conversation, model=options.model, window=options.window, live_only=True
        )
        used = client.agent_state(session_id=fed.session_id).token_usage.current_context_tokens or 0
        result = client.session_compact(
            session_id=fed.session_id,
            strategy="extract",
            target_tokens=options.target,
            keep_recent=options.keep_recent,
            keep_messages=options.keep_messages,
            timeout_s=TIMEOUT_S,
        )
        change = None
        if result.compacted:
            journal = Path(folder) / "session.jsonl"
            client.session_export(
                session_id=fed.session_id, format="compactd", path=str(journal), timeout_s=TIMEOUT_S
            )
            change = last_change(journal.read_bytes(), conversation.working_dir, used)
    return _ShownChange(
        name=one_line(conversation.title or conversation.name),
        change=change,
        used=used,
        is_tried=True,
        reason=result.reason,
        warnings=(*conversation.warnings, *fed.warnings),
    )


def _facts(seen: _ShownChange) -> dict[str, object]:
    """Return the result for `--json`. Totals are sizes of the whole request; a message has its own size."""
    change = seen.change
    if change is None:
        return {
            "name": seen.name,
            "compacted": False,
            "before": {"tokens": seen.used},
            "reason": seen.reason,
            "warnings": seen.warnings,
        }
    fates = {}
    for fate in FATES:
        count, before, after = change.totals_of(fate)
        fates[fate] = {"messages": count, "tokens_before": before, "tokens_after": after}
    return {
        "name": seen.name,
        "compacted": True,
        "tried": seen.is_tried,
        "before": {"messages": change.messages_before, "tokens": change.tokens_before},
        "after": {"messages": change.messages_after, "tokens": change.tokens_after},
        "system_and_tools": change.fixed_tokens,
        "fates": fates,
        "summary": change.summary,
        "summary_tokens": change.summary_tokens,
        "messages": change.rows,
        "compaction": None if change.result is None else msgspec.to_builtins(change.result),
        "warnings": seen.warnings,
    }


# --- output -------------------------------------------------------------------------------------------


def _show(page: Page, seen: _ShownChange, change: CompactionChange, *, one_below: bool) -> None:
    done = "the last compaction did this" if change.summary else "the last prune did this"
    what = "a compaction now would do this" if seen.is_tried else done
    page.line(f"{seen.name}: {what}")
    page.line(
        f"  Tokens: {change.tokens_before:,} → {change.tokens_after:,}, "
        f"messages: {change.messages_before:,} → {change.messages_after:,}"
    )
    page.line()
    if change.fixed_tokens:
        page.row(
            "  besides",
            f"{change.fixed_tokens:,} tokens of system prompt and tools, which do not change",
            columns=14,
        )
    for fate in FATES:
        count, before, after = change.totals_of(fate)
        if count:
            page.row(f"{MARKS[fate]} {fate}", _fate_line(change, fate, count, before, after), columns=14)
    page.line()
    columns = min(get_terminal_size().columns, WIDEST) if page.is_drawn else 0
    if one_below:
        _one_below(page, change)
    elif columns >= SIDE_BY_SIDE:
        _side_by_side(page, change, columns)
    else:
        _one_column(page, change)


def _fate_line(change: CompactionChange, fate: Fate, count: int, before: int, after: int) -> str:
    text = f"{plural(count, 'message')}, {before:,} tokens"
    if fate == "pruned":
        return f"{text} → {after:,}"
    if fate == "summarised":
        return f"{text} → {change.summary_tokens:,} in the summary"
    return text


def _one_column(page: Page, change: CompactionChange) -> None:
    """Print every message of the view before the compaction once, with its fate. Print the summary at its
    place in the view after the compaction.
    """
    is_told = not change.summary
    for row in change.rows:
        if not is_told and row.fate in ("kept", "pruned"):
            _summary(page, change)
            is_told = True
        _line(page, row, row.tokens)
    if not is_told:
        _summary(page, change)


def _one_below(page: Page, change: CompactionChange) -> None:
    """Print the view before the compaction, then the view after it."""
    page.line("before")
    for row in change.rows:
        _line(page, row, row.tokens)
    page.line()
    page.line("after")
    _summary(page, change)
    for row in _after(change):
        _line(page, row, row.tokens_after)


def _after(change: CompactionChange) -> list[MessageRow]:
    """Return the messages that stay in the view, pinned ones first."""
    stays = [row for row in change.rows if row.fate != "summarised"]
    return sorted(stays, key=lambda row: row.fate != "pinned")


def _summary(page: Page, change: CompactionChange) -> None:
    if change.summary:
        page.line(f"+ {'summary':<{_KIND}}{change.summary_tokens:>{_TOKENS},}")
        page.text("\n".join(f"    {line}" for line in change.summary.splitlines()))


def _line(page: Page, row: MessageRow, tokens: int) -> None:
    page.line(_cell(row, tokens, page.width if page.is_drawn else 0))


def _cell(row: MessageRow, tokens: int, columns: int) -> str:
    """Return a message as one line of at most `columns` columns; 0 means no limit."""
    head = f"{MARKS[row.fate]} {row.kind:<{_KIND}}{tokens:>{_TOKENS},}"
    if row.fate == "pruned" and columns == 0:
        head += f" → {row.tokens_after:,}"
    what = one_line(row.what)
    if columns:
        what = shorten_to_columns(what, columns - len(head) - 2) if columns > len(head) + 8 else ""
    return f"{head}  {what}".rstrip()


def _side_by_side(page: Page, change: CompactionChange, columns: int) -> None:
    """Print two columns, before and after. The summary is next to the messages that it replaces; a kept
    message is in both columns of its line.
    """
    from rich.cells import set_cell_size

    half = (columns - len(MIDDLE)) // 2
    head = (f"before  {short(change.tokens_before)} tokens", f"after  {short(change.tokens_after)} tokens")
    for left, right in (head, ("─" * half, "─" * half), *_pairs(change, half)):
        line = f"{set_cell_size(left, half)}{MIDDLE}{set_cell_size(right, half)}".rstrip()
        page.console.print(line, no_wrap=True, overflow="ignore", crop=False)


def _pairs(change: CompactionChange, columns: int) -> Iterator[tuple[str, str]]:
    rows = change.rows
    tail = next((n for n, row in enumerate(rows) if row.fate in ("kept", "pruned")), len(rows))
    tail = max([tail, *(n + 1 for n, row in enumerate(rows) if row.fate in ("summarised", "pinned"))])
    old = rows[:tail]
    left = [_cell(row, row.tokens, columns) for row in old]
    right = _summary_lines(change, columns)
    right += [_cell(row, row.tokens_after, columns) for row in old if row.fate != "summarised"]
    for at in range(max(len(left), len(right))):
        yield left[at] if at < len(left) else "", right[at] if at < len(right) else ""
    if old and tail < len(rows):
        yield "─" * columns, "─" * columns
    for row in rows[tail:]:
        yield _cell(row, row.tokens, columns), _cell(row, row.tokens_after, columns)


def _summary_lines(change: CompactionChange, columns: int) -> list[str]:
    if not change.summary:
        return []
    lines = [f"+ {'summary':<{_KIND}}{change.summary_tokens:>{_TOKENS},}"]
    for line in change.summary.splitlines():
        lines += [f"    {part}" for part in wrap(one_line(line), columns - 4) or [""]]
    return lines


COMMAND = Command(
    "diff",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "session",
            "a stored session's id, or a session file (default: this folder's newest session)",
            metavar="SESSION|FILE",
            required=False,
            is_file=True,
            completed=session_ids,
        ),
        PICK,
        AGENT,
        Flag("--before-after", "print everything before, then everything after"),
        *size_options(
            "try a compaction to this size of the request, e.g. 16k",
            "try a compaction that keeps this many tokens of newest messages",
            "try a compaction that keeps this many of the newest messages",
        ),
        MODEL,
        WINDOW,
    ),
    examples=(
        ("compactd diff --target 16k", "show what a compaction of the newest session would keep"),
        ("compactd diff 5c5cb639", "show the last compaction of a stored session"),
        ("compactd diff session.jsonl --json | jq .fates", "print the totals for a script"),
    ),
    is_paged=True,
)

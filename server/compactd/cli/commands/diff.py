"""`compactd diff SESSION|FILE`: the context before and after a compaction, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from textwrap import wrap

import msgspec
from msgspec import Struct

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.complete import models, session_ids
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, Stop
from compactd.cli.framework.load_file import KNOWN, TIMEOUT_S, Conversation, bytes_at, checked, feed, load
from compactd.cli.framework.page import Page, note, one_line, plural, shortened
from compactd.cli.framework.progress import Waiting
from compactd.cli.framework.views import FATES, Change, Fate, Row, last_change
from compactd.cli.inspect.markup import short
from compactd.client import Client
from compactd.protocol.messages import CompactionResult
from compactd.protocol.wire import ExportResult, StateResult
from compactd.storage.paths import data_folder, file_stem

ABOUT = f"""\
Shows what a compaction does to the context: which messages are kept, pinned, pruned
to a stub, or summarised, with their tokens; before and after side by side where the
terminal has 100 columns. Of a stored session, or a journal of ours: its last
compaction. Of any other file, and of a session without one: what one would do now,
without a model. Changes nothing.

{KNOWN}
"""

SIDE_BY_SIDE = 100
"""Columns from which on there are two."""
WIDEST = 200
MIDDLE = " │ "

MARKS: dict[Fate, str] = {"kept": "=", "pinned": "*", "pruned": "~", "summarised": "-"}
"""Before each message: what became of it, without colour."""

_TOKENS = 8
_KIND = 12


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    session: str
    before_after: bool
    target: int | None
    keep_recent: int | None
    keep_messages: int | None
    model: str | None
    window: int | None


class _Seen(Struct, frozen=True, kw_only=True):
    """A change, and what it is about."""

    name: str
    change: Change | None
    used: int | None = None
    """Tokens of the next request, where no compaction was done."""
    is_tried: bool
    """It was not done, only tried."""
    reason: str = ""
    """Why there is none."""
    warnings: tuple[str, ...] = ()


def run(options: Options, page: Page) -> int:
    """Reads, tries a compaction where none was done, shows."""
    budgets = (options.target, options.keep_recent, options.keep_messages)
    if sum(budget is not None for budget in budgets) > 1:
        raise Stop("--target, --keep-recent and --keep-messages exclude each other.", exit_code=USAGE)
    source = _source(options.session)
    with Waiting(f"reading {one_line(source.name)}") as waiting:
        seen = None if any(budgets) else _done(source)
        if seen is None:
            waiting.say("trying a compaction")
            seen = _tried(source, options)
    if page.is_json:
        page.json(_facts(seen))
    elif seen.change is None:
        page.line(f"No compaction needed: {seen.reason.removeprefix('nothing to compact: ')}")
    else:
        _show(page, seen, seen.change, one_below=options.before_after)
        note(seen.warnings)
    return DONE if seen.change is not None else NOTHING_TO_DO


def _source(name: str) -> Path:
    """The file that is named, or that of the stored session with this id. Raises `Stop`."""
    if name != "-" and "/" not in name and not (Path(name).exists() or Path(name).is_symlink()):
        stored = data_folder(os.environ) / "sessions" / f"{file_stem(name)}.jsonl"
        if stored.is_file():
            return stored
        raise Stop(
            f"there is no file and no stored session {name!r}.",
            hint="`compactd sessions` lists the sessions that are stored.",
            exit_code=USAGE,
        )
    return checked(name)


def _done(source: Path) -> _Seen | None:
    """The last compaction of a journal of ours; none for other files, or where it has none."""
    if not source.is_file():
        return None
    data = bytes_at(source)
    try:
        change = last_change(data)
    except ValueError:
        return None
    return None if change is None else _Seen(name=source.name, change=change, is_tried=False)


def _tried(source: Path, options: Options) -> _Seen:
    """What a compaction now would do: done on a copy that is kept in memory."""
    with Client() as client, TemporaryDirectory(prefix="compactd-") as folder:
        conversation = load(source)
        fed = feed(client, conversation, model=options.model, window=options.window, live_only=True)
        params = {
            "session_id": fed.session_id,
            "strategy": "extract",
            "target_tokens": options.target,
            "keep_recent": options.keep_recent,
            "keep_messages": options.keep_messages,
        }
        state = client.ask("agent/state", {"session_id": fed.session_id}, StateResult)
        used = state.token_usage.current_context_tokens or 0
        result = client.ask("session/compact", params, CompactionResult, timeout_s=TIMEOUT_S)
        change = None
        if result.compacted:
            journal = Path(folder) / "session.jsonl"
            export = {"session_id": fed.session_id, "format": "compactd", "path": str(journal)}
            client.ask("session/export", export, ExportResult, timeout_s=TIMEOUT_S)
            change = last_change(journal.read_bytes(), conversation.working_dir, used)
    return _Seen(
        name=_name(conversation),
        change=change,
        used=used,
        is_tried=True,
        reason=result.reason,
        warnings=(*conversation.warnings, *fed.begun.warnings),
    )


def _name(conversation: Conversation) -> str:
    return one_line(conversation.title or conversation.name)


def _facts(seen: _Seen) -> dict[str, object]:
    """The same for `--json`. Tokens of the whole request; a message's are its own."""
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
        count, before, after = change.of(fate)
        fates[fate] = {"messages": count, "tokens_before": before, "tokens_after": after}
    return {
        "name": seen.name,
        "compacted": True,
        "tried": seen.is_tried,
        "before": {"messages": change.messages_before, "tokens": change.tokens_before},
        "after": {"messages": change.messages_after, "tokens": change.tokens_after},
        "system_and_tools": change.beside,
        "fates": fates,
        "summary": change.summary,
        "summary_tokens": change.summary_tokens,
        "messages": change.rows,
        "compaction": None if change.result is None else msgspec.to_builtins(change.result),
        "warnings": seen.warnings,
    }


# --- what is shown ------------------------------------------------------------------------------------


def _show(page: Page, seen: _Seen, change: Change, *, one_below: bool) -> None:
    done = "the last compaction did this" if change.summary else "the last prune did this"
    what = "a compaction now would do this" if seen.is_tried else done
    page.line(f"{seen.name}: {what}")
    page.line(
        f"  Tokens: {change.tokens_before:,} → {change.tokens_after:,}, "
        f"messages: {change.messages_before:,} → {change.messages_after:,}"
    )
    page.line()
    if change.beside:
        page.row("  besides", f"{change.beside:,} tokens of system prompt and tools, which stay", columns=14)
    for fate in FATES:
        count, before, after = change.of(fate)
        if count:
            page.row(f"{MARKS[fate]} {fate}", _told(change, fate, count, before, after), columns=14)
    page.line()
    columns = min(get_terminal_size().columns, WIDEST) if page.is_drawn else 0
    if one_below:
        _one_below(page, change)
    elif columns >= SIDE_BY_SIDE:
        _side_by_side(page, change, columns)
    else:
        _one_column(page, change)


def _told(change: Change, fate: Fate, count: int, before: int, after: int) -> str:
    text = f"{plural(count, 'message')}, {before:,} tokens"
    if fate == "pruned":
        return f"{text} → {after:,}"
    if fate == "summarised":
        return f"{text} → {change.summary_tokens:,} of the summary"
    return text


def _one_column(page: Page, change: Change) -> None:
    """Every message of before, once, with its fate; the summary where it stands after."""
    is_told = not change.summary
    for row in change.rows:
        if not is_told and row.fate in ("kept", "pruned"):
            _summary(page, change)
            is_told = True
        _line(page, row, row.tokens)
    if not is_told:
        _summary(page, change)


def _one_below(page: Page, change: Change) -> None:
    """All of before, then all of after."""
    page.line("before")
    for row in change.rows:
        _line(page, row, row.tokens)
    page.line()
    page.line("after")
    _summary(page, change)
    for row in _after(change):
        _line(page, row, row.tokens_after)


def _after(change: Change) -> list[Row]:
    """The messages of after, beside the summary: the pinned first."""
    stays = [row for row in change.rows if row.fate != "summarised"]
    return sorted(stays, key=lambda row: row.fate != "pinned")


def _summary(page: Page, change: Change) -> None:
    if change.summary:
        page.line(f"+ {'summary':<{_KIND}}{change.summary_tokens:>{_TOKENS},}")
        page.text("\n".join(f"    {line}" for line in change.summary.splitlines()))


def _line(page: Page, row: Row, tokens: int) -> None:
    page.line(_cell(row, tokens, page.width if page.is_drawn else 0))


def _cell(row: Row, tokens: int, columns: int) -> str:
    """A message in one line of so many columns; 0: as long as it is."""
    head = f"{MARKS[row.fate]} {row.kind:<{_KIND}}{tokens:>{_TOKENS},}"
    if row.fate == "pruned" and columns == 0:
        head += f" → {row.tokens_after:,}"
    what = one_line(row.what)
    if columns:
        what = shortened(what, columns - len(head) - 2) if columns > len(head) + 8 else ""
    return f"{head}  {what}".rstrip()


def _side_by_side(page: Page, change: Change, columns: int) -> None:
    """Two columns: beside what is summarised stands the summary, and each message beside itself."""
    from rich.cells import set_cell_size

    half = (columns - len(MIDDLE)) // 2
    head = (f"before  {short(change.tokens_before)} tokens", f"after  {short(change.tokens_after)} tokens")
    for left, right in (head, ("─" * half, "─" * half), *_pairs(change, half)):
        line = f"{set_cell_size(left, half)}{MIDDLE}{set_cell_size(right, half)}".rstrip()
        page.console.print(line, no_wrap=True, overflow="ignore", crop=False)


def _pairs(change: Change, columns: int) -> Iterator[tuple[str, str]]:
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


def _summary_lines(change: Change, columns: int) -> list[str]:
    if not change.summary:
        return []
    lines = [f"+ {'summary':<{_KIND}}{change.summary_tokens:>{_TOKENS},}"]
    for line in change.summary.splitlines():
        lines += _wrapped(line, columns - 4)
    return lines


def _wrapped(line: str, columns: int) -> Sequence[str]:
    parts = wrap(one_line(line), columns) or [""]
    return [f"    {part}" for part in parts]


COMMAND = Command(
    "diff",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "session",
            "a stored session's id, or a session file",
            metavar="SESSION|FILE",
            is_file=True,
            completed=session_ids,
        ),
        Flag("--before-after", "all of before, then all of after"),
        Option(
            "--target",
            "try one: tokens of the whole compacted request, as 16k",
            read=sizes.tokens,
            metavar="N",
        ),
        Option(
            "--keep-recent",
            "try one: tokens of the newest messages that stay",
            read=sizes.tokens,
            metavar="N",
        ),
        Option(
            "--keep-messages",
            "try one: how many of the newest messages stay",
            read=sizes.messages,
            metavar="N",
        ),
        Option(
            "--model",
            "the conversation's model, if the file does not name it",
            metavar="ID",
            completed=models,
        ),
        Option("--window", "the model's window in tokens", read=sizes.tokens, metavar="N"),
    ),
    examples=(
        ("compactd diff session.jsonl --target 16k", "what would stay, and what would become of the rest"),
        ("compactd diff 5c5cb639", "the last compaction of a stored session"),
        ("compactd diff session.jsonl --json | jq .fates", "the same, for a script"),
    ),
    is_paged=True,
)

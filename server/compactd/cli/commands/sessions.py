"""`compactd sessions`: lists the stored sessions; `sessions show ID` prints one, `sessions delete ID` deletes
one, `sessions expire` deletes old ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import time

from msgspec import Struct

from compactd.cli.commands.show_session import SHOW, find_session
from compactd.cli.framework.command import Argument, Command, CommandGroup, Flag, Option
from compactd.cli.framework.complete import models, session_ids
from compactd.cli.framework.exit_codes import DONE, FAILED, NOTHING_TO_DO
from compactd.cli.framework.page import Page, one_line, plural, shorten_to_columns
from compactd.cli.framework.quantities import age_text
from compactd.cli.framework.session_rows import content_texts, is_empty
from compactd.cli.framework.stored import show_nothing_stored
from compactd.client import Client, RpcError
from compactd.protocol.wire import Left, SessionInfo

ABOUT = """\
Lists the sessions that are stored on this machine, newest first. `open` means that a
daemon has the session open. Sessions that were started and never used are not listed;
--all shows them.
"""


KEYS: Mapping[str, Callable[[SessionInfo], str | float]] = {
    "updated": lambda one: one.updated_at,
    "messages": lambda one: one.message_count,
    "compactions": lambda one: one.compactions,
    "size": lambda one: one.bytes,
    "title": lambda one: (one.title or "").casefold(),
    "model": lambda one: one.model or "",
    "id": lambda one: one.session_id,
}
"""Name of an order -> function that returns the sort key of a session. Numbers are sorted from the largest,
words alphabetically.
"""

ASCENDING = ("title", "model", "id")

DAY_S = 86_400

GAP = "  "
"""What separates the columns of the list."""

MIN_TITLE = 30
"""Columns for the title. If there are fewer, details are left out of the list."""


class Options(Struct, frozen=True, kw_only=True):
    """The options of the list."""

    sort: str
    reverse: bool
    filter: str | None
    model: str | None
    all: bool


class DeleteOptions(Struct, frozen=True, kw_only=True):
    """The options of `sessions delete`."""

    id: str
    yes: bool


def run(options: Options, page: Page) -> int:
    """Print the list of sessions."""
    with Client() as client:
        everything = client.session_list().sessions
    stored = [one for one in everything if options.all or not is_empty(one)]
    sessions = choose(stored, options)
    if page.is_json:
        page.json({"sessions": sessions})
    elif not stored:
        if everything:
            page.line(f"{plural(len(everything), 'empty session')}; --all lists them")
        else:
            show_nothing_stored(page)
    elif not sessions:
        page.line(f"none of {plural(len(stored), 'session')} matches")
    elif page.is_drawn:
        _draw(page, sessions, with_size=options.sort == "size")
    else:
        contents = content_texts(os.environ, sessions)
        for session in sessions:
            content = contents[session.session_id]
            details = ", ".join(_details(session, content, with_size=options.sort == "size"))
            columns = (session.session_id, age_text(session.updated_at, time()), details)
            page.line(GAP.join((*columns, one_line(session.title or "-"))))
    return DONE


def choose(sessions: Sequence[SessionInfo], options: Options) -> tuple[SessionInfo, ...]:
    """Return the sessions that match the filters, in the chosen order."""
    text = (options.filter or "").casefold()
    model = (options.model or "").casefold()
    fitting = [
        one
        for one in sessions
        if text in f"{one.session_id}\n{one.title or ''}".casefold() and model in (one.model or "").casefold()
    ]
    ordered = sorted(fitting, key=KEYS[options.sort], reverse=options.sort not in ASCENDING)
    return tuple(reversed(ordered)) if options.reverse else tuple(ordered)


def _details(session: SessionInfo, content: str, *, with_size: bool) -> tuple[str, ...]:
    """Return what the list says about a session, the most important first. `content`: `3 messages`."""
    details = [content]
    if session.open:
        details.append("open")
    if with_size:
        details.append(f"{session.bytes:,} bytes")
    if session.compactions:
        details.append(plural(session.compactions, "compaction"))
    if session.model:
        details.append(one_line(session.model))
    return tuple(details)


def _draw(page: Page, sessions: Sequence[SessionInfo], *, with_size: bool) -> None:
    """Print the list in a terminal. Ids are never shortened, because `sessions delete` needs them. In a
    narrow terminal, some details are left out, so that the titles can be read.
    """
    from rich.cells import cell_len

    ids = [one_line(session.session_id) for session in sessions]
    ages = [age_text(session.updated_at, time()) for session in sessions]
    contents = content_texts(os.environ, sessions)
    details = [_details(one, contents[one.session_id], with_size=with_size) for one in sessions]
    left = page.width - max(map(cell_len, ids)) - max(map(cell_len, ages)) - 2 * len(GAP)
    shown = [", ".join(one) for one in details]
    for count in range(max(map(len, details)), -1, -1):
        shown = [", ".join(one[:count]) for one in details]
        if left - max(map(cell_len, shown)) - len(GAP) >= MIN_TITLE:
            break
    widths = [max(map(cell_len, column)) for column in (ids, ages, shown)]
    for *columns, session in zip(ids, ages, shown, sessions, strict=True):
        fixed = (
            text + " " * (width - cell_len(text))
            for text, width in zip(columns, widths, strict=True)
            if width
        )
        line = GAP.join((*fixed, one_line(session.title or "-")))
        page.pieces([(shorten_to_columns(line, page.width), "")])


def delete(options: DeleteOptions, page: Page) -> int:
    """Ask the user, then delete the session."""
    with Client() as client:
        sessions = client.session_list().sessions
        session = find_session(options.id, sessions)
        what = f"{session.session_id} ({content_texts(os.environ, [session])[session.session_id]})"
        if page.is_drawn and sys.stdin.isatty() and not options.yes and not _confirm(what):
            page.line("nothing was deleted")
            return NOTHING_TO_DO
        left = client.session_delete(session_id=options.id).left
    if page.is_json:
        page.json({"deleted": options.id, **({"left": left} if left else {})})
    else:
        page.line(f"deleted {what}")
        for one in left:
            page.line(f"  not deleted: {one_line(one.path or one.where)}: {one.why}", "due")
    return DONE


class ExpireOptions(Struct, frozen=True, kw_only=True):
    """The options of `sessions expire`."""

    older_than: float
    dry_run: bool
    yes: bool


def expire(options: ExpireOptions, page: Page) -> int:
    """Ask the user, then delete the sessions that nobody has open and that were not written for so long."""
    with Client() as client:
        latest = time() - options.older_than * DAY_S
        old = [one for one in client.session_list().sessions if one.updated_at < latest and not one.open]
        what = f"{plural(len(old), 'session')}, not written for {options.older_than:g} days"
        is_asked = page.is_drawn and sys.stdin.isatty() and not options.yes
        if not old or options.dry_run or (is_asked and not _confirm(what)):
            return _show_expired(page, old, (), what if old else "no session is so old", is_done=False)
        deleted, left = delete_each(old, lambda id: client.session_delete(session_id=id).left)
    what = f"{plural(len(deleted), 'session')}, not written for {options.older_than:g} days"
    _show_expired(page, deleted, left, what, is_done=True)
    return DONE if len(deleted) == len(old) else FAILED


def delete_each(
    sessions: Sequence[SessionInfo], delete: Callable[[str], Sequence[Left]]
) -> tuple[list[SessionInfo], list[Left]]:
    """Delete sessions with `delete`, which returns what is left of one. Return (the sessions that were
    deleted, what is left). If one cannot be deleted, for example because it was opened meanwhile, it is left,
    and the others are deleted.
    """
    deleted: list[SessionInfo] = []
    left: list[Left] = []
    for one in sessions:
        try:
            left += delete(one.session_id)
        except RpcError as error:
            left.append(Left(where=one.session_id, why=error.message))
        else:
            deleted.append(one)
    return deleted, left


def _show_expired(
    page: Page, old: Sequence[SessionInfo], left: Sequence[Left], what: str, *, is_done: bool
) -> int:
    if page.is_json:
        ids = [one.session_id for one in old]
        page.json({"deleted" if is_done else "would_delete": ids, **({"left": left} if left else {})})
    else:
        page.line(f"deleted {what}" if is_done else f"nothing was deleted: {what}")
        for one in old:
            page.line(f"  {one_line(one.session_id)}  {age_text(one.updated_at, time())}")
        for copy in left:
            page.line(f"  not deleted: {one_line(copy.path or copy.where)}: {copy.why}", "due")
    return DONE if is_done else NOTHING_TO_DO


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 0 < days < inf:
        raise ValueError(f"{text!r} is not a number of days above 0")
    return days


def _confirm(what: str) -> bool:
    sys.stdout.write(f"delete {one_line(what)} permanently? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


COMMAND = CommandGroup(
    Command(
        "sessions",
        Options,
        run,
        about=ABOUT,
        params=(
            Option(
                "--sort",
                f"{', '.join(KEYS)}: largest or newest first, words alphabetically",
                metavar="KEY",
                choices=tuple(KEYS),
                default="updated",
            ),
            Flag("--reverse", "reverse the order"),
            Option("--filter", "only sessions whose id or title contains this text"),
            Option("--model", "only sessions whose model's name contains this text", completed=models),
            Flag("--all", "also sessions that were started and never used"),
        ),
        examples=(
            ("compactd sessions --sort messages", "list the longest first"),
            (
                "compactd sessions --filter parser --model claude",
                "list the sessions about the parser with a model of Claude",
            ),
            ("compactd sessions --json | jq -r '.sessions[].session_id'", "print the ids"),
        ),
        is_paged=True,
    ),
    commands=(
        SHOW,
        Command(
            "delete",
            DeleteOptions,
            delete,
            about="Deletes a session permanently, with everything that compactd keeps of it. Lists\n"
            "copies that do not belong to compactd. In a terminal, it asks first.",
            params=(
                Argument("id", "the session's id, as listed", completed=session_ids),
                Flag("--yes", "do not ask", also=("-y",)),
            ),
            examples=(("compactd sessions delete ID --yes", "delete without asking"),),
        ),
        Command(
            "expire",
            ExpireOptions,
            expire,
            about="Deletes the sessions that were not written for a number of days and that nobody has\n"
            "open, with everything that compactd keeps of them. In a terminal, it asks first.",
            params=(
                Option(
                    "--older-than",
                    "days since a session was written",
                    metavar="DAYS",
                    read=_days,
                    required=True,
                ),
                Flag("--dry-run", "only print which ones"),
                Flag("--yes", "do not ask", also=("-y",)),
            ),
            examples=(("compactd sessions expire --older-than 90 --yes", "every night, for example"),),
        ),
    ),
)

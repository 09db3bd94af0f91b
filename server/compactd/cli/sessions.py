"""`compactd sessions`: the sessions that are stored; `sessions delete ID` removes one for good."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime

from compactd.cli.ending import DONE, NOTHING_TO_DO, Stop
from compactd.cli.page import Page, one_line, plural
from compactd.client import Client
from compactd.rpc.wire import ListResult, Nothing, SessionInfo

ABOUT = """\
The sessions that are stored here, newest first; `open`: a daemon has it open.
"""

ID_SHOWN = 20
"""Columns of an id in a terminal; a daemon's own ids are 16 characters long."""


def fill(parser: argparse.ArgumentParser) -> None:
    """Nothing, or `delete ID`."""
    parser.description = ABOUT
    parser.usage = "compactd sessions [--json]\n       compactd sessions delete ID [--yes] [--json]"
    commands = parser.add_subparsers(
        dest="action", metavar="delete", title="action", prog="compactd sessions"
    )
    delete = commands.add_parser(
        "delete", help="remove a session for good, with its file", allow_abbrev=False
    )
    delete.add_argument("id", metavar="ID", help="as the list shows it")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    delete.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object with the same facts"
    )


def run(options: argparse.Namespace, page: Page) -> int:
    """Asks the daemon."""
    with Client() as client:
        sessions = client.ask("session/list", None, ListResult).sessions
        if options.action == "delete":
            return _delete(client, sessions, options, page)
    if page.is_json:
        page.json({"sessions": sessions})
    elif not sessions:
        page.line("no sessions are stored")
    elif page.is_drawn:
        _draw(page, sessions)
    else:
        for session in sessions:
            page.line("  ".join((session.session_id, *_columns(session), one_line(session.title or "-"))))
    return DONE


def _columns(session: SessionInfo) -> tuple[str, ...]:
    when = datetime.fromtimestamp(session.updated_at).strftime("%Y-%m-%d %H:%M")
    counts = plural(session.message_count, "message")
    if session.compactions:
        counts += f", {plural(session.compactions, 'compaction')}"
    if session.open:
        counts += ", open"
    return (when, counts)


def _draw(page: Page, sessions: tuple[SessionInfo, ...]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), width=page.width)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for session in sessions:
        table.add_row(one_line(session.session_id), *_columns(session), one_line(session.title or ""))
    page.console.print(table)


def _delete(
    client: Client, sessions: tuple[SessionInfo, ...], options: argparse.Namespace, page: Page
) -> int:
    session = next((one for one in sessions if one.session_id == options.id), None)
    if session is None:
        raise Stop(
            f"no session has the id {options.id!r}.",
            hint="`compactd sessions` lists those there are.",
            code=1001,
        )
    what = f"{session.session_id} ({plural(session.message_count, 'message')})"
    if page.is_drawn and sys.stdin.isatty() and not options.yes and not _confirmed(what):
        page.line("nothing was deleted")
        return NOTHING_TO_DO
    client.ask("session/delete", {"session_id": options.id}, Nothing)
    if page.is_json:
        page.json({"deleted": options.id})
    else:
        page.line(f"deleted {what}")
    return DONE


def _confirmed(what: str) -> bool:
    sys.stdout.write(f"delete {one_line(what)} for good? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")

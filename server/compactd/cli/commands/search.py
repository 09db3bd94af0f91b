"""`compactd search`: finds messages in all stored sessions that contain given words, best match first."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Argument, Command, Option
from compactd.cli.framework.complete import session_ids
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, CommandError
from compactd.cli.framework.page import Page, one_line, plural, print_notes
from compactd.cli.framework.progress import ProgressSpinner
from compactd.cli.framework.stored import show_nothing_stored
from compactd.client import Client
from compactd.protocol.wire import Hit, SearchResult

ABOUT = """\
Finds messages in all stored sessions that contain all of the words, also messages that
were compacted away. The best match comes first. Text without a space matches as a
whole (`src/loader.py`). The last word also matches the beginning of a longer word.
"""

TIMEOUT_S = 600.0
"""Timeout of a search in all sessions, in seconds. The first search reads every session."""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    words: tuple[str, ...]
    session: str | None
    limit: int


def run(options: Options, page: Page) -> int:
    """Ask the daemon and print the messages it found."""
    query = " ".join(options.words)
    with Client() as client, ProgressSpinner("searching the sessions"):
        titles = {one.session_id: one.title for one in client.session_list().sessions}
        if options.session is not None:
            if options.session not in titles:
                raise CommandError(
                    f"no session has the id {options.session!r}.", hint="`compactd sessions` lists them."
                )
            client.session_start(session_id=options.session)
            found = client.session_search(query=query, session_id=options.session, limit=options.limit)
        else:
            found = client.session_search(query=query, limit=options.limit, timeout_s=TIMEOUT_S)
            while not found.complete:
                found = client.session_search(query=query, limit=options.limit, timeout_s=TIMEOUT_S)
    if page.is_json:
        page.json(found)
    elif found.hits:
        _show(page, found, titles, options)
    elif not titles:
        show_nothing_stored(page)
    else:
        page.line(f"no message contains {one_line(query)!r}")
    return DONE if found.hits else NOTHING_TO_DO


def _show(page: Page, found: SearchResult, titles: dict[str, str | None], options: Options) -> None:
    by_session: dict[str, list[Hit]] = {}
    for hit in found.hits:
        where = hit.session_id if isinstance(hit.session_id, str) else options.session or ""
        by_session.setdefault(where, []).append(hit)
    for session_id, hits in by_session.items():
        title = one_line(titles.get(session_id) or "")
        page.line(f"{session_id}  {title}".rstrip())
        for hit in hits:
            when = datetime.fromtimestamp(hit.at).strftime("%Y-%m-%d %H:%M")
            place = f"  {hit.entry_id:<6} {hit.role:<9} {when}  "
            page.row(place, one_line(hit.snippet), columns=len(place))
    count = f"{plural(len(found.hits), 'hit')} in {plural(len(by_session), 'session')}"
    more = "; --limit N shows more" if len(found.hits) == options.limit else ""
    print_notes([f"{count}{more}", "`compactd sessions show ID ENTRY` prints a message in full"])


COMMAND = Command(
    "search",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("words", "the words to search for", is_many=True),
        Option(
            "--session",
            "search only this session, for exactly this text",
            metavar="ID",
            completed=session_ids,
        ),
        Option("--limit", "the most messages to show (20)", metavar="N", read=sizes.count, default=20),
    ),
    examples=(
        ("compactd search ErrNoBranch refs", "find messages that contain both words"),
        ("compactd search src/loader.py --limit 5", "find a path, at most 5 messages"),
        ("compactd search retry --session ID", "search one session"),
    ),
    is_paged=True,
)

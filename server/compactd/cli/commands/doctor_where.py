"""`compactd doctor --where`: lists every file, session and message that contains a text, which is read from
standard input.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from compactd.cli.framework.exit_codes import DONE, FAILED, USAGE, CommandError
from compactd.cli.framework.page import Page, ask_for_text, one_line, plural
from compactd.storage.choose import STORE, make_database_store
from compactd.storage.find_text import TextFindings, TextPlace, find
from compactd.storage.paths import data_folder

_MAX_PLACES = 200
"""The most places that are printed; `--json` lists all."""


def report(page: Page) -> int:
    """Read a text from standard input, search for it in the data folder, and print the places. Return 1 if it
    was found, otherwise 0.
    """
    ask_for_text()
    # The shell added the line end; it is not part of the text.
    text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").strip("\r\n")
    if not text.strip():
        raise CommandError(
            "there is no text on standard input.", hint="`compactd doctor --where < FILE`.", exit_code=USAGE
        )
    home = data_folder(os.environ)
    found = find(home, text)
    stored = _in_database(home, text)
    if stored is not None:
        places, unseen = (*found.places, *stored.places), (*found.unseen, *stored.unseen)
        found = TextFindings(places=places, unseen=unseen, files=found.files)
    if page.is_json:
        page.json(
            {
                "folder": str(home),
                "files": found.files,
                **({} if stored is None else {"database_sessions": stored.files}),
                "places": found.places,
                "not_looked_into": found.unseen,
            }
        )
    else:
        _draw(page, home, found, None if stored is None else stored.files)
    return FAILED if found.places else DONE


def _in_database(home: Path, text: str) -> TextFindings | None:
    """Return what is found in the database that the environment names; None if it names none."""
    url = os.environ.get(STORE, "").strip()
    if not url:
        return None
    store = make_database_store(url, os.environ, home)
    from compactd.storage.postgres.find_text import find_in_database

    try:
        return find_in_database(store.pool, text)
    finally:
        asyncio.run(store.close())


def _draw(page: Page, home: Path, found: TextFindings, stored: int | None) -> None:
    """`stored`: the number of sessions in the database, if there is one."""
    looked = f"{plural(found.files, 'file')} of {home}"
    if stored is not None:
        looked += f" and {plural(stored, 'session')} of the database"
    if found.places:
        page.line(f"{plural(len(found.places), 'place')} in {looked}", "due")
    else:
        page.line(f"not found in {looked}")
    for place in found.places[:_MAX_PLACES]:
        page.line(f"  {_place_line(place, home)}")
    if len(found.places) > _MAX_PLACES:
        page.line(f"  … {len(found.places) - _MAX_PLACES:,} more; --json lists all")
    for one in found.unseen:
        page.line(f"  not searched: {one_line(_short(one.path, home))}: {one.why}", "due")
    if any(place.entry_id for place in found.places):
        page.line("`session/redact` removes messages; `compactd sessions delete ID` removes a whole session")


def _place_line(place: TextPlace, home: Path) -> str:
    parts = [f"{place.where:12} {one_line(_short(place.path, home))}"]
    if place.session_id is not None:
        parts.append(f"session {one_line(place.session_id)}")
    if place.entry_id is not None:
        parts.append(f"{place.record or 'message'} {one_line(place.entry_id)}")
    elif place.record is not None:
        parts.append(place.record)
    return " · ".join(parts)


def _short(path: str, home: Path) -> str:
    return path.removeprefix(f"{home}{os.sep}")

"""`compactd doctor --where`: lists every file, session and message that contains a text, which is read from
standard input.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from compactd.cli.framework.exit_codes import DONE, FAILED, USAGE, CommandError
from compactd.cli.framework.page import Page, ask_for_text, one_line, plural
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
    if page.is_json:
        page.json(
            {
                "folder": str(home),
                "files": found.files,
                "places": found.places,
                "not_looked_into": found.unseen,
            }
        )
    else:
        _draw(page, home, found)
    return FAILED if found.places else DONE


def _draw(page: Page, home: Path, found: TextFindings) -> None:
    looked = f"{plural(found.files, 'file')} of {home}"
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

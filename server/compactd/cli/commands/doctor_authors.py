"""What `compactd doctor --authors` shows: who wrote what in the role `user`, in one session file or in all
sessions that are stored here."""

from __future__ import annotations

import os

from compactd.cli.framework.exit_codes import DONE, FAILED, Stop
from compactd.cli.framework.load_file import bytes_at, checked, file_in
from compactd.cli.framework.page import Page, one_line, plural
from compactd.core.history.entries import Item
from compactd.core.summary.authorship import Authorship, authorship
from compactd.storage.paths import data_folder

SHOWN = 20
"""Lines per session; `--json` has all."""
LINE_CHARS = 100


def report(page: Page, file: str | None) -> int:
    """Prints it; fails if something was taken for the user's that is not."""
    if file is not None:
        paths = [checked(file)]
    else:
        paths = sorted((data_folder(os.environ) / "sessions").glob("*.jsonl"))
    told: list[dict[str, object]] = []
    changed = 0
    for path in paths:
        try:
            read = file_in(path, bytes_at(path))
        except Stop as stop:
            if file is not None:
                raise
            page.line(f"{path.name}: {stop}", "due")
            continue
        items = [
            Item(entry_id=f"e{number}", body=message, tokens=0)
            for number, (message, _) in enumerate(read.messages, start=1)
        ]
        found = authorship(items)
        changed += not found.is_clean
        told.append({"file": str(path), "session_id": read.session_id, "authors": found})
        if not page.is_json and (file is not None or not found.is_clean):
            _draw(page, read.session_id or path.name, found)
    if page.is_json:
        page.json({"sessions": told})
    elif file is None:
        page.line(f"{plural(len(told), 'session')}, {changed} with text that is not the user's after all")
    return FAILED if changed else DONE


def _draw(page: Page, name: str, found: Authorship) -> None:
    page.line(one_line(name))
    counts = ", ".join(f"{count} {author}" for author, count in found.stretches.items())
    page.line(f"  in the role user: {counts or 'nothing'}")
    lines = [
        *(
            f"message {one.entry_id[1:]} ({one.author}): not the user's: {_short(one.text)}"
            for one in found.foreign
        ),
        *(f"the newest summary speaks for the user: {_short(one.text)}" for one in found.claims),
        *(f"message {entry[1:]} is pinned by the file, and nobody typed it" for entry in found.pinned),
    ]
    for line in lines[:SHOWN]:
        page.line(f"  {line}", "due")
    if len(lines) > SHOWN:
        page.line(f"  … {len(lines) - SHOWN:,} more; --json has all")
    if found.claims:
        page.line("  The next compaction shows these as the model's remarks, or leaves them out.")


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"

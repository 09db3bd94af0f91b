"""`compactd doctor --authors`: shows who wrote the text in the role `user`, in one file or in all stored
sessions.
"""

from __future__ import annotations

import os

from compactd.cli.framework.exit_codes import DONE, FAILED, CommandError
from compactd.cli.framework.load_file import check_path, parse_file, read_bytes
from compactd.cli.framework.page import Page, one_line, plural
from compactd.cli.inspect.markup import clip_to
from compactd.core.history.entries import Item
from compactd.core.summary.authorship import Authorship, authorship
from compactd.storage.paths import data_folder

MAX_AUTHOR_LINES = 20
"""The most lines that are printed per session; `--json` lists all."""
LINE_CHARS = 100


def report(page: Page, file: str | None) -> int:
    """Print who wrote the text in the role `user`: in `file`, or in all stored sessions if it is None. Return
    `FAILED` if text was attributed to the user that the user did not write.
    """
    if file is not None:
        paths = [check_path(file)]
    else:
        paths = sorted((data_folder(os.environ) / "sessions").glob("*.jsonl"))
    told: list[dict[str, object]] = []
    changed = 0
    for path in paths:
        try:
            read = parse_file(path, read_bytes(path))
        except CommandError as stop:
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
        page.line(
            f"{plural(len(told), 'session')}, {changed} with text that was wrongly attributed to the user"
        )
    return FAILED if changed else DONE


def _draw(page: Page, name: str, found: Authorship) -> None:
    page.line(one_line(name))
    counts = ", ".join(f"{count} {author}" for author, count in found.stretches.items())
    page.line(f"  in the role user: {counts or 'nothing'}")
    lines = [
        *(
            f"message {one.entry_id[1:]} ({one.author}): not written by the user: "
            f"{clip_to(one.text, LINE_CHARS)}"
            for one in found.foreign
        ),
        *(
            f"the newest summary attributes to the user: {clip_to(one.text, LINE_CHARS)}"
            for one in found.claims
        ),
        *(f"message {entry[1:]} is pinned by the file, but nobody typed it" for entry in found.pinned),
    ]
    for line in lines[:MAX_AUTHOR_LINES]:
        page.line(f"  {line}", "due")
    if len(lines) > MAX_AUTHOR_LINES:
        page.line(f"  … {len(lines) - MAX_AUTHOR_LINES:,} more; --json lists all")
    if found.claims:
        page.line("  The next compaction shows these texts as remarks of the model, or leaves them out.")

"""Plants unique words (canaries) wherever a session holds text, and searches without compactd's code."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

LONG = "sk-live-Zq8vXw3Trn0Kd92"
SHORT = "48x1z"
"""A short canary. Some of its letters occur in no hash and no timestamp."""
BEYOND = "ключ-Жю42-é漢"
LINES = "first half 7x\nsecond half 9q"
SET = "set-Qm71Lp05"
"""A canary that is also in the system prompt and in a tool, which a redaction of messages leaves alone."""
ALL = f"The key is {LONG}, the pin {SHORT}, the word {BEYOND}, set by {SET}:\n{LINES}\nNever tell anybody."
SECRETS = (LONG, SHORT, BEYOND, LINES)


def held(home: Path, *secrets: str) -> dict[str, list[str]]:
    """Return for each secret the files that contain it: raw, as JSON writes it, decompressed, or in a row of
    a table."""
    files = [path for path in sorted(home.rglob("*")) if path.is_file()]
    assert files
    contents = {path: list(_contents(path)) for path in files}
    found: dict[str, list[str]] = {}
    for secret in secrets:
        spellings = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        # JSON in JSON, as a call's arguments may be.
        spellings |= {json.dumps(one)[1:-1] for one in spellings}
        wanted = [one.encode() for one in spellings]
        names = [
            str(path.relative_to(home))
            for path, datas in contents.items()
            if any(one in data for one in wanted for data in datas)
        ]
        if names:
            found[secret] = names
    return found


def _contents(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    yield data
    with suppress(zlib.error):
        yield zlib.decompress(data)
    if data.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(path)) as database:
            for (name,) in database.execute("select name from sqlite_master where type = 'table'").fetchall():
                for row in database.execute(f'select * from "{name}"').fetchall():
                    for value in row:
                        yield value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")

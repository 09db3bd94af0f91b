"""Find every file that contains a text: all files below the data folder, and the known copies outside it.

How a file is searched depends on its kind: journals record by record, the search index by its rows, snapshots
decompressed, other files as raw bytes. The text is searched in every spelling that it can have in JSON or in
JSON within JSON. Nothing is changed.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from compactd.storage.decode_journal import id_of
from compactd.storage.journal_records import scan
from compactd.storage.outside_copies import copies_of
from compactd.storage.paths import index_file
from compactd.storage.search_words import index_text
from compactd.storage.word_holders import Holder, files_with_holder

UNKNOWN: Final = "unknown"
"""The name in `TextPlace.where` for a file that no row of `HOLDERS` describes."""
_PACKS: Final = (".pack", ".idx")
_MAX_OBJECT_BYTES: Final = 64 << 20
"""The most bytes of a decompressed git object that are searched. Snapshots contain no file above 5 MiB."""


class TextPlace(Struct, frozen=True, kw_only=True):
    """A file, or a record in a file, that contains the text."""

    where: str
    """The kind of file: the name of a row of `HOLDERS`, `export`, `transcript` or `unknown`."""
    path: str
    session_id: str | None = None
    entry_id: str | None = None
    """The id of the message or compaction, or None if the record has no id."""
    record: str | None = None
    """The type of the journal record, or None if the text is not in a record of a journal."""


class Unseen(Struct, frozen=True, kw_only=True):
    """A file that could not be searched, or only in part."""

    path: str
    why: str


class TextFindings(Struct, frozen=True, kw_only=True):
    """The result of a search."""

    places: tuple[TextPlace, ...]
    unseen: tuple[Unseen, ...]
    files: int
    """The number of files that were looked at, including those in `unseen`."""


class _Record(Struct, frozen=True):
    type: str = ""
    id: str | None = None


_decode = msgspec.json.Decoder(_Record).decode


def byte_spellings(text: str) -> tuple[bytes, ...]:
    """Return `text` as UTF-8 and as it is spelled in JSON and in JSON within JSON, with and without
    escapes.
    """
    made = [text]
    for is_ascii in (False, True):
        once = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        made += [once, json.dumps(once, ensure_ascii=is_ascii)[1:-1]]
    # A journal that another program wrote may escape slashes.
    made += [one.replace("/", "\\/") for one in made]
    return tuple(dict.fromkeys(one.encode("utf-8", "surrogatepass") for one in made))


def find(home: Path, text: str) -> TextFindings:
    """Return every place that contains `text`, which must not be empty. `home` is the data folder. Blocks.
    O(bytes below `home`).
    """
    wanted = byte_spellings(text)
    places: list[TextPlace] = []
    unseen: list[Unseen] = []
    names: dict[str, str] = {}
    count = 0
    for path, holder in files_with_holder(home):
        count += 1
        try:
            places += _in_file(path, holder, wanted, unseen, names)
        except OSError as refused:
            unseen.append(Unseen(path=str(path), why=refused.strerror or "it could not be read"))
    places += _in_index(home, text, unseen)
    for session_id in dict.fromkeys(names.values()):
        for kind, copy in copies_of(home, session_id):
            count += 1
            try:
                if _contains_any(Path(copy).read_bytes(), wanted):
                    places.append(TextPlace(where=kind, path=copy, session_id=session_id))
            except OSError as refused:
                unseen.append(Unseen(path=copy, why=refused.strerror or "it could not be read"))
    return TextFindings(places=_name_sessions(places, names), unseen=tuple(unseen), files=count)


def _name_sessions(places: Sequence[TextPlace], names: dict[str, str]) -> tuple[TextPlace, ...]:
    """Return `places` without duplicates. A place gets a session id if its path contains the file name of a
    session; `names` maps these file names to session ids.
    """
    return tuple(
        msgspec.structs.replace(one, session_id=one.session_id or _session_of(one.path, names))
        for one in dict.fromkeys(places)
    )


def _session_of(path: str, names: dict[str, str]) -> str | None:
    return next(
        (names[part] for part in (p.partition(".")[0] for p in Path(path).parts) if part in names), None
    )


def _contains_any(data: bytes, wanted: Sequence[bytes]) -> bool:
    return any(one in data for one in wanted)


def _in_file(
    path: Path,
    holder: Holder | None,
    wanted: Sequence[bytes],
    unseen: list[Unseen],
    names: dict[str, str],
) -> Iterator[TextPlace]:
    where = UNKNOWN if holder is None else holder.name
    if path.is_symlink() or not path.is_file():
        unseen.append(Unseen(path=str(path), why="it is a link or not a regular file, and was not followed"))
        return
    data = path.read_bytes()
    if holder is not None and holder.kind == "journal":
        yield from _in_journal(path, where, data, wanted, names)
    elif _contains_any(data, wanted):
        yield TextPlace(where=where, path=str(path))
    elif holder is not None and holder.kind == "git":
        yield from _in_object(path, where, data, wanted, unseen)


def _in_journal(
    path: Path, where: str, data: bytes, wanted: Sequence[bytes], names: dict[str, str]
) -> Iterator[TextPlace]:
    found = scan(data)
    records = (*found.records, *(found.damage.after if found.damage is not None else ()))
    session_id = id_of(found.records[0]) if found.records else None
    if session_id is not None:
        names[path.name.partition(".")[0]] = session_id
    is_found = False
    for record in records:
        if _contains_any(bytes(record), wanted):
            is_found = True
            known = _decode(record)
            is_entry = known.type in ("message", "compaction", "prune", "reduced")
            yield TextPlace(
                where=where,
                path=str(path),
                session_id=session_id,
                entry_id=known.id if is_entry else None,
                record=known.type,
            )
    if not is_found and _contains_any(data, wanted):
        # The text is in a line that is not a whole record: cut off, or damaged.
        yield TextPlace(where=where, path=str(path), session_id=session_id)


def _in_object(
    path: Path, where: str, data: bytes, wanted: Sequence[bytes], unseen: list[Unseen]
) -> Iterator[TextPlace]:
    if path.suffix in _PACKS:
        unseen.append(
            Unseen(
                path=str(path),
                why="git has packed these objects into a pack file, and compactd does not search pack files",
            )
        )
        return
    if "objects" not in path.parts:
        return
    try:
        inflate = zlib.decompressobj()
        content = inflate.decompress(data, _MAX_OBJECT_BYTES)
        is_whole = inflate.eof
    except zlib.error:
        content, is_whole = b"", False
    if _contains_any(content, wanted):
        yield TextPlace(where=where, path=str(path))
    elif not is_whole:
        unseen.append(Unseen(path=str(path), why="it is an incomplete git object, or too large"))


def _in_index(home: Path, text: str, unseen: list[Unseen]) -> Iterator[TextPlace]:
    """Yield the rows of the search index that contain `text`. In the file, a text can be spread over several
    pages, so searching its bytes is not enough.
    """
    path = index_file(home / "sessions")
    if not path.exists():
        return
    asked = (
        "select session, entry from entries join journals on journals.number = entries.journal"
        " where instr(entries.text, ?) or instr(entries.text, ?)"
    )
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            for session_id, entry_id in database.execute(asked, (text, index_text(text))).fetchall():
                yield TextPlace(where="index", path=str(path), session_id=session_id, entry_id=entry_id)
    except (sqlite3.Error, UnicodeEncodeError) as refused:
        unseen.append(
            Unseen(path=str(path), why=f"the rows of the search index could not be read: {refused}")
        )

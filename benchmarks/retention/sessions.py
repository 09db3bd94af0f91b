"""Finds and reads the sessions that are measured."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.retention import agents
from benchmarks.retention.aside import source_of
from benchmarks.retention.atoms import Atom, Atoms
from benchmarks.retention.records import META, SUMMARY, Call, Record, Session
from compactd.formats.files import detect
from compactd.protocol.messages import Message, Text, ToolCall, ToolResult

REPOSITORY = Path(__file__).resolve().parents[2]
OWN = REPOSITORY / "examples" / "session.jsonl"
OWN_NAME = "compactd-session"
"""The project's own recording."""

COMMON_SOURCES = 3
"""An atom that so many unrelated sources show is commonplace."""


class Source(Struct, frozen=True):
    """A session file, not read yet."""

    name: str
    file: Path
    format: str
    """A name in `agents.FORMATS`; `neutral` for lines of the metric's own form; otherwise found from the
    file."""


def shared_data() -> Path | None:
    """Return the folder of recorded sessions: `COMPACTD_TEST_DATA`, otherwise `shared/data` next to the
    repository; None if it does not exist."""
    given = os.environ.get("COMPACTD_TEST_DATA")
    folder = Path(given) if given else REPOSITORY.parent / "shared" / "data"
    return folder if (folder / "sessions" / "MANIFEST.json").exists() else None


def sources(data: Path | None) -> list[Source]:
    """The sessions to measure, by name: of `data`, and the project's own."""
    found = {OWN_NAME: Source(OWN_NAME, OWN, "auto")}
    if data is not None:
        for path in (data / "more").glob("*.jsonl"):
            found[path.stem] = Source(path.stem, path, "neutral")
        for row in json.loads((data / "sessions" / "MANIFEST.json").read_bytes()):
            file = data / "sessions" / row["file"]
            if file.exists():
                found[row["name"]] = Source(row["name"], file, row["format"])
    return [found[name] for name in sorted(found)]


def read(source: Source) -> Session:
    """The session of a file. O(bytes). Raises what its reader raises where it is none."""
    if source.format == "neutral":
        return Session(source.name, tuple(_neutral(source.file)))
    if source.format in agents.FORMATS:
        return Session(source.name, agents.read(source.file, source.format))
    messages = [message for message, _ in detect.read(source.file).messages]
    return Session(source.name, tuple(records_of(messages)))


def _neutral(file: Path) -> Iterator[Record]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["type"] == "message":
                calls = row.get("tool_calls", ())
                yield Record(
                    at=row["i"],
                    role=row["role"],
                    text=row.get("text", ""),
                    calls=tuple(Call(c["id"], c["name"], c.get("arguments", {})) for c in calls),
                    kind=row.get("kind", ""),
                    call_id=row.get("tool_call_id", ""),
                    tool=row.get("tool_name", ""),
                    is_error=bool(row.get("is_error")),
                    time=agents.time_of(row.get("ts")),
                )


def records_of(messages: Iterable[Message]) -> Iterator[Record]:
    """Messages as the engine reads them, as records: one for each result, one for the rest of a message."""
    at = 0
    for message in messages:
        texts: list[str] = []
        calls: list[Call] = []
        for block in message.content:
            match block:
                case ToolResult(call_id=id, name=name, is_error=is_error):
                    yield Record(
                        at, "tool", _inside(block), call_id=id, tool=name or "", is_error=bool(is_error)
                    )
                    at += 1
                case ToolCall(call_id=id, name=name, arguments=raw):
                    calls.append(Call(id, name, json.loads(bytes(raw))))
                case Text(text=text):
                    texts.append(text)
        if texts or calls:
            meta = message.meta
            is_program = meta is not None and (meta.synthetic or meta.type)
            kind = "" if meta is None or not is_program else SUMMARY if meta.type == SUMMARY else META
            yield Record(at, message.role, "\n".join(texts), calls=tuple(calls), kind=kind)
            at += 1


def _inside(result: ToolResult) -> str:
    content = result.content
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content or () if isinstance(block, Text))


def atoms_in(session: Session) -> set[Atom]:
    """Every atom of a session, no folder taken off."""
    atoms = Atoms("")
    return set().union(*(atoms.of(record) for record in session.records))


def commonplace(by_name: Sequence[tuple[str, set[Atom]]]) -> frozenset[Atom]:
    """Atoms that unrelated sources share. `by_name`: each session's name and atoms."""
    shown: dict[Atom, set[str]] = {}
    for name, atoms in by_name:
        for atom in atoms:
            shown.setdefault(atom, set()).add(source_of(name))
    return frozenset(atom for atom, by in shown.items() if len(by) >= COMMON_SOURCES)

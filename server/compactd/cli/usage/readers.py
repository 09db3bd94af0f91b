"""Read what a session file reports, by the agent that wrote it.

Only lines that contain the name of a usage report are decoded, and only the fields that are needed. A file of
lines that has grown is read from where the last reading ended.
"""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, Protocol

import msgspec

from compactd.cli.usage.requests import FileUsage

BLOCK_BYTES = 4_194_304
"""How much of a file is in memory at a time, unless a line is longer."""

LINE_AGENTS = {"claude-code": "claude_code", "codex": "codex", "pi": "pi", "gemini-cli": "gemini_cli"}
"""Agents whose files have one record per line -> the module that reads them."""
DOCUMENT_AGENTS = {"opencode": "opencode", "cline": "cline", "aider": "aider"}
"""Agents whose files are one document -> the module that reads them."""
_CLINE_HISTORY = "api_conversation_history.json"
_CLINE_SCREEN = "ui_messages.json"
READABLE = (*LINE_AGENTS, *DOCUMENT_AGENTS)


class LineReader(Protocol):
    """Adds what one line reports to a `FileUsage`."""

    def line(self, line: bytes) -> None:
        """Read one line. Raise `msgspec.MsgspecError` if it is damaged."""
        ...


def read_usage(path: Path, agent: str, earlier: FileUsage | None = None) -> FileUsage:
    """Return what the file reports. `earlier` is what its first `earlier.read_bytes` bytes reported; only the
    bytes after them are read, and `earlier` is changed. O(bytes read). Raise `OSError` if it cannot be read.
    """
    usage = earlier or empty_usage(path, agent)
    if is_folder_session(path, agent):
        from compactd.cli.usage.opencode import read_folder

        try:
            read_folder(path, usage)
        except msgspec.MsgspecError:
            usage.unreadable += 1
        return usage
    if not is_lines(path, agent):
        read_document(path.read_bytes(), usage)
        return usage
    with path.open("rb", buffering=0) as file:
        file.seek(usage.read_bytes)
        _read_stream(file, usage)
    return usage


def empty_usage(path: Path, agent: str) -> FileUsage:
    """Return a usage without requests, with what the file's place says about the session."""
    return FileUsage(agent=agent, session_id=_session_of(path, agent), project=_project_of(path, agent))


def read_data(data: bytes, agent: str, name: str) -> FileUsage:
    """Return what a session file with the content `data` reports. `name` stands for the session's id if the
    file does not contain it. O(bytes).
    """
    usage = FileUsage(agent=agent, session_id=name)
    if agent in LINE_AGENTS and not (agent == "gemini-cli" and is_one_value(data)):
        _read_stream(BytesIO(data), usage)
    else:
        read_document(data, usage)
    return usage


def source_of(path: Path, agent: str) -> Path:
    """Return the file that has the usage of the session file `path`: for Cline's extension, the messages for
    the screen, if they are there, because they also have the costs and the deleted requests.
    """
    screen = path.with_name(_CLINE_SCREEN)
    return screen if agent == "cline" and path.name == _CLINE_HISTORY and screen.is_file() else path


def is_folder_session(path: Path, agent: str) -> bool:
    """Return whether the session is in many files, of which `path` is only the first: OpenCode's storage."""
    return agent == "opencode" and path.parent.parent.name == "session"


def is_lines(path: Path, agent: str) -> bool:
    """Return whether the file has one record per line."""
    return agent in LINE_AGENTS and not (agent == "gemini-cli" and path.suffix == ".json")


def read_document(data: bytes, usage: FileUsage) -> None:
    """Add what a file that is one document reports to `usage`."""
    try:
        if usage.agent in DOCUMENT_AGENTS:
            import_module(f"compactd.cli.usage.{DOCUMENT_AGENTS[usage.agent]}").read(data, usage)
        else:
            import_module(f"compactd.cli.usage.{LINE_AGENTS[usage.agent]}").Reader(usage).line(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        usage.unreadable += 1


def _read_stream(file: IO[bytes], usage: FileUsage) -> None:
    """Add what the lines of `file` report to `usage`, from the place at which the file is."""
    module = import_module(f"compactd.cli.usage.{LINE_AGENTS[usage.agent]}")
    reader: LineReader = module.Reader(usage)
    marks: tuple[bytes, ...] = module.MARKS
    pieces: list[bytes] = []
    while block := file.read(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        pieces.append(block)
        if not end:
            continue
        data = b"".join(pieces)
        size = len(data) - len(block) + end
        _read_lines(reader, marks, data, size, usage)
        usage.read_bytes += size
        pieces = [block[end:]]
    rest = b"".join(pieces)
    if rest.rstrip().endswith(b"}"):
        # The last line has no end yet. Reading it again later changes nothing, as its key is known by then.
        unreadable = usage.unreadable
        _read_lines(reader, marks, rest, len(rest), usage)
        usage.unreadable = unreadable


def _read_lines(
    reader: LineReader, marks: tuple[bytes, ...], data: bytes, end: int, usage: FileUsage
) -> None:
    """Give each line of `data[:end]` that contains a mark to the reader."""
    if len(marks) == 1:
        mark = marks[0]
        at = data.find(mark, 0, end)
        while at >= 0:
            stop = data.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            _read_line(reader, data[data.rfind(b"\n", 0, at) + 1 : stop], usage)
            at = data.find(mark, stop, end)
        return
    places = [data.find(mark, 0, end) for mark in marks]
    while (at := min((place for place in places if place >= 0), default=-1)) >= 0:
        stop = data.find(b"\n", at, end)
        stop = end if stop < 0 else stop
        _read_line(reader, data[data.rfind(b"\n", 0, at) + 1 : stop], usage)
        places = [
            data.find(mark, stop, end) if 0 <= place < stop else place
            for mark, place in zip(marks, places, strict=True)
        ]


def _read_line(reader: LineReader, line: bytes, usage: FileUsage) -> None:
    try:
        reader.line(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        usage.unreadable += 1


def _session_of(path: Path, agent: str) -> str:
    """Return the session's id that the file's place tells."""
    is_task = agent == "cline" and path.name in (_CLINE_HISTORY, _CLINE_SCREEN)
    return path.parent.name if is_task else path.stem


def _project_of(path: Path, agent: str) -> str:
    """Return the folder that the file's place tells; empty if it tells none."""
    if agent == "cline":
        return _cline_folder(path)
    if agent != "gemini-cli" or path.parent.name != "chats":
        return ""
    project = path.parent.parent
    try:
        return (project / ".project_root").read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return project.name


def _cline_folder(path: Path) -> str:
    """Return the `cwd` in the file that Cline's command line writes next to a session's messages."""
    about = path.with_name(f"{path.parent.name}.json")
    try:
        found = msgspec.json.decode(about.read_bytes(), type=dict[str, msgspec.Raw])
        return msgspec.json.decode(found.get("cwd", b'""'), type=str)
    except (OSError, msgspec.MsgspecError):
        return ""


def is_one_value(data: bytes) -> bool:
    """Return whether `data` is one JSON document, not one record per line."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def agent_of(data: bytes) -> str | None:
    """Return the agent that wrote a session file with the content `data`; None if it is unknown."""
    from compactd.formats.files.detect import detect

    # Cline's messages for the screen are no conversation, so the session formats do not include them.
    if data.lstrip()[:1] == b"[" and b'"api_req_started"' in data:
        return "cline"
    return detect(data)

"""From a session file to a session in a daemon: read, mend what no daemon takes, hand it over."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd import __version__
from compactd.cli.ending import USAGE, Stop
from compactd.cli.journal import read_journal
from compactd.cli.page import plural
from compactd.client import Client
from compactd.core.entries import is_summary
from compactd.errors import CompactdError, FormatNotSupported, LimitExceeded
from compactd.formats.detect import NAMES, read
from compactd.formats.gathering import gathered
from compactd.formats.mending import mended, split_prompt
from compactd.formats.session_file import Line, SessionFile
from compactd.formats.source import FILE_BYTES, bytes_of, too_large
from compactd.rpc.wire import AppendResult, StartResult

BATCH_BYTES = 8_000_000
"""Of one append: far below the daemon's limit for a frame."""

TIMEOUT_S = 600.0
"""Of one request: a session file may be very large."""

KNOWN = """\
Known are session files of Claude Code, pi, Codex CLI, Gemini CLI, Cline, OpenCode,
SWE-agent, mini-swe-agent, OpenHands, aider, klaude, Opal and compactd, and messages
in OpenAI's, Anthropic's, Gemini's or the neutral shape, as a list or one a line."""


class Conversation(Struct, frozen=True, kw_only=True):
    """A session file that was read, as it is handed to a daemon."""

    format: str
    name: str
    """Its session's id, shortened where that is long; else the file's name."""
    session_id: str | None
    title: str | None
    model: str | None
    messages: tuple[Line, ...]
    """All of them, oldest first, without a leading system prompt."""
    live: tuple[Line, ...]
    """Those that are still in the context: from the last summary on; of our own journals, the view."""
    live_numbers: tuple[int, ...]
    """Of each of `live`, its place in `messages` counted from 1; 0 for a summary of ours."""
    system_prompt: str | None
    tools: tuple[Raw, ...]
    working_dir: str | None
    compactions: int
    compacted_after: tuple[int, ...]
    """Numbers of the messages after which one happened, where no summary stands among `messages`."""
    context_window: int | None
    """Where the file tells what its session was given."""
    warnings: tuple[str, ...]


def checked(path: str) -> Path:
    """`path`, if it could be a session file; `-` is standard input. Raises `Stop`."""
    file = Path("/dev/stdin") if path == "-" else Path(path)
    try:
        mode = file.stat().st_mode
    except FileNotFoundError as error:
        raise Stop(f"cannot read {path}: there is no such file.", hint=KNOWN, exit_code=USAGE) from error
    except OSError as error:
        raise Stop(f"cannot read {path}: {error.strerror}.", hint=KNOWN, exit_code=USAGE) from error
    if stat.S_ISDIR(mode):
        raise Stop(f"cannot read {path}: it is a folder.", hint=f"Give a file.\n{KNOWN}", exit_code=USAGE)
    return file


def bytes_at(path: Path) -> bytes:
    """What a session file holds, or a pipe until it ends. Raises `Stop`, for one that is too large too."""
    try:
        if path.is_file():
            return gathered(path, bytes_of(path))
        with path.open("rb") as stream:
            data = stream.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise too_large(str(path), len(data))
        return data
    except OSError as error:
        raise Stop(
            f"cannot read {path}: {error.strerror}.", hint="Check its permissions, or copy it."
        ) from error
    except LimitExceeded as error:
        raise Stop(f"{error.message}.", hint="Cut it, or give a part of it.", code=error.code) from error
    except CompactdError as error:
        told = error.message.removeprefix(f"{path} cannot be read: ").removesuffix(" - at `$.path`")
        raise Stop(f"cannot read {path}: {told}.", hint="Check its permissions, or copy it.") from error


def file_in(path: Path, data: bytes, format: str = "auto") -> SessionFile:
    """The session in `data`, which stood at `path`. Raises `Stop` where there is none."""
    if not data.strip():
        raise Stop(f"{path} is empty.", hint=KNOWN)
    if b"".join(data[:16].split()) in (b"[]", b"{}"):
        raise Stop(f"{path} holds no messages.", hint=KNOWN)
    try:
        file = read(data, format)
    except FormatNotSupported as error:
        what = "it looks binary" if b"\0" in data[:8192] else error.message.partition(";")[0]
        what = what.replace("this file's format", "its format")
        raise Stop(f"cannot read {path}: {what}.", hint=KNOWN, code=error.code, data=error.data) from error
    except CompactdError as error:
        raise Stop(f"cannot read {path}: {error.message}.", hint=KNOWN, code=error.code) from error
    if not file.messages:
        raise Stop(f"{path} holds no messages.", hint=KNOWN)
    return file


def load(path: Path) -> Conversation:
    """The conversation in a session file. Raises `Stop` where there is none."""
    data = bytes_at(path)
    file = file_in(path, data)
    conversation = _conversation(path, file)
    journal = read_journal(data) if file.format == "compactd" else None
    if journal is None:
        return conversation
    return replace(
        conversation,
        messages=journal.messages,
        live=journal.live,
        live_numbers=journal.live_numbers,
        system_prompt=journal.system_prompt,
        tools=journal.tools,
        compacted_after=journal.compacted_after,
        context_window=journal.context_window,
    )


def _conversation(path: Path, file: SessionFile) -> Conversation:
    prompt, messages = split_prompt(file)
    warnings: list[str] = []
    lines = tuple(mended(messages, warnings))
    live = _live(file, lines, len(file.messages) - len(lines))
    return Conversation(
        format=file.format,
        name=_shortened(file.session_id) if file.session_id else path.name,
        session_id=file.session_id,
        title=file.title,
        model=file.model,
        messages=lines,
        live=tuple(lines[place] for place in live),
        live_numbers=tuple(place + 1 for place in live),
        system_prompt=prompt,
        tools=file.tools,
        working_dir=file.working_dir,
        compactions=file.compactions,
        compacted_after=(),
        context_window=None,
        warnings=(*file.warnings, *warnings),
    )


def _live(file: SessionFile, lines: Sequence[Line], lifted: int) -> list[int]:
    """The places of the messages that the next request holds: the last summary, what stayed, what followed.

    `lifted`: messages at the file's beginning that are not among `lines`.
    """
    last = max((at for at, (message, _) in enumerate(lines) if is_summary(message)), default=-1)
    if last < 0:
        return list(range(len(lines)))
    kept = dict(file.first_kept).get(last + lifted, last + lifted) - lifted
    pinned = [at - lifted for at in dict(file.pinned).get(last + lifted, ()) if at >= lifted]
    return [last, *pinned, *range(max(0, kept), last), *range(last + 1, len(lines))]


def _shortened(session_id: str) -> str:
    """The first part of a UUID, as people tell sessions apart; other ids as they are."""
    parts = session_id.split("-")
    return parts[0] if [len(part) for part in parts] == [8, 4, 4, 4, 12] else session_id


class Fed(Struct, frozen=True, kw_only=True):
    """A conversation in a daemon."""

    session_id: str
    started: StartResult
    entry_ids: tuple[str, ...]
    """Of each message."""


def feed(
    client: Client,
    conversation: Conversation,
    *,
    model: str | None,
    window: int | None,
    live_only: bool = False,
) -> Fed:
    """Starts a session that is kept in memory alone, and appends the messages.

    `model` and `window` (tokens) replace what the file says. `live_only`: no messages that were compacted
    away before.
    """
    started = begin(client, conversation, model=model, window=window)
    lines = conversation.live if live_only else conversation.messages
    entry_ids = append(client, started.session_id, lines)
    return Fed(session_id=started.session_id, started=started, entry_ids=entry_ids)


def begin(
    client: Client, conversation: Conversation, *, model: str | None, window: int | None
) -> StartResult:
    """Starts a session that is kept in memory alone, without its messages; see `feed`."""
    return client.ask(
        "session/start",
        {
            "persist": False,
            "model": model or conversation.model,
            "context_window": window or conversation.context_window,
            "system_prompt": conversation.system_prompt,
            "tools": conversation.tools or None,
            # Not the folder that the file names: its settings, which the user may trust, are not this file's.
            "title": conversation.title,
            "client": {"name": "compactd command line", "version": __version__},
        },
        StartResult,
        timeout_s=TIMEOUT_S,
    )


def append(client: Client, session_id: str, lines: Sequence[Line]) -> tuple[str, ...]:
    """Hands messages over; the id of each one's entry."""
    entry_ids: list[str] = []
    for batch in _batches(lines):
        params = {"session_id": session_id, "messages": batch}
        entry_ids += client.ask("session/append", params, AppendResult, timeout_s=TIMEOUT_S).entry_ids
    return tuple(entry_ids)


def _batches(lines: Sequence[Line]) -> Iterator[list[Raw]]:
    batch: list[Raw] = []
    size = 0
    for _, raw in lines:
        size_bytes = len(memoryview(raw))
        if batch and size + size_bytes > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(raw)
        size += size_bytes
    if batch:
        yield batch


def about(conversation: Conversation, *, in_context: bool = False) -> str:
    """What the file is, in one line. `in_context`: also how many of its messages the context holds."""
    count = plural(len(conversation.messages), "message")
    if in_context and len(conversation.live) != len(conversation.messages):
        count = f"{count}, {len(conversation.live):,} in context"
    parts = [conversation.name, NAMES.get(conversation.format, conversation.format), count]
    if conversation.compactions:
        parts.append(plural(conversation.compactions, "earlier compaction"))
    return " · ".join(parts)


def facts_of(conversation: Conversation) -> dict[str, object]:
    """The same for `--json`."""
    return {
        "id": conversation.session_id,
        "format": conversation.format,
        "title": conversation.title,
        "model": conversation.model,
        "messages": len(conversation.messages),
        "compactions": conversation.compactions,
    }

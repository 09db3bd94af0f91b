"""From a session file to a session in a daemon: read, mend what no daemon takes, hand it over."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd import __version__
from compactd.cli.framework.exit_codes import USAGE, Stop
from compactd.cli.framework.page import plural
from compactd.cli.inspect.journal_report import read_journal
from compactd.client import Client
from compactd.core.budget.profiles import DEFAULT_WINDOW
from compactd.core.budget.recorded_window import (
    NOTHING_RECORDED,
    Evidence,
    Recorded,
    accepted_sizes,
    window_by_file,
)
from compactd.formats.files.detect import NAMES, read
from compactd.formats.files.directory_session import gathered
from compactd.formats.files.repair import mended, split_prompt
from compactd.formats.files.session_file import Line, SessionFile, live_places
from compactd.formats.files.source import FILE_BYTES, bytes_of, too_large
from compactd.protocol.errors import CompactdError, FormatNotSupported, LimitExceeded
from compactd.protocol.wire import AppendResult, LookupResult, StartResult

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
    evidence: tuple[Evidence, ...]
    """What the file tells of the window of `model`."""
    accepted: tuple[int, ...]
    """The sizes of the requests that `model` answered, by its reports in the file. Tokens."""
    recorded: Recorded | None = None
    """Of our own journals: what they keep of the window that an imported file showed."""
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
    return loaded(path, data, file_in(path, data))


def loaded(path: Path, data: bytes, file: SessionFile) -> Conversation:
    """The conversation in `data`, which was read as `file`."""
    conversation = conversation_of(path, file)
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
        evidence=(),
        accepted=(),
        recorded=journal.recorded,
    )


def conversation_of(path: Path, file: SessionFile) -> Conversation:
    """The session that was read from `path`, as it is handed to a daemon."""
    prompt, messages = split_prompt(file)
    warnings: list[str] = []
    lines = tuple(mended(messages, warnings))
    lifted = len(file.messages) - len(lines)
    live = live_places(
        [message for message, _ in lines],
        {at - lifted: kept - lifted for at, kept in file.first_kept},
        {at - lifted: [place - lifted for place in places] for at, places in file.pinned},
    )
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
        evidence=file.evidence,
        accepted=tuple(accepted_sizes(message for message, _ in file.messages[file.model_from :])),
        warnings=(*file.warnings, *warnings),
    )


def _shortened(session_id: str) -> str:
    """The first part of a UUID, as people tell sessions apart; other ids as they are."""
    parts = session_id.split("-")
    return parts[0] if [len(part) for part in parts] == [8, 4, 4, 4, 12] else session_id


class Begun(Struct, frozen=True, kw_only=True):
    """A session in a daemon, without messages."""

    started: StartResult
    recorded: Recorded
    """What the file tells of its window."""

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.started.session_id

    @property
    def warnings(self) -> tuple[str, ...]:
        """What starting it told, and what of the file's window is not believed."""
        return (*self.started.warnings, *self.recorded.doubts)


class Fed(Struct, frozen=True, kw_only=True):
    """A conversation in a daemon."""

    session_id: str
    begun: Begun
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
    begun = begin(client, conversation, model=model, window=window)
    lines = conversation.live if live_only else conversation.messages
    entry_ids = append(client, begun.session_id, lines)
    return Fed(session_id=begun.session_id, begun=begun, entry_ids=entry_ids)


def begin(client: Client, conversation: Conversation, *, model: str | None, window: int | None) -> Begun:
    """Starts a session that is kept in memory alone, without its messages; see `feed`.

    Its window is the one that is given, or what the file shows (`core/budget/recorded_window.py`), or what is
    known of the model.
    """
    given = window or conversation.context_window
    recorded = NOTHING_RECORDED
    if given is None and model in (None, conversation.model):
        evidence, accepted = conversation.evidence, conversation.accepted
        recorded = conversation.recorded or recorded_of(client, conversation.model, evidence, accepted)
    started = client.ask(
        "session/start",
        {
            "persist": False,
            "model": model or conversation.model,
            "context_window": given or recorded.window,
            "system_prompt": conversation.system_prompt,
            "tools": conversation.tools or None,
            # Not the folder that the file names: its settings, which the user may trust, are not this file's.
            "title": conversation.title,
            "client": {"name": "compactd command line", "version": __version__},
        },
        StartResult,
        timeout_s=TIMEOUT_S,
    )
    return Begun(started=started, recorded=recorded)


def recorded_of(
    client: Client, model: str | None, evidence: Sequence[Evidence], accepted: Sequence[int]
) -> Recorded:
    """What a session's file tells of its window, beside what is known of its model."""
    found = None if model is None else client.ask("models/lookup", {"model": model}, LookupResult)
    return recorded_beside(found, evidence, accepted)


def recorded_beside(
    found: LookupResult | None, evidence: Sequence[Evidence], accepted: Sequence[int]
) -> Recorded:
    """The same, beside what was `found` of the model; none if no model is named."""
    if found is None or found.confidence == "guess":
        guess = DEFAULT_WINDOW if found is None else found.context_window
        return window_by_file(evidence, accepted, None, guess)
    recorded = window_by_file(evidence, accepted, found.context_window)
    if recorded.window is None or recorded.window == found.context_window:
        return recorded
    against = f"{found.source.partition(':')[0]} says {found.context_window:,} ({found.confidence})"
    return replace(recorded, source=f"{recorded.source}; {against}")


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

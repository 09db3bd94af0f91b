"""Load a session file into a daemon: read it, repair what a daemon rejects, and append its messages."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill

from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd import __version__
from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.exit_codes import USAGE, CommandError
from compactd.cli.framework.page import ask_for_text, plural
from compactd.cli.inspect.journal_report import with_journal
from compactd.client import Client
from compactd.core.budget.profiles import DEFAULT_WINDOW
from compactd.core.budget.recorded_window import (
    NOTHING_RECORDED,
    Evidence,
    Recorded,
    accepted_sizes,
    window_by_file,
)
from compactd.formats.files.detect import read
from compactd.formats.files.directory_session import gather
from compactd.formats.files.repair import split_prompt, with_reports
from compactd.formats.files.session_file import MessageLine, SessionFile, live_places
from compactd.formats.files.session_formats import SESSION_FORMATS, title_of
from compactd.formats.files.source import FILE_BYTES, read_source, too_large
from compactd.protocol.errors import CompactdError, FormatNotSupported, LimitExceeded
from compactd.protocol.wire import LookupResult, StartResult

BATCH_BYTES = 8_000_000
"""The largest total size in bytes of the messages in one `session/append`. It is far below the daemon's limit
for a frame.
"""

TIMEOUT_S = 600.0
"""Timeout of one request, in seconds. A session file may be very large."""

MAX_NAMES_COMPARED = 1000
"""How many names of a folder are compared with the name of a file that does not exist."""

SUPPORTED_FILES_HINT = fill(
    f"compactd reads session files of {', '.join(row.title for row in SESSION_FORMATS[1:] if row.reader)} "
    "and compactd. It also reads messages in the format of OpenAI, Anthropic or Gemini, or in compactd's "
    "neutral format, as a JSON list or as one message per line.",
    79,
)


_STANDARD_INPUT = Path("/dev/stdin")


def check_path(path: str) -> Path:
    """Return the path of a session file. `-` is standard input. Raise `CommandError` if there is no such
    file."""
    file = _STANDARD_INPUT if path == "-" else Path(path)
    try:
        mode = file.stat().st_mode
    except FileNotFoundError as error:
        raise CommandError(
            f"cannot read {path}: there is no such file.", hint=_similar_name(file), exit_code=USAGE
        ) from error
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}.", exit_code=USAGE) from error
    if stat.S_ISDIR(mode):
        raise CommandError(f"cannot read {path}: it is a folder.", hint="Give a file.", exit_code=USAGE)
    return file


def _similar_name(missing: Path) -> str:
    """Return a hint that names the file in the same folder whose name is most like that of `missing`; empty
    if none is like it.
    """
    from difflib import get_close_matches

    try:
        names = [one.name for one in missing.parent.iterdir() if not one.is_dir()]
    except OSError:
        return ""
    near = get_close_matches(missing.name, names[:MAX_NAMES_COMPARED], n=1)
    return f"Did you mean {missing.with_name(near[0])}?" if near else ""


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a session file, or of a pipe until it ends.

    Raise `CommandError` if the file cannot be read or is larger than `FILE_BYTES`.
    """
    try:
        if path.is_file():
            return gather(path, read_source(path))
        if path == _STANDARD_INPUT:
            ask_for_text()
        with path.open("rb") as stream:
            data = stream.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise too_large(str(path), len(data))
        return data
    except OSError as error:
        raise CommandError(
            f"cannot read {path}: {error.strerror}.", hint="Check its permissions, or copy it."
        ) from error
    except LimitExceeded as error:
        raise CommandError(
            f"{error.message}.", hint="Split the file, or give only a part of it.", code=error.code
        ) from error
    except CompactdError as error:
        told = error.message.removeprefix(f"{path} cannot be read: ").removesuffix(" - at `$.path`")
        raise CommandError(
            f"cannot read {path}: {told}.", hint="Check its permissions, or copy it."
        ) from error


def parse_file(path: Path, data: bytes, format: str = "auto") -> SessionFile:
    """Parse `data`, the contents of `path`, as a session file. Raise `CommandError` if it contains no
    session."""
    if not data.strip():
        raise CommandError(f"{path} is empty.", hint=SUPPORTED_FILES_HINT)
    if b"".join(data[:16].split()) in (b"[]", b"{}"):
        raise CommandError(f"{path} contains no messages.", hint=SUPPORTED_FILES_HINT)
    try:
        file = read(data, format)
    except FormatNotSupported as error:
        what = "it looks binary" if b"\0" in data[:8192] else error.message.partition(";")[0]
        what = what.replace("this file's format", "its format")
        raise CommandError(
            f"cannot read {path}: {what}.", hint=SUPPORTED_FILES_HINT, code=error.code, data=error.data
        ) from error
    except CompactdError as error:
        raise CommandError(
            f"cannot read {path}: {error.message}.", hint=SUPPORTED_FILES_HINT, code=error.code
        ) from error
    if not file.messages:
        raise CommandError(f"{path} contains no messages.", hint=SUPPORTED_FILES_HINT)
    return file


def load(path: Path) -> LoadedConversation:
    """Read and parse a session file. Raise `CommandError` if it contains no session."""
    data = read_bytes(path)
    return load_session(path, data, parse_file(path, data))


def load_session(path: Path, data: bytes, file: SessionFile) -> LoadedConversation:
    """Return the conversation of `file`, which was parsed from `data`, the contents of `path`: the repaired
    messages, and those of them that are still in the context. For a compactd journal, messages, context and
    window come from the journal's own entries.
    """
    prompt, messages = split_prompt(file)
    warnings: list[str] = []
    lines = tuple((message, raw) for message, raw, _ in with_reports(messages, warnings))
    lifted = len(file.messages) - len(lines)
    live = live_places(
        [message for message, _ in lines],
        {at - lifted: kept - lifted for at, kept in file.first_kept},
        {at - lifted: [place - lifted for place in places] for at, places in file.pinned},
    )
    conversation = LoadedConversation(
        format=file.format,
        name=_short_id(file.session_id) if file.session_id else path.name,
        session_id=file.session_id,
        title=file.title,
        model=file.model,
        messages=lines,
        entry_ids=tuple(f"e{number}" for number in range(1, len(lines) + 1)),
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
    return with_journal(conversation, data) if file.format == "compactd" else conversation


def _short_id(session_id: str) -> str:
    """Return the first part of a UUID; other ids unchanged."""
    parts = session_id.split("-")
    return parts[0] if [len(part) for part in parts] == [8, 4, 4, 4, 12] else session_id


class DaemonSession(Struct, frozen=True, kw_only=True):
    """A session that was started in a daemon."""

    started: StartResult
    recorded: Recorded
    """What the file shows about the session's window."""

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.started.session_id

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of `session/start`, and the numbers in the file about its window that are not
        believed, with the reason.
        """
        return (*self.started.warnings, *self.recorded.doubts)


def append_conversation(
    client: Client,
    conversation: LoadedConversation,
    *,
    model: str | None,
    window: int | None,
    live_only: bool = False,
) -> DaemonSession:
    """Start a session that is kept in memory only, append the messages, and return the session.

    `model` and `window` (tokens) replace what the file says. With `live_only`, only the messages that are
    still in the context are appended.
    """
    begun = start_session(client, conversation, model=model, window=window)
    append(client, begun.session_id, conversation.live if live_only else conversation.messages)
    return begun


def start_session(
    client: Client, conversation: LoadedConversation, *, model: str | None, window: int | None
) -> DaemonSession:
    """Start a session that is kept in memory only, and append nothing yet. `append_conversation` also appends
    the messages.

    The session's window is `window` if given, otherwise the one that the file shows
    (`core/budget/recorded_window.py`), otherwise the model's registered window.
    """
    given = window or conversation.context_window
    recorded = NOTHING_RECORDED
    if given is None and model in (None, conversation.model):
        recorded = conversation.recorded or _recorded(client, conversation)
    started = client.session_start(
        persist=False,
        model=model or conversation.model,
        context_window=given or recorded.window,
        system_prompt=conversation.system_prompt,
        tools=conversation.tools or None,
        # No `working_dir`: the folder that the file names may have trusted settings, and those are not meant
        # for this file.
        title=conversation.title,
        client={"name": "compactd command line", "version": __version__},
        timeout_s=TIMEOUT_S,
    )
    return DaemonSession(started=started, recorded=recorded)


def _recorded(client: Client, conversation: LoadedConversation) -> Recorded:
    model = conversation.model
    found = None if model is None else client.models_lookup(model=model)
    return recorded_with_lookup(found, conversation.evidence, conversation.accepted)


def recorded_with_lookup(
    found: LookupResult | None, evidence: Sequence[Evidence], accepted: Sequence[int]
) -> Recorded:
    """Return what a session's file shows about its window, compared with `found`, the daemon's answer to
    `models/lookup`; None if the session names no model. `evidence` and `accepted` are the fields of
    `LoadedConversation`.
    """
    if found is None or found.confidence == "guess":
        guess = DEFAULT_WINDOW if found is None else found.context_window
        return window_by_file(evidence, accepted, None, guess)
    recorded = window_by_file(evidence, accepted, found.context_window)
    if recorded.window is None or recorded.window == found.context_window:
        return recorded
    against = f"{found.source.partition(':')[0]} says {found.context_window:,} ({found.confidence})"
    return replace(recorded, source=f"{recorded.source}; {against}")


def append(client: Client, session_id: str, lines: Sequence[MessageLine]) -> tuple[str, ...]:
    """Append messages in batches. Return the entry id of each."""
    entry_ids: list[str] = []
    for batch in _batches(lines):
        done = client.session_append(session_id=session_id, messages=batch, timeout_s=TIMEOUT_S)
        entry_ids += done.entry_ids
    return tuple(entry_ids)


def _batches(lines: Sequence[MessageLine]) -> Iterator[list[Raw]]:
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


def describe(conversation: LoadedConversation, *, in_context: bool = False) -> str:
    """Describe the file in one line. With `in_context`, also say how many messages are in the context."""
    count = plural(len(conversation.messages), "message")
    if in_context and len(conversation.live) != len(conversation.messages):
        count = f"{count}, {len(conversation.live):,} in context"
    parts = [conversation.name, title_of(conversation.format), count]
    if conversation.compactions:
        parts.append(plural(conversation.compactions, "earlier compaction"))
    return " · ".join(parts)


def session_facts(conversation: LoadedConversation) -> dict[str, object]:
    """Return the description of the file for `--json`."""
    return {
        "id": conversation.session_id,
        "format": conversation.format,
        "title": conversation.title,
        "model": conversation.model,
        "messages": len(conversation.messages),
        "compactions": conversation.compactions,
    }

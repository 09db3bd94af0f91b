"""The session of compactd that follows a stored transcript: made when that is to be loaded compacted.

The session keeps the compaction. So the next load begins with the same summary, which a provider's cache
knows, until the session is too large again.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from compactd.client import Client, Json
from compactd.formats.agents.claude_code import read
from compactd.formats.files.session_file import SessionFile, live_places
from compactd.integrations.frameworks.claude_agent_sdk import live_chain
from compactd.integrations.frameworks.claude_agent_sdk.compacted_entries import Conversation
from compactd.integrations.frameworks.engine import CompactdWarning, Engine, SessionOptions, engine_of
from compactd.integrations.frameworks.history import History, NeutralMessage, Setup
from compactd.integrations.frameworks.mirror import Mirror
from compactd.storage import files

if TYPE_CHECKING:
    from compactd.integrations.frameworks.claude_agent_sdk.store import CompactdSessionStore

CLIENT: Final = "claude-agent-sdk"
MARK: Final = ".mirrored"
"""The ending of the file next to a transcript that says that compactd has a session with its messages."""
USUAL_WINDOW: Final = 200_000
"""The window that counts if compactd does not know the model."""
COMPACT_S: Final = 30.0
"""The most seconds for a compaction: the SDK waits 60 seconds for `load`."""
MIN_PART: Final = 500


def compacted(entries: list[Any], path: Path, store: CompactdSessionStore) -> list[Any]:
    """Return the entries of the transcript at `path` as `store` wants them loaded: compacted if they are too
    large, otherwise untouched. If the daemon cannot help, warn once and return them untouched. O(their text).
    """
    live = live_chain.live_places(entries)
    lines = [json.dumps(entries[at]).encode() + b"\n" for at in live]
    limit = store.compact_on_load
    if isinstance(limit, int) and sum(map(len, lines)) <= limit:
        return entries  # A token has at least one byte.
    engine = engine_of(store.command)
    found = engine.attempt(lambda _: _compacted(entries, live, b"".join(lines), path, store, engine))
    return entries if found is None else found


def _compacted(
    entries: list[Any],
    live: Sequence[int],
    data: bytes,
    path: Path,
    store: CompactdSessionStore,
    engine: Engine,
) -> list[Any] | None:
    file = read(data)
    messages = [message for message, _ in file.messages]
    places = live_places(messages, dict(file.first_kept), dict(file.pinned))
    if not places:
        return None
    bodies = [_body(bytes(file.messages[place][1])) for place in places]
    history = History([msgspec.json.encode(body) for body in bodies], lambda at: dict(bodies[at]))
    model = file.model if file.model is None or "/" in file.model else f"anthropic/{file.model}"
    setup = Setup(model=model, context_window=store.context_window, fallback_window=USUAL_WINDOW)
    options = SessionOptions(
        client=CLIENT, compaction=settings_of(store), working_dir=_folder(file), compact_s=COMPACT_S
    )
    if not _mark(path).exists():
        os.close(files.open_private(_mark(path), files.APPEND | os.O_CREAT))
    mirror = Mirror(engine, name_of(path), options)
    try:
        view = mirror.prepare(history, setup)
    finally:
        mirror.close()
    if view is None:
        return None
    if view.is_whole:
        return entries
    conversation = Conversation(entries, live, file, [messages[place] for place in places])
    return conversation.shown(view.items)


def settings_of(store: CompactdSessionStore) -> Mapping[str, Json]:
    """Return the settings with which the session of `store` is compacted."""
    limit = store.compact_on_load
    if isinstance(limit, int):
        part = max(MIN_PART, limit // 3)
        sizes: dict[str, Json] = {
            "model_auto_compact_token_limit": limit,
            "keep_recent_tokens": part,
            "summary_tokens": part,
        }
        return {**sizes, **store.compaction}
    return {"threshold_ratio": store.compact_share, **store.compaction}


def name_of(path: Path) -> str:
    """Return the id of the session that follows the transcript at `path`."""
    session = path.stem.rpartition("-")[0]
    # The same session id may be in several projects and folders.
    place = blake2b(str(path).encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return f"{CLIENT}:{session}:{place}"


def forget(path: Path, command: tuple[str, ...] | None) -> None:
    """Delete the session that follows the transcript at `path`. If that fails, warn."""
    mark, name = _mark(path), name_of(path)
    if not mark.exists():
        return

    def deleted(client: Client) -> None:
        for session in client.session_list().sessions:
            if session.session_id == name or session.session_id.startswith(f"{name}:"):
                client.session_delete(session_id=session.session_id)

    try:
        engine_of(command).demand(deleted)
    except Exception as error:
        warnings.warn(
            f"compactd: {error}. A copy of the deleted session may be left. "
            f"`compactd sessions delete {name}` deletes it.",
            CompactdWarning,
            stacklevel=2,
        )
    with contextlib.suppress(FileNotFoundError):
        mark.unlink()


def _mark(path: Path) -> Path:
    return path.with_suffix(MARK)


def _folder(file: SessionFile) -> str | None:
    folder = file.working_dir
    return folder if folder and Path(folder).is_absolute() and Path(folder).is_dir() else None


def _body(raw: bytes) -> NeutralMessage:
    """Return a message without what is not part of the conversation: its id, time and usage report."""
    body: NeutralMessage = msgspec.json.decode(raw)
    for name in ("id", "usage", "created_at", "stop_reason"):
        body.pop(name, None)
    return body

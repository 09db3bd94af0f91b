"""`CompactdSessionStore`, the SDK's `SessionStore` on this machine's disk."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import anyio
import anyio.to_thread
from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from compactd.integrations.frameworks.claude_agent_sdk.keys import (
    TRANSCRIPT,
    Key,
    project_folder,
    subagents_folder,
    transcript_path,
)
from compactd.integrations.frameworks.claude_agent_sdk.summaries import read_summary, summary_path
from compactd.integrations.frameworks.claude_agent_sdk.transcript import (
    Transcript,
    encode,
    key_of,
    transcript_of,
)
from compactd.storage.paths import SDK_TRANSCRIPTS, data_folder

if TYPE_CHECKING:
    from compactd.client import Json

T = TypeVar("T")

CompactOnLoad = Literal["never", "auto"] | int

DEFAULT_SHARE: Final = 0.5
DEADLINE_S: Final = 40.0
"""Seconds. The SDK waits 60 seconds for `load`."""
_MS: Final = 1_000_000


class CompactdSessionStore(SessionStore):
    """Stores the transcripts of Claude Code that the Claude Agent SDK mirrors.

    Appending and loading need no daemon. Entries come back equal and in order; one whose `uuid` is stored
    already is not stored again. Entries are on disk when `append` returns. Several stores, threads and
    processes may use one session. A store holds only its options: it can be copied and pickled.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        compact_on_load: CompactOnLoad = "never",
        compact_share: float = DEFAULT_SHARE,
        context_window: int | None = None,
        compaction: Mapping[str, Json] | None = None,
        load_deadline_s: float = DEADLINE_S,
        command: tuple[str, ...] | None = None,
    ) -> None:
        """`folder`: where the transcripts are. None: `claude-agent-sdk` in compactd's data folder.

        `compact_on_load`: when `load` returns a compacted session. "never"; "auto": if the session is larger
        than `compact_share` of the model's window; a number: if it is larger than this many tokens.
        `context_window`: the window in tokens, if compactd does not know the model's. `compaction`: further
        settings of compactions, as `session/start` takes them. `load_deadline_s`: the seconds after which
        `load` returns a session as it is; less than the SDK's `load_timeout_ms`.

        `command` starts the daemon; None: this Python's. Raise `ValueError` if an option has no meaning.
        """
        is_number = isinstance(compact_on_load, int) and not isinstance(compact_on_load, bool)
        if compact_on_load not in ("never", "auto") and not (is_number and int(compact_on_load) > 0):
            raise ValueError(
                f'`compact_on_load` must be "never", "auto" or a number of tokens, not {compact_on_load!r}'
            )
        if not 0 < compact_share <= 1:
            raise ValueError(f"`compact_share` must be above 0 and at most 1, not {compact_share!r}")
        self.folder = None if folder is None else Path(folder).absolute()
        self.compact_on_load: CompactOnLoad = compact_on_load
        self.compact_share = compact_share
        self.context_window = context_window
        self.compaction = dict(compaction or {})
        self.load_deadline_s = load_deadline_s
        self.command = command

    # --- the protocol -----------------------------------------------------------------------------------

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Store entries that are not stored yet. Raise `OSError` if they could not be stored; then none is.

        O(their text) and one sync of the disk; the first time in a process O(transcript).
        """
        transcript = self._transcript(Key.of(key))
        if not entries:
            return
        write = transcript.enter(encode(entries))
        try:
            await _in_thread(lambda: transcript.finish(write))
        finally:
            transcript.withdraw(write)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a transcript; None if there are none. With `compact_on_load`, a main
        transcript that is too large begins with a summary. O(transcript).
        """
        transcript = self._transcript(Key.of(key))
        entries = await _in_thread(transcript.read)
        if entries is not None and transcript.key.subpath is None and self.compact_on_load != "never":
            entries = await self._compacted(transcript, entries)
        return cast("list[SessionStoreEntry] | None", entries)

    async def load_original(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries as they were appended, whatever `compact_on_load` says. O(transcript)."""
        transcript = self._transcript(Key.of(key))
        return cast("list[SessionStoreEntry] | None", await _in_thread(transcript.read))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the ids of a project's sessions, and when they were written last. O(sessions)."""

        def found() -> list[SessionStoreListEntry]:
            return [
                {"session_id": key.session_id, "mtime": path.stat().st_mtime_ns // _MS}
                for path, key in self._sessions(project_key)
            ]

        return await _in_thread(found)

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return a short description of each of a project's sessions. O(sessions + what is new in them)."""

        def found() -> list[SessionSummaryEntry]:
            summaries = [read_summary(path, project_key) for path, _ in self._sessions(project_key)]
            return [summary for summary in summaries if summary is not None]

        return await _in_thread(found)

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript: with its sub-agents' and compactd's copy, if it is a main transcript. It is
        gone from disk when this returns. Raise `OSError`.
        """
        key_ = Key.of(key)
        await _in_thread(lambda: self._delete(key_))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session's sub-agents. O(sub-agents)."""
        key_ = Key.of({**key})
        return await _in_thread(lambda: [one.subpath or "" for _, one in self._subagents(key_)])

    async def _compacted(self, transcript: Transcript, entries: list[Any]) -> list[Any]:
        from compactd.integrations.frameworks.claude_agent_sdk.mirrored import compacted
        from compactd.integrations.frameworks.engine import CompactdWarning

        def work() -> list[Any]:
            with transcript.compacting:
                return compacted(entries, transcript.path, self)

        with anyio.move_on_after(self.load_deadline_s):
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        warnings.warn(
            f"compactd: the session was not compacted within {self.load_deadline_s:g} seconds. "
            "It is loaded as it is.",
            CompactdWarning,
            stacklevel=2,
        )
        return entries

    # --- in a thread ------------------------------------------------------------------------------------

    def _root(self) -> Path:
        return self.folder or data_folder(os.environ) / SDK_TRANSCRIPTS

    def _transcript(self, key: Key) -> Transcript:
        return transcript_of(transcript_path(self._root(), key), key)

    def _sessions(self, project_key: str) -> list[tuple[Path, Key]]:
        if not isinstance(project_key, str):
            raise TypeError("a project key must be a string")
        found = _transcripts(project_folder(self._root(), project_key))
        return [(path, key) for path, key in found if key.project_key == project_key and key.subpath is None]

    def _subagents(self, key: Key) -> list[tuple[Path, Key]]:
        found = _transcripts(subagents_folder(self._root(), key))
        return [
            (path, one)
            for path, one in found
            if (one.project_key, one.session_id) == (key.project_key, key.session_id)
            and one.subpath is not None
        ]

    def _delete(self, key: Key) -> None:
        transcript = self._transcript(key)
        if key.subpath is None:
            # The main transcript is last: if this process is killed, the next call finds the others.
            for path, one in self._subagents(key):
                transcript_of(path, one).delete()
            from compactd.integrations.frameworks.claude_agent_sdk.mirrored import forget

            forget(transcript.path, self.command)
        transcript.delete(summary_path(transcript.path))


def _transcripts(folder: Path) -> list[tuple[Path, Key]]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == TRANSCRIPT)
    except OSError:
        return []
    return [(path, key) for path in paths if (key := key_of(path)) is not None and path.exists()]


async def _in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)

"""A session of the SDK's, on compactd."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agents.memory import Session, SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
from agents.run_config import RunConfig

from compactd.client import Json
from compactd.integrations.frameworks.engine import SessionOptions, engine_of
from compactd.integrations.frameworks.mirror import Mirror
from compactd.integrations.frameworks.openai_agents.conversation import CLIENT, Conversation, Options
from compactd.integrations.frameworks.openai_agents.filter import with_filter
from compactd.integrations.frameworks.openai_agents.items import Item
from compactd.integrations.frameworks.openai_agents.store import (
    FileStore,
    SessionStore,
    Store,
    Stored,
    finished,
)
from compactd.protocol.wire import StateResult


class CompactdSession:
    """A session that keeps every item, and gives a run no more than fits the model's window.

        session = CompactdSession("chat-1")
        result = await Runner.run(agent, "Hello", session=session, run_config=session.run_config())

    The items are stored unchanged, in a database of compactd's or in another session of the SDK's.
    `get_items` returns the view: when the items near the window's limit, the oldest are replaced by a
    summary. With `run_config()`, each model request within a run has such a view, and one that the provider
    rejects as too large is sent again, smaller.

    The object holds options only: it may be copied, pickled, and shared by agents, threads and event loops.
    Several processes may use one session.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        *,
        model: str | None = None,
        context_window: int | None = None,
        compaction: Mapping[str, Json] | None = None,
        underlying_session: Session | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        working_dir: str | None = None,
        db_path: str | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        """Start the daemon in the background.

        Args:
            session_id: The conversation's name.
            model: `provider/id`. Default: as the agent's model says, once a run with `run_config()` has
                begun.
            context_window: The model's window in tokens. Default: compactd looks it up by the model's name.
            compaction: Settings of compactions, e.g. `{"keep_recent_tokens": 20_000}` (docs/settings.md).
            underlying_session: Another session of the SDK's that stores the items, such as `SQLiteSession`.
            session_settings: The SDK's. A `limit` turns the view off: runs then get the newest items,
                unchanged.
            working_dir: The folder that the conversation is about. Default: the current folder.
            db_path: The database's file. Default: `openai-agents.sqlite3` in compactd's data folder.
            command: The command that starts the daemon. Default: this Python's `compactd serve`.
        """
        if not isinstance(session_id, str) or not session_id or not _is_text(session_id):
            raise ValueError("session_id must be a text that is not empty")
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        if underlying_session is None:
            self._store: Store = FileStore(session_id, db_path)
        else:
            self._store = SessionStore(underlying_session)
        self._options = Options(
            SessionOptions(
                CLIENT,
                context_window=context_window,
                compaction=None if compaction is None else dict(compaction),
                working_dir=working_dir,
            ),
            session_id,
            model,
            None if command is None else tuple(command),
            self._store if isinstance(self._store, FileStore) else None,
        )
        engine_of(self._options.command).start_soon()

    # --- the SDK's protocol -----------------------------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return the view of the conversation: all items, or a summary and the newest ones. With a `limit`,
        return the newest items, unchanged. `original_items` always returns all.
        """
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None:
            return await self._store.latest(most)
        conversation = self._conversation()
        stored = await self._store.all(conversation.stored)
        view = await asyncio.to_thread(self._attempted, conversation.view, stored)
        return stored.items() if view is None else view

    async def add_items(self, items: Sequence[Item]) -> None:
        """Store items. They are on disk when this returns."""
        if not items:
            return
        conversation = self._conversation()
        await self._store.add(items, conversation.stored, conversation.note_stored)

    async def pop_item(self) -> Item | None:
        """Remove the newest item and return it; None if there is none. It stays in compactd's journal."""
        return await self._store.pop()

    async def clear_session(self) -> None:
        """Remove all items, and delete compactd's journal of the conversation."""
        await self._store.clear()
        await finished(asyncio.to_thread(self._conversation().clear))

    # --- more than the protocol -------------------------------------------------------------------------

    def run_config(self, base: RunConfig | Mapping[str, Any] | None = None) -> RunConfig:
        """Return the settings for runs with this session: `base`, with compactd's input filter, and with
        models that send a request again after an overflow. A filter that `base` has runs first.
        """
        return with_filter(base, self._options)

    async def original_items(self) -> list[Item]:
        """Return every item that was added and not removed, unchanged and in order."""
        return (await self._store.all(self._conversation().stored)).items()

    async def import_items(self, source: Session | Sequence[Item]) -> int:
        """Add the items of another session, or a list of them. Return how many there were."""
        items = list(await source.get_items()) if isinstance(source, Session) else list(source)
        await self.add_items(items)
        return len(items)

    async def recall(self, query: str = "", entry_ids: Sequence[str] = ()) -> str:
        """Return what was said earlier: the messages `entry_ids`, or parts of those that contain `query`."""
        return await asyncio.to_thread(lambda: self.mirror.recall(query, entry_ids))

    async def state(self) -> StateResult:
        """Return how full the context is, what was billed, and the compactions. Raise the errors of
        `Client.call`.
        """
        return await asyncio.to_thread(lambda: self.mirror.state())

    async def undo(self, *, force: bool = False) -> None:
        """Undo the last compaction: the next request has the items again. Raise `RpcError` if there is none,
        or if the items would not fit the window; `force` undoes it anyway.
        """
        await asyncio.to_thread(lambda: self.mirror.undo(force=force))

    @property
    def mirror(self) -> Mirror:
        """Return compactd's session of this conversation. Its methods block."""
        return self._conversation().mirror

    def _conversation(self) -> Conversation:
        return self._options.conversation()

    def _attempted(self, work: Any, stored: Stored) -> Any:
        """Do `work`; if anything in it fails, return None: storing and reading items must not fail because of
        the daemon.
        """
        return engine_of(self._options.command).attempt(lambda _: work(stored))


def _is_text(value: str) -> bool:
    """Return whether UTF-8 can hold a string."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

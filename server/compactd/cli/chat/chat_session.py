"""The session behind the chat app: its requests to the daemon, and the state that was last read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from msgspec import UnsetType

from compactd import __version__
from compactd.cli.chat.input import SMALLEST_PLAN
from compactd.cli.chat.pieces import block_text, display_text, left_behind, result_text
from compactd.cli.chat.usage_chart import ChartEntry, rows_of
from compactd.cli.inspect.anatomy import call_subject
from compactd.client import AsyncClient, Event, Json, RpcError
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import SessionLocked
from compactd.protocol.messages import Block, CompactionResult, TokenUsage, ToolCall, ToolResult
from compactd.protocol.wire import HistoryEntry, StartResult, StateResult

COMPACTION_TIMEOUT_S = 3600.0
"""Timeout of a compaction, in seconds. A local model may need minutes to read a long conversation."""

PAGE = 2_000
"""The most entries that one `session/history` request asks for. A long session needs several requests."""

CLIENT = {"name": "compactd chat", "version": __version__}
"""Who the chat is. Other clients of a shared daemon show the name."""

NO_TOOLS = "This chat runs no tools."


async def no_tools(params: dict[str, Json]) -> dict[str, object]:
    """Answer `tool/execute` with an error: the tools of the session belong to another program."""
    return {"content": NO_TOOLS, "is_error": True}


def was_named(start: Mapping[str, object]) -> bool:
    """Return whether the user gave the session an id or a system prompt. Such a session is kept even if it
    stays empty. `start`: the params of `session/start`.
    """
    return "session_id" in start or "system_prompt" in start


class ChatSession:
    """The session that the chat shows. `switch` replaces it by another session. Methods raise the errors of
    `AsyncClient`.
    """

    started: StartResult
    state: StateResult
    usage: TokenUsage
    """The newest usage: from `state`, or from an event after it."""

    def __init__(self, client: AsyncClient, *, is_echo: bool = False) -> None:
        self.client = client
        self.is_echo = is_echo
        self.entries: dict[str, HistoryEntry] = {}
        """Entry id -> entry, oldest first."""
        self.rows: dict[str, ChartEntry] = {}
        self.authors: dict[str, str] = {}
        """Entry id -> the other client that sent the prompt, as far as the chat heard of it."""
        self._calls: dict[str, ToolCall] = {}
        self._epoch = -1
        self._echoing = asyncio.Lock()
        self._is_named = False

    @property
    def id(self) -> str:
        """The session's id."""
        return self.started.session_id

    @property
    def dollars(self) -> float | None:
        """What the session cost so far, in US dollars, as in `session/cost`; None if that is not known."""
        cost = self.usage.cost
        return None if isinstance(cost, UnsetType) else cost.billed

    @property
    def newest(self) -> str | None:
        """The id of the newest entry that was read; None if there is none."""
        return next(reversed(self.entries), None)

    async def open(self, params: Mapping[str, object]) -> None:
        """Start or resume a session, and read its whole history. `params`: the params of `session/start`."""
        asked = {**params, "client": CLIENT}
        self.started = await self.client.ask("session/start", asked, StartResult)
        self._is_named = was_named(params)
        self._epoch = -1
        await self.refresh()

    async def switch(self, session_id: str) -> None:
        """Switch to another session and close the current one. If that fails, the current
        one stays open.
        """
        before, is_kept = self.id, self._is_kept
        await self.open({"session_id": session_id})
        if before != self.id and (is_kept or not await self._delete_unused(before)):
            await self.client.session_close(session_id=before)

    async def delete_if_unused(self) -> None:
        """Delete the session if it was started here and never used, so that it is not in the lists."""
        if not self._is_kept:
            await self._delete_unused(self.id)

    @property
    def _is_kept(self) -> bool:
        """True if the session is never deleted: it is not new, it was named, or it has entries."""
        return self.started.resumed or self._is_named or bool(self.entries)

    async def _delete_unused(self, session_id: str) -> bool:
        """Delete a session that was started here if it is empty. Return whether it was deleted."""
        # There may be entries that were not read yet. Only the daemon knows.
        if (await self.client.session_history(session_id=session_id, limit=1)).entries:
            return False
        try:
            await self.client.session_delete(session_id=session_id)
        except RpcError as error:
            if error.code != SessionLocked.code:
                raise
            return False  # another client has it open
        return True

    async def refresh(self, *, is_anew: bool = False) -> bool:
        """Read the state and the new entries. If the epoch has changed (the view changed other than by an
        append), or with `is_anew`, read all entries again and return True.
        """
        self.state = await self.client.agent_state(session_id=self.id)
        self.usage = self.state.token_usage
        is_anew = is_anew or self.usage.epoch != self._epoch
        newest = None if is_anew else self.newest
        fresh = [entry async for entry in self._history(newest) if entry.entry_id != newest]
        if is_anew:
            self.entries, self.rows, self._calls = {}, {}, {}
        self.entries.update((entry.entry_id, entry) for entry in fresh)
        self.rows.update(rows_of(fresh, self._calls))
        self._epoch = self.usage.epoch
        return is_anew

    def compactions(self) -> tuple[list[str], list[str]]:
        """Return (the ids of all compactions, those of the ones in force), oldest first."""
        done = [entry for entry in self.entries.values() if entry.compaction is not None]
        return [entry.entry_id for entry in done], [entry.entry_id for entry in done if entry.in_context]

    def newest_compaction(self) -> CompactionResult | None:
        """Return the result of the newest compaction that was not undone; None if there is none."""
        done = (e.compaction for e in reversed(self.entries.values()) if e.in_context)
        return next((one for one in done if one is not None), None)

    def read_left_behind(self) -> frozenset[str]:
        """Return the ids of the messages on branches other than the current one."""
        return left_behind(tuple(self.entries.values()))

    # --- actions of the user --------------------------------------------------------------------------

    async def prompt(self, text: str, take: Callable[[Event], Awaitable[None]]) -> str | None:
        """Send a prompt, and return its turn id. The answer arrives as events of the client. In echo mode,
        `take` is called with each event instead, and None is returned.
        """
        if self.is_echo:
            async with self._echoing:
                await self._echo(text, take)
            return None
        return (await self.client.agent_prompt(session_id=self.id, text=text)).turn_id

    async def compact(self, params: Mapping[str, object]) -> CompactionResult:
        """Compact the session now. `params`: further params of `session/compact`. Cancelling the
        calling task cancels the compaction.
        """
        # Echo mode sends nothing anywhere, so no model may summarise.
        strategy = {"strategy": "extract"} if self.is_echo else {}
        asked = {"session_id": self.id, **strategy, **params}
        return await self.client.ask(
            "session/compact", asked, CompactionResult, timeout_s=COMPACTION_TIMEOUT_S
        )

    async def plan_smallest(self) -> CompactionResult:
        """Return what `/compact --keep 1` would do. Nothing is changed."""
        asked = {"session_id": self.id, **SMALLEST_PLAN}
        return await self.client.ask("session/compact", asked, CompactionResult)

    async def originals(self, compaction_id: str) -> str:
        """Return the messages that a compaction removed, as text."""
        found = await self.client.session_expand(session_id=self.id, compaction_id=compaction_id)
        texts = []
        for original in found.entries:
            message = decode_message(original.message)
            parts = (_block_line(block) for block in message.content)
            texts.append(f"{message.role} · {original.entry_id}\n" + "\n".join(p for p in parts if p))
        return "\n\n".join(texts)

    # --- internals ------------------------------------------------------------------------------------

    async def _echo(self, text: str, take: Callable[[Event], Awaitable[None]]) -> None:
        """Append the prompt, and then the same text as its answer. The requests are those of a normal turn.
        `take` gets the answer word by word, as events.
        """
        asked = {"role": "user", "content": text, "meta": {"author": "user"}}
        await self.client.call("session/append", {"session_id": self.id, "messages": [asked]})
        await self.client.call("turn/begin", {"session_id": self.id}, timeout_s=COMPACTION_TIMEOUT_S)
        for word in text.split(" "):
            await take(Event(self.id, 0, "message_delta", {"delta": f"{word} "}))
        said = {"role": "assistant", "content": text}
        await self.client.call("turn/end", {"session_id": self.id, "messages": [said]})

    async def _history(self, newest: str | None) -> AsyncIterator[HistoryEntry]:
        """Yield the entries from the entry `newest` on, including it; all entries if it is None."""
        begin = newest
        while True:
            page = await self.client.session_history(session_id=self.id, from_=begin, limit=PAGE)
            for entry in page.entries:
                yield entry
            if page.next is None:
                return
            begin = page.next


def _block_line(block: Block) -> str:
    match block:
        case ToolCall():
            return f"→ {block.name} {call_subject(block, None)}"
        case ToolResult():
            return result_text(block)
        case _:
            return display_text(block_text(block))

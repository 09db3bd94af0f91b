"""The session behind the app: what is asked of the daemon, and what it was last heard to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from msgspec import Raw

from compactd.cli.chat.usage_chart import Row, rows_of
from compactd.cli.chat.widgets import RESULT_CHARS, left_behind, shown, text_of
from compactd.cli.commands.models import pricing_of
from compactd.cli.inspect.anatomy import target_of
from compactd.cli.inspect.cost import cost_of
from compactd.client import AsyncClient, Event, Json
from compactd.core.models.registry import Pricing
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Block, CompactionResult, TokenUsage, ToolCall, ToolResult
from compactd.protocol.wire import (
    AbortResult,
    BranchResult,
    ExpandResult,
    HistoryEntry,
    HistoryResult,
    Hit,
    ListResult,
    LookupResult,
    ModelSetResult,
    Nothing,
    PromptResult,
    SearchResult,
    SessionInfo,
    StartResult,
    StateResult,
    UndoResult,
)

PATIENCE_S = 3600.0
"""How long a compaction may take: a local model reads a long conversation for minutes."""

PAGE = 2_000
"""Entries of one answer: a long session comes in several."""

NO_TOOLS = "This chat runs no tools."


async def no_tools(params: dict[str, Json]) -> dict[str, object]:
    """What a model is told whose session has tools: they are another program's."""
    return {"content": NO_TOOLS, "is_error": True}


class Talk:
    """One session at a time; raises what its client raises."""

    started: StartResult
    state: StateResult
    usage: TokenUsage
    """The newest that was heard: of `state`, or of an event after it."""

    def __init__(self, client: AsyncClient, *, is_echo: bool = False) -> None:
        self.client = client
        self.is_echo = is_echo
        self.entries: dict[str, HistoryEntry] = {}
        """Oldest first."""
        self.rows: dict[str, Row] = {}
        self.dollars: float | None = None
        """Of all that has a usage report, at the present model's prices; none where nothing has one."""
        self._calls: dict[str, ToolCall] = {}
        self._epoch = -1
        self._pricing: Pricing | None = None
        self._priced: str | None = None
        self._echoing = asyncio.Lock()

    @property
    def id(self) -> str:
        """Of the session."""
        return self.started.session_id

    @property
    def newest(self) -> str | None:
        """The id of the newest entry that was read."""
        return next(reversed(self.entries), None)

    async def open(self, params: Mapping[str, object]) -> None:
        """Starts or resumes a session, and reads it whole."""
        self.started = await self.client.ask("session/start", params, StartResult)
        self._epoch = -1
        await self.refresh()

    async def switch(self, session_id: str) -> None:
        """Goes on with another session; the one so far is closed. Where that fails, it stays."""
        before = self.id
        await self.open({"session_id": session_id})
        if before != self.id:
            await self.client.ask("session/close", {"session_id": before}, Nothing)

    async def refresh(self) -> bool:
        """Reads the state, and what is new in the history; all of it where the view changed: then true."""
        self.state = await self.client.ask("agent/state", {"session_id": self.id}, StateResult)
        self.usage = self.state.token_usage
        is_anew = self.usage.epoch != self._epoch
        newest = None if is_anew else self.newest
        fresh = [entry async for entry in self._history(newest) if entry.entry_id != newest]
        await self._look_up_prices()
        if is_anew:
            self.entries, self.rows, self._calls, self.dollars = {}, {}, {}, None
        self.entries.update((entry.entry_id, entry) for entry in fresh)
        self.rows.update(rows_of(fresh, self._calls))
        self._add_cost(fresh)
        self._epoch = self.usage.epoch
        return is_anew

    def heard(self, usage: TokenUsage) -> None:
        """An event told how full the context is now."""
        self.usage = usage

    def newest_compaction(self) -> CompactionResult | None:
        """Of those in force."""
        done = (e.compaction for e in reversed(self.entries.values()) if e.in_context)
        return next((one for one in done if one is not None), None)

    def left_behind(self) -> frozenset[str]:
        """Ids of entries on branches that were left."""
        return left_behind(tuple(self.entries.values()))

    # --- what a person asks for -----------------------------------------------------------------------

    async def prompt(self, text: str, take: Callable[[Event], Awaitable[None]]) -> None:
        """Gives a prompt. What comes of it are events; those of an echo go to `take`."""
        if self.is_echo:
            async with self._echoing:
                await self._echo(text, take)
        else:
            params = {"session_id": self.id, "text": text}
            await self.client.ask("agent/prompt", params, PromptResult)

    async def abort(self) -> bool:
        """Stops the prompt that is answered."""
        return (await self.client.ask("agent/abort", {"session_id": self.id}, AbortResult)).aborted

    async def compact(self, params: Mapping[str, object]) -> CompactionResult:
        """Compacts now; where the caller is cancelled, that is."""
        # An echo sends nothing anywhere, to no summariser either.
        strategy = {"strategy": "extract"} if self.is_echo else {}
        asked = {"session_id": self.id, **strategy, **params}
        return await self.client.ask("session/compact", asked, CompactionResult, timeout_s=PATIENCE_S)

    async def undo(self) -> UndoResult:
        """Takes the last compaction or prune back."""
        return await self.client.ask("session/undo", {"session_id": self.id}, UndoResult)

    async def redo(self) -> UndoResult:
        """Puts it in force again."""
        return await self.client.ask("session/redo", {"session_id": self.id}, UndoResult)

    async def branch(self, entry_id: str) -> BranchResult:
        """Goes on behind an entry."""
        params = {"session_id": self.id, "entry_id": entry_id}
        return await self.client.ask("session/branch", params, BranchResult)

    async def set_model(self, model: str) -> ModelSetResult:
        """Goes on with another model, where the conversation fits it or can be made to."""
        params = {"session_id": self.id, "model": model}
        return await self.client.ask("model/set", params, ModelSetResult, timeout_s=PATIENCE_S)

    async def search(self, words: str) -> Sequence[Hit]:
        """Where the session holds them, newest first."""
        params = {"session_id": self.id, "query": words}
        return (await self.client.ask("session/search", params, SearchResult)).hits

    async def sessions(self) -> Sequence[SessionInfo]:
        """All that are stored, newest first."""
        return (await self.client.ask("session/list", None, ListResult)).sessions

    async def originals(self, compaction_id: str) -> str:
        """The messages that a compaction took, as text."""
        params = {"session_id": self.id, "compaction_id": compaction_id}
        found = await self.client.ask("session/expand", params, ExpandResult)
        texts = []
        for original in found.entries:
            message = decode_message(original.message)
            parts = (_told(block) for block in message.content)
            texts.append(f"{message.role} · {original.entry_id}\n" + "\n".join(p for p in parts if p))
        return "\n\n".join(texts)

    # --- inside ---------------------------------------------------------------------------------------

    async def _echo(self, text: str, take: Callable[[Event], Awaitable[None]]) -> None:
        """As the daemon's own loop has it, with the prompt itself in the model's place."""
        asked = {"role": "user", "content": text, "meta": {"author": "user"}}
        await self.client.call("session/append", {"session_id": self.id, "messages": [asked]})
        await self.client.call("turn/begin", {"session_id": self.id}, timeout_s=PATIENCE_S)
        for word in text.split(" "):
            await take(Event(self.id, 0, "message_delta", {"delta": f"{word} "}))
        said = {"role": "assistant", "content": text}
        await self.client.call("turn/end", {"session_id": self.id, "messages": [said]})

    async def _history(self, newest: str | None) -> AsyncIterator[HistoryEntry]:
        """From an entry on, itself included."""
        begin = newest
        while True:
            params = {"session_id": self.id, "from": begin, "limit": PAGE}
            page = await self.client.ask("session/history", params, HistoryResult)
            for entry in page.entries:
                yield entry
            if page.next is None:
                return
            begin = page.next

    async def _look_up_prices(self) -> None:
        model = self.state.model
        if model is None or model == self._priced:
            return
        found = await self.client.ask("models/lookup", {"model": model}, LookupResult)
        self._pricing, self._priced = pricing_of(found), model

    def _add_cost(self, entries: Sequence[HistoryEntry]) -> None:
        messages = (decode_message(e.message) for e in entries if isinstance(e.message, Raw))
        cost = cost_of(messages, self._pricing) if self._pricing is not None else None
        summaries = [e.compaction.cost for e in entries if e.compaction is not None]
        dollars = [cost.dollars] if cost is not None else []
        dollars += [one for one in summaries if isinstance(one, float)]
        if dollars:
            self.dollars = (self.dollars or 0.0) + sum(dollars)


def _told(block: Block) -> str:
    match block:
        case ToolCall():
            return f"→ {block.name} {target_of(block, None)}"
        case ToolResult():
            return shown(text_of(block.content))[:RESULT_CHARS]
        case _:
            return shown(text_of((block,)))

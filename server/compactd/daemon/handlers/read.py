"""Handlers that read a session: its context for the next request, history, search, originals and state."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from compactd.core.history.projection import project
from compactd.core.models.lookup import WANT_REASONING
from compactd.daemon.handlers import encode
from compactd.daemon.handlers.base import Handled, HandlerGroup, decode_all, is_quick
from compactd.daemon.rpc.request import Request
from compactd.formats.messages.base import render
from compactd.protocol import wire
from compactd.protocol.errors import InvalidParams, StorageFailed
from compactd.session.cost_report import cost_report
from compactd.session.prompt_cache import choose_session_lifetime, prepare_request
from compactd.session.provider_summary import summary_chooser
from compactd.session.search import search, searched_items
from compactd.session.session import INLINE_BYTES

SEARCH_LIMIT = 20

DRY_RUN = "compactd.compaction.dry_run"


class ReadHandlers(HandlerGroup):
    """Handlers of the methods that read a session and change nothing."""

    def session_context(self, params: wire.ContextParams, request: Request) -> Handled:
        """Return the messages of the next model request, in the requested format."""
        session = self._sessions.get(params.session_id)
        # The session may change while a worker builds the context, so its state is read now.
        state = session.state
        view, system, tools, fixed = state.view(), state.system_prompt, session.tools(), sum(state.fixed)
        counter, model, format = session.counter, state.model.model, params.format or "neutral"
        choose = summary_chooser(session, format)
        reasoning = session.lookup is not None and session.lookup.provider in WANT_REASONING
        lifetime = choose_session_lifetime(session)
        session.note_sent_epoch(view.epoch)

        def context() -> wire.ContextResult:
            projection = choose(project(view.items, counter), view.items)
            made = render(format, system, tools, projection, model, with_reasoning=reasoning)
            told: wire.ContextCache | UnsetType = UNSET
            if format != "neutral":
                prepared = prepare_request(
                    session, format, made, projection, fixed_tokens=fixed, lifetime=lifetime
                )
                made, cache = prepared.rendered, prepared.cache
                told = wire.ContextCache(
                    stable_tokens=cache.stable_tokens,
                    stable_bytes=cache.stable_bytes,
                    breakpoints=encode.to_wire(cache.markers, tuple[wire.CacheBreakpoint, ...]),
                )
            return wire.ContextResult(
                messages=tuple(made.messages),
                tokens=projection.tokens + fixed,
                epoch=view.epoch,
                repairs=encode.to_wire(projection.repairs, tuple[wire.RepairInfo, ...]),
                system=UNSET if made.system is None else made.system,
                tools=UNSET if made.tools is None else tuple(made.tools),
                cache=told,
                headers=made.headers or UNSET,
            )

        return context() if is_quick(view.items) else self._daemon.in_worker(context)

    async def session_cost(self, params: wire.SessionParams, request: Request) -> wire.CostResult:
        """Return what the session cost so far, and what its next request will cost."""
        session = self._sessions.get(params.session_id)
        await self._load(session, DRY_RUN)
        from compactd.compaction.dry_run import size_after_compaction

        return cost_report(session, await size_after_compaction(session))

    def session_history(self, params: wire.HistoryParams, request: Request) -> Handled:
        """Return the session's history. If the params name an entry, start with that entry.

        Messages that are not decoded yet are decoded in a worker first. Raises `InvalidParams` for an
        unknown entry.
        """
        session = self._sessions.get(params.session_id)
        items = encode.page_of(session, params)

        def made() -> wire.HistoryResult:
            found = encode.history_of(session, params)
            if found is None:
                raise InvalidParams(f"{params.from_!r} is not an entry of this session", "$.from")
            return found

        async def decoded() -> wire.HistoryResult:
            async with session.queue.hold():
                await self._daemon.in_worker(lambda: decode_all(items))
                return made()

        return made() if all(item.is_decoded for item in items) else decoded()

    async def session_search(self, params: wire.SearchParams, request: Request) -> wire.SearchResult:
        """Search a session, or all stored sessions if the params name none. Runs in a worker."""
        if params.session_id is None:
            return await self._search_everywhere(params.query, params.limit or SEARCH_LIMIT)
        session = self._sessions.get(params.session_id)
        state, items = session.state, searched_items(session.state)
        shown = {item.entry_id for item in state.items}
        limit = params.limit or SEARCH_LIMIT
        found = await self._daemon.in_worker(lambda: search(items, params.query, limit, state.outputs))
        return wire.SearchResult(hits=tuple(encode.hit_of(state, hit, shown) for hit in found))

    async def _search_everywhere(self, query: str, limit: int) -> wire.SearchResult:
        await self._daemon.modules.load("compactd.session.search_all", "compactd.storage.search_index")
        from compactd.session.search_all import search_everywhere

        index = self._sessions.store.index
        try:
            return await self._daemon.in_worker(lambda: search_everywhere(index, query, limit))
        except OSError as error:
            raise StorageFailed(f"The sessions cannot be searched: {error}") from error

    def session_expand(self, params: wire.ExpandParams, request: Request) -> Handled:
        """Return the original messages that a compaction replaced, or those with the given entry ids. If they
        are large, a worker makes the result.
        """
        state = self._sessions.get(params.session_id).state
        items, outputs = encode.expanded_items(state, params), state.outputs
        size = sum(0 if item.source is None else len(memoryview(item.source)) for item in items)
        if size <= INLINE_BYTES:
            return encode.expand_of(outputs, items, quoted=params.quoted)
        return self._daemon.in_worker(
            lambda: Raw(encode.encode(encode.expand_of(outputs, items, quoted=params.quoted)))
        )

    def agent_state(self, params: wire.StateParams, request: Request) -> Handled:
        """Return the session's state. Answers at once, even while a turn or a compaction runs.

        If the client asks for the state of the work, a worker computes it.
        """
        session = self._sessions.get(params.session_id)
        ignored, _ = self._daemon.outside.ignored_settings(session.working_dir, session.ignored)
        state = encode.state_of(session, ignored)
        if not params.work:
            return state
        work, path = session.work(), session.state.path_items()
        return session.host.run_compute(
            lambda: replace(state, work=work.after(path).work), work.unread_tokens(path)
        )

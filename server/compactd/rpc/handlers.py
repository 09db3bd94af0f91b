"""One function a method: from params to a result, between the wire and the inside.

A handler that changes a session applies the change at once, in the order in which requests came, and
gives back an awaitable that ends when the disk has it. Messages too large to count on the loop stand in the
session's line, and so does all that comes after them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from compactd import turns
from compactd.core.entries import Compacted, Pruned, View
from compactd.core.fold import Step
from compactd.core.intake import New
from compactd.core.projection import project
from compactd.core.tokens import message_tokens
from compactd.errors import InvalidParams
from compactd.formats.base import read_messages, render
from compactd.messages import CompactionResult, Tool
from compactd.providers.counters import counter_for
from compactd.rpc import answers, asking, wire
from compactd.rpc.request import Request
from compactd.search import search
from compactd.session import Session, Taken
from compactd.sessions import Start

if TYPE_CHECKING:
    from compactd.daemon import Daemon


SEARCH_LIMIT = 20

INLINE_ITEMS = 500
"""Messages of a view up to which a request is built on the loop: about 6 µs each (measured 2026-11)."""

Handled = Struct | Awaitable[Struct]


class Handlers:
    """The methods of `rpc/methods.py`; `session/start` is `session_start`, and so on."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._sessions = daemon.sessions
        self.by_method: dict[str, Callable[..., Handled]] = {
            "session/start": self.session_start,
            "session/append": self.session_append,
            "session/context": self.session_context,
            "session/compact": self.session_compact,
            "session/history": self.session_history,
            "session/search": self.session_search,
            "session/expand": self.session_expand,
            "session/undo": self.session_undo,
            "session/redo": self.session_redo,
            "session/list": self.session_list,
            "session/close": self.session_close,
            "session/delete": self.session_delete,
            "session/configure": self.session_configure,
            "session/pin": self.session_pin,
            "agent/state": self.agent_state,
            "turn/begin": self.turn_begin,
            "turn/end": self.turn_end,
            "tokens/count": self.tokens_count,
            "models/lookup": self.models_lookup,
            "daemon/info": self.daemon_info,
        }

    # --- sessions: opening and ending -----------------------------------------------------------------

    async def session_start(self, params: wire.StartParams, request: Request) -> wire.StartResult:
        """Opens or resumes."""
        model, base_url = asking.model_of(params.model)
        started = await self._sessions.start(
            Start(
                session_id=params.session_id,
                model=model,
                base_url=base_url,
                context_window=params.context_window,
                system_prompt=params.system_prompt,
                tools=asking.tools_of(params.tools),
                compaction=asking.settings_of(params.compaction),
                title=params.title,
                working_dir=params.working_dir,
                parent_session_id=params.parent_session_id,
                persist=params.persist is not False,
                durability=params.durability or "disk",
            )
        )
        session = started.session
        usage = session.token_usage()
        return wire.StartResult(
            session_id=session.id,
            resumed=started.resumed,
            read_only=session.journal is None,
            model=session.fold.model.model,
            context_window=usage.context_window,
            token_usage=usage,
            message_count=len(session.fold.items),
            seq=session.seq,
            warnings=(*started.warnings, *self._daemon.warnings),
        )

    async def session_list(self, params: wire.Nothing, request: Request) -> wire.ListResult:
        """Stored and open ones."""
        return wire.ListResult(sessions=tuple(answers.row_of(row) for row in await self._sessions.list()))

    async def session_close(self, params: wire.SessionParams, request: Request) -> wire.Nothing:
        """Cancels what runs."""
        await self._sessions.close(params.session_id)
        return wire.Nothing()

    async def session_delete(self, params: wire.SessionParams, request: Request) -> wire.Nothing:
        """Open or not."""
        await self._sessions.delete(params.session_id)
        return wire.Nothing()

    # --- sessions: appending --------------------------------------------------------------------------

    def session_append(self, params: wire.AppendParams, request: Request) -> Handled:
        """Durable when answered; the gauge's numbers follow the answer."""
        session = self._sessions.get(params.session_id)

        def answer(taken: Taken) -> wire.AppendResult:
            return wire.AppendResult(
                entry_ids=taken.intake.entry_ids,
                duplicates=taken.intake.duplicates,
                pending_calls=session.pending.call_ids,
                token_usage=session.token_usage(),
                decision=session.decision,
            )

        def take(new: New) -> Awaitable[Struct]:
            taken = session.append(new)
            if taken.intake.entries:
                request.after(session.tell_usage)
            return self._durable(session, taken.number, answer(taken))

        return self._taken_in(session, params, take)

    def turn_end(self, params: wire.EndParams, request: Request) -> Handled:
        """As append, with `turn_end` and a look for a silent overflow."""
        session = self._sessions.get(params.session_id)

        def take(new: New) -> Awaitable[Struct]:
            taken, silent = turns.end(session, new)
            session.tell_usage()
            result = wire.EndResult(
                entry_ids=taken.intake.entry_ids,
                duplicates=taken.intake.duplicates,
                pending_calls=session.pending.call_ids,
                token_usage=session.token_usage(),
                decision=session.decision,
                silent_overflow=silent,
            )
            return self._durable(session, taken.number, result)

        return self._taken_in(session, params, take)

    def _taken_in(
        self,
        session: Session,
        params: wire.AppendParams | wire.EndParams,
        take: Callable[[New], Awaitable[Struct]],
    ) -> Handled:
        session.writable()
        read = read_messages(params.messages, params.format)
        size_bytes = sum(len(memoryview(raw)) for raw in params.messages)

        def new(tokens: Sequence[int]) -> New:
            return asking.new(params, read, tokens)

        def count() -> list[int]:
            return [session.count_message(message) for message, _ in read]

        if session.queue.is_idle and not session.counts_in_worker(size_bytes):
            return take(new(count()))

        async def in_line() -> Awaitable[Struct]:
            big = session.counts_in_worker(size_bytes)
            tokens = await self._daemon.in_worker(count) if big else count()
            return take(new(tokens))

        async def counted() -> Struct:
            return await (await session.queue.run(in_line))

        return counted()

    async def _durable(self, session: Session, number: int, result: Struct) -> Struct:
        await session.durable(number)
        return result

    # --- sessions: reading ----------------------------------------------------------------------------

    def session_context(self, params: wire.ContextParams, request: Request) -> Handled:
        """The next request, in the format asked for."""
        session = self._sessions.get(params.session_id)

        def work() -> Handled:
            state = session.fold
            view, system, tools, fixed = state.view(), state.system_prompt, session.tools(), sum(state.fixed)
            count = session.counter.count
            session.handed_epoch = view.epoch

            def made() -> wire.ContextResult:
                return context(view, system, tools, fixed, count)

            return made() if len(view.items) <= INLINE_ITEMS else self._daemon.in_worker(made)

        def context(
            view: View, system: str | None, tools: tuple[Tool, ...], fixed: int, count: Callable[[str], int]
        ) -> wire.ContextResult:
            projection = project(view.items, count)
            made = render(params.format, system, tools, projection)
            return wire.ContextResult(
                messages=tuple(made.messages),
                tokens=projection.tokens + fixed,
                epoch=view.epoch,
                repairs=tuple(
                    wire.RepairInfo(kind=repair.kind, entry_id=repair.entry_id, call_id=repair.call_id)
                    for repair in projection.repairs
                ),
                system=UNSET if made.system is None else made.system,
                tools=UNSET if made.tools is None else tuple(made.tools),
            )

        return self._in_order(session, work)

    def session_history(self, params: wire.HistoryParams, request: Request) -> Handled:
        """From an entry on."""
        session = self._sessions.get(params.session_id)

        def work() -> wire.HistoryResult:
            found = answers.history_of(session, params)
            if found is None:
                raise InvalidParams(f"{params.from_!r} is no entry of this session", "$.from")
            return found

        return self._in_order(session, work)

    def session_search(self, params: wire.SearchParams, request: Request) -> Handled:
        """In a worker: it reads everything that was ever said."""
        session = self._sessions.get(params.session_id)

        async def work() -> wire.SearchResult:
            items = session.fold.path_items()
            shown = {item.entry_id for item in session.fold.items}
            at = session.fold.times
            limit = params.limit or SEARCH_LIMIT
            found = await self._daemon.in_worker(lambda: search(items, params.query, limit))
            return wire.SearchResult(
                hits=tuple(
                    wire.Hit(
                        entry_id=hit.item.entry_id,
                        role=hit.item.message.role,
                        snippet=hit.snippet,
                        in_context=hit.item.entry_id in shown,
                        at=at[hit.item.entry_id],
                    )
                    for hit in found
                )
            )

        return work() if session.queue.is_idle else session.queue.run(work)

    def session_expand(self, params: wire.ExpandParams, request: Request) -> Handled:
        """The originals of a compaction, or of entries."""
        session = self._sessions.get(params.session_id)
        return self._in_order(session, lambda: answers.expand_of(session, params))

    def agent_state(self, params: wire.SessionParams, request: Request) -> wire.StateResult:
        """At once, whatever runs."""
        return answers.state_of(self._sessions.get(params.session_id))

    # --- sessions: changing ---------------------------------------------------------------------------

    async def session_compact(self, params: wire.CompactParams, request: Request) -> CompactionResult:
        """The one compaction of its session; cancelled with the request."""
        session = self._sessions.get(params.session_id)
        from compactd.compacting import compact

        want = asking.compact_request(params)
        if not session.queue.is_idle:
            await session.queue.run(_nothing)
        return await compact(session, want, dry_run=params.dry_run is True, progress=request.progress)

    def session_undo(self, params: wire.SessionParams, request: Request) -> Handled:
        """The last step."""
        session = self._sessions.get(params.session_id)
        return self._in_order(session, lambda: self._rewound(session, session.undo()))

    def session_redo(self, params: wire.SessionParams, request: Request) -> Handled:
        """The last step undone."""
        session = self._sessions.get(params.session_id)
        return self._in_order(session, lambda: self._rewound(session, session.redo()))

    async def _rewound(self, session: Session, done: tuple[Step, int]) -> wire.UndoResult:
        step, number = done
        await session.durable(number)
        session.tell_usage()
        return wire.UndoResult(
            message_count=len(session.fold.items),
            token_usage=session.token_usage(),
            compaction_id=step.compaction_id if isinstance(step, Compacted) else None,
            entry_ids=tuple(stub.entry_id for stub in step.stubs) if isinstance(step, Pruned) else None,
        )

    def session_configure(self, params: wire.ConfigureParams, request: Request) -> Handled:
        """At once, also while a compaction runs: that one keeps the settings it began with."""
        session = self._sessions.get(params.session_id)
        tools = asking.tools_of(params.tools)

        async def work() -> wire.ConfigureResult:
            before = session.token_usage()
            number = session.configure(
                "configure",
                compaction=asking.settings_of(params.compaction),
                system_prompt=params.system_prompt,
                tools=tools,
                title=params.title,
            )
            if number is not None:
                await session.durable(number)
            if session.token_usage() != before:
                session.tell_usage()
            return wire.ConfigureResult(
                settings=answers.settings_of(session), warnings=session.standing().warnings
            )

        return self._in_order(session, work)

    def session_pin(self, params: wire.PinParams, request: Request) -> Handled:
        """Or unpin."""
        session = self._sessions.get(params.session_id)

        def work() -> Awaitable[Struct]:
            number = session.pin(params.entry_ids, params.pinned)
            return self._durable(session, number, wire.PinResult(pinned_entry_ids=session.pinned_ids()))

        return self._in_order(session, work)

    async def turn_begin(self, params: wire.SessionParams, request: Request) -> wire.BeginResult:
        """Waits for a compaction that runs."""
        session = self._sessions.get(params.session_id)
        if not session.queue.is_idle:
            await session.queue.run(_nothing)
        begun = await turns.begin(session)
        most = begun.max_output_tokens
        return wire.BeginResult(
            compaction=begun.compaction,
            pruned=begun.pruned,
            token_usage=session.token_usage(),
            max_output_tokens=UNSET if most is None else most,
        )

    def _in_order(self, session: Session, work: Callable[[], Handled]) -> Handled:
        """`work` now, or after what stands in the session's line."""
        if session.queue.is_idle:
            return work()

        async def later() -> Struct:
            done = work()
            return done if isinstance(done, Struct) else await done

        return session.queue.run(later)

    # --- without a session ----------------------------------------------------------------------------

    async def tokens_count(self, params: wire.CountParams, request: Request) -> wire.CountResult:
        """In a worker: ranks may have to be loaded, texts may be large."""
        if (params.text is None) == (params.messages is None):
            raise InvalidParams("give `text` or `messages`, one of them", "$.text")
        found = await self._daemon.find_model(params.model, None, None) if params.model else None
        counter = counter_for("auto", found.tokenizer if found else None)
        if params.messages is None:
            text = params.text or ""
            tokens = await self._daemon.in_worker(lambda: counter.count(text))
        else:
            read = read_messages(params.messages, params.format)
            tokens = await self._daemon.in_worker(
                lambda: sum(message_tokens(message, counter) for message, _ in read)
            )
        return wire.CountResult(tokens=tokens, exact=counter.exact, method=counter.name)

    async def models_lookup(self, params: wire.LookupParams, request: Request) -> wire.LookupResult:
        """By the ladder of the registry."""
        return answers.lookup_of(
            await self._daemon.find_model(params.model, params.provider, params.base_url)
        )

    def daemon_info(self, params: wire.Nothing, request: Request) -> wire.InfoResult:
        """Version, paths, what is loaded."""
        return self._daemon.info()


async def _nothing() -> None:
    return None

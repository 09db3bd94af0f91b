"""Handlers that open, list, close, delete and configure sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.entries import EntryId, Item
from compactd.core.history.pins import pinned_of
from compactd.daemon.handlers import decode, encode
from compactd.daemon.handlers.base import Handled, HandlerGroup, is_quick
from compactd.daemon.rpc.request import Request
from compactd.daemon.sharing.client import Client, Membership
from compactd.protocol import wire
from compactd.protocol.methods import METHODS
from compactd.session.host import acting
from compactd.session.manager import Start, StartedSession, new_id
from compactd.session.session import Session
from compactd.storage.settings_files import printable_name

COMMAND = "workspace/executeCommand"


class SessionHandlers(HandlerGroup):
    """Handlers of the methods that open, list, close, delete and configure sessions."""

    async def session_start(self, params: wire.StartParams, request: Request) -> wire.StartResult:
        """Open a new session, or resume one that is open or stored."""
        clients, session_id = self._daemon.clients, params.session_id or new_id()
        is_guest = clients.first_of(session_id) not in (None, acting.get())
        named = wire.ClientInfo() if params.client is None else params.client
        is_borrowed = request.name == COMMAND
        membership = Membership(named.compaction_hook, named.answers, is_borrowed)
        before = clients.join(session_id, membership, named.name)
        try:
            started = await self._start(params, session_id, is_guest, is_borrowed)
        except BaseException:
            clients.undo_join(session_id, before)
            raise
        # If the session was just being closed for another client, that ended the membership.
        clients.join(session_id, membership)
        clients.note_hooks(session_id)
        session = started.session
        fleet = self._daemon.fleet
        if session.is_forwarded and fleet is not None:
            # The values in the params are the writer's to apply.
            start_here = partial(self.session_start, params, request)
            answer = await fleet.carry_out(start_here, session, METHODS["session/start"], params, request)
            if isinstance(answer, wire.StartResult):
                return answer
            assert isinstance(answer, Raw)
            result = msgspec.json.decode(answer, type=wire.StartResult)
            current = self._sessions.get(session_id)
            return msgspec.structs.replace(result, resumed=started.resumed, seq=current.event_seq)
        usage = session.token_usage()
        ignored, told = self._daemon.outside.ignored_settings(session.working_dir, session.ignored)
        return wire.StartResult(
            session_id=session.id,
            resumed=started.resumed,
            read_only=session.journal is None,
            model=session.state.model.model,
            title=session.state.shown_title,
            context_window=usage.context_window,
            token_usage=usage,
            message_count=len(session.state.items),
            seq=session.event_seq,
            warnings=(
                *decode.ignored_names(request, params),
                *started.warnings,
                *decode.endpoint_warnings(params.model),
                *decode.folder_warnings(params.working_dir),
                *(await self._model_warnings(session) if params.model is not None else ()),
                *(await self._parent_warnings(params.parent_session_id)),
                *self._settings_warnings(session),
                *told,
                *self._daemon.catalogue.warnings,
            ),
            ignored_settings=ignored,
        )

    async def _start(
        self, params: wire.StartParams, session_id: str, is_guest: bool, is_borrowed: bool
    ) -> StartedSession:
        model, base_url = decode.model_of(params.model)
        return await self._sessions.start(
            Start(
                session_id=session_id,
                model=model,
                base_url=base_url,
                context_window=params.context_window,
                system_prompt=params.system_prompt,
                tools=decode.tools_of(params.tools),
                compaction=decode.decode_settings(params.compaction, params.reduce),
                title=params.title,
                working_dir=params.working_dir,
                parent_session_id=params.parent_session_id,
                snapshots=params.snapshots,
                persist=params.persist is not False,
                durability=params.durability or "disk",
                is_guest=is_guest,
                read_only=params.read_only is True,
                is_borrowed=is_borrowed,
            )
        )

    async def model_set(self, params: wire.ModelSetParams, request: Request) -> wire.ModelSetResult:
        """Switch the session to another model. If the conversation does not fit into that model's window,
        compact first.
        """
        session = self._sessions.get(params.session_id)
        model, base_url = decode.model_of(params.model)
        await self._load(session, "compactd.agent.model_switch", "compactd.compaction.run")
        from compactd.agent.model_switch import switch

        switched = await switch(session, model or "", base_url)
        if switched.number is not None:
            await session.wait_durable(switched.number)
        return wire.ModelSetResult(
            model=session.state.model.model,
            token_usage=session.token_usage(),
            compaction=switched.compaction,
            warnings=(*decode.endpoint_warnings(params.model), *(await self._model_warnings(session))),
        )

    async def _model_warnings(self, session: Session) -> tuple[str, ...]:
        """Return a warning, with similar model names, if the session's model is not in the registry."""
        found = session.lookup
        if found is None or found.confidence != "guess":
            return ()
        given = session.state.model.context_window or session.resolved.settings.context_window
        near = await self._daemon.in_worker(partial(self._daemon.catalogue.nearest, found.model))
        return (decode.model_warning(found, near, given is not None),)

    async def _parent_warnings(self, parent: str | None) -> tuple[str, ...]:
        if parent is None or parent in self._sessions.open:
            return ()
        if await self._daemon.in_worker(partial(self._sessions.store.exists, parent)):
            return ()
        return (f"parent_session_id {printable_name(parent)!r}: no session has this id",)

    def _settings_warnings(self, session: Session) -> tuple[str, ...]:
        """Return warnings about the settings outside the session, and about those of this client that do not
        count, because another one opened the session first.
        """
        client, first = acting.get(), self._daemon.clients.first_of(session.id)
        own = client.settings if isinstance(client, Client) else None
        warnings = self._daemon.outside.warnings(session.working_dir, own)
        if own is None or first is None or first is client or own.layers == first.settings.layers:
            return warnings
        given = (setting for _, layer in own.layers for setting in msgspec.structs.asdict(layer).items())
        names = sorted({name for name, value in given if value is not None})
        if not names:
            return warnings
        what = f"this client's settings {', '.join(names)}"
        return (*warnings, f"not used, because another client opened the session first: {what}")

    async def session_list(self, params: wire.Nothing, request: Request) -> wire.ListResult:
        """Return all sessions, stored or open."""
        return wire.ListResult(sessions=await self._sessions.list())

    async def session_close(self, params: wire.SessionParams, request: Request) -> wire.Nothing:
        """Close a session and cancel what runs in it. If other clients have it open, it stays open for them.

        An editor's command (`workspace/executeCommand`) closes a session only if no client has opened it.
        """
        clients, session_id = self._daemon.clients, params.session_id
        client = acting.get()
        if request.name == COMMAND:
            membership = None if client is None else clients.membership(client, session_id)
            if not (
                self._sessions.get(session_id).is_borrowed
                or (membership is not None and membership.is_borrowed)
            ):
                return wire.Nothing()
        await clients.close(session_id)
        return wire.Nothing()

    async def session_delete(self, params: wire.SessionParams, request: Request) -> wire.DeleteResult:
        """Delete a session, open or stored. The result names the copies of its messages outside the data
        folder, which are not deleted.
        """
        self._daemon.clients.require_alone(params.session_id)
        return wire.DeleteResult(left=await self._sessions.delete(params.session_id, self._daemon.home))

    async def session_configure(self, params: wire.ConfigureParams, request: Request) -> wire.ConfigureResult:
        """Change a session's settings, system prompt, tools or title.

        Takes effect at once. A running compaction keeps the settings that it began with.
        """
        session = self._sessions.get(params.session_id)
        tools, unset = decode.tools_of(params.tools), decode.unset_of(params.unset)
        before = session.token_usage()
        number = session.configure(
            "configure",
            compaction=decode.decode_settings(params.compaction, params.reduce),
            system_prompt=params.system_prompt,
            tools=tools,
            title=params.title,
            unset=unset,
        )
        if number is not None:
            await session.wait_durable(number)
        if params.compaction is not None or params.reduce is not None or params.system_prompt is not None:
            session.emit_changed("settings")
        if tools is not None:
            session.emit_changed("tools")
        if params.title is not None:
            session.emit_changed("title")
        if session.token_usage() != before:
            session.emit_usage()
        ignored, told = self._daemon.outside.ignored_settings(session.working_dir, session.ignored)
        return wire.ConfigureResult(
            settings=encode.encode_settings(session),
            warnings=(*decode.ignored_names(request, params), *session.budget_status().warnings, *told),
            ignored_settings=ignored,
        )

    def session_pin(self, params: wire.PinParams, request: Request) -> Handled:
        """Pin or unpin messages, and return all pinned messages."""
        session = self._sessions.get(params.session_id)

        async def told(number: int, items: Sequence[Item], marks: Mapping[EntryId, bool]) -> Struct:
            def made() -> wire.PinResult:
                return wire.PinResult(pinned_entry_ids=pinned_of(items, marks))

            result = made() if is_quick(items) else await self._daemon.in_worker(made)
            await session.wait_durable(number)
            session.emit_changed("pin", *params.entry_ids)
            return result

        number = session.pin(params.entry_ids, params.pinned)
        return told(number, tuple(session.state.originals.values()), dict(session.state.pin_marks))

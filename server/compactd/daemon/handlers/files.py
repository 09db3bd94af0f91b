"""Handlers of methods that work with files: redaction, diffs of a work tree, import and export."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import UNSET, Raw

from compactd.daemon.handlers.base import HandlerGroup
from compactd.daemon.rpc.request import Request
from compactd.protocol import wire
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import NULL

NO_SNAPSHOTS = "the session was started without `snapshots`"


class FileHandlers(HandlerGroup):
    """Handlers of `session/redact`, `session/diff`, `session/import` and `session/export`.

    The modules that they need are loaded at the first call.
    """

    async def session_redact(self, params: wire.RedactParams, request: Request) -> wire.RedactResult:
        """Redact messages: remove their content from the session and from compactd's files about it.

        Refuses at once if the session is busy. Keeps its turn in the session's queue until it is done, so no
        other request reads or changes the session meanwhile.
        """
        session = self._sessions.get(params.session_id)
        session.require_idle()
        async with session.queue.turn():
            await self._daemon.modules.load("compactd.session.redact")
            from compactd.session.redact import redact

            return await redact(session, params.entry_ids, self._daemon.home)

    async def session_diff(self, params: wire.DiffParams, request: Request) -> wire.DiffResult:
        """Return the files that changed between two snapshots of the work tree. Git runs in a separate
        thread.
        """
        session = self._sessions.get(params.session_id)
        if session.snapshots is None:
            return wire.DiffResult(files=(), reason=NO_SNAPSHOTS)
        return await session.snapshots.difference(session, params.from_, params.to)

    async def session_import(self, params: wire.ImportParams, request: Request) -> wire.ImportResult:
        """Import a session from a file or from the given content, in a worker, or bring an imported session
        up to date.

        Reports progress if the request has a progress token.
        """
        if (params.path is None) == (params.content == NULL):
            raise InvalidParams("give either `path` or `content`", "$.path")
        await self._daemon.modules.load("compactd.session.import_file", "compactd.session.import_update")
        from compactd.session.import_file import import_session

        loop = asyncio.get_running_loop()

        def tell(fraction: float, phase: str) -> None:
            if request.token is not None:
                # Report only with a token: each report wakes the event loop, which then competes for the GIL.
                loop.call_soon_threadsafe(request.progress, fraction, phase)

        source = _content(params.content) if params.path is None else params.path
        clients, home = self._daemon.clients, self._daemon.home
        if params.session_id is None:
            result = await import_session(self._sessions, source, params.format, tell, home)
        else:
            from compactd.session.import_update import update_session

            session_id = params.session_id
            try:
                result = await update_session(
                    self._sessions,
                    source,
                    params.format,
                    tell,
                    home,
                    session_id,
                    may_replace=lambda: not clients.others_in(session_id),
                )
            except BaseException:
                clients.close_soon(session_id)
                raise
        clients.join_importer(result.session_id)
        return result

    async def session_export(self, params: wire.ExportParams, request: Request) -> Raw:
        """Write a session in another format, to a file or into the result.

        A worker encodes the whole result, because it can be long.
        """
        session = self._sessions.get(params.session_id)
        await self._load(session, "compactd.session.export_file")
        from compactd.session import export_file

        export_file.check(params.format)
        held, path, home = export_file.export_source(session), params.path, self._daemon.home

        def made() -> Raw:
            done = export_file.export_session(held, params.format)
            if path is not None:
                export_file.write(path, done.data)
                if session.persistent:
                    export_file.remember(home, session.id, path)
            result = wire.ExportResult(
                format=params.format,
                warnings=done.warnings,
                content=UNSET if path is not None else export_file.inline(done.data),
                path=UNSET if path is None else path,
            )
            return Raw(msgspec.json.encode(result))

        return await self._daemon.in_worker(made)


def _content(content: Raw) -> bytes:
    """Return the bytes to import: the text of a JSON string, or any other JSON unchanged."""
    data = bytes(content)
    return msgspec.json.decode(data, type=str).encode() if data.lstrip()[:1] == b'"' else data

"""Handlers of trusted folders: the folders whose project settings the user trusts."""

from __future__ import annotations

from compactd.daemon.handlers.base import HandlerGroup
from compactd.daemon.rpc.request import Request
from compactd.protocol import wire


class TrustHandlers(HandlerGroup):
    """Handlers of `trust/set` and `trust/list`. A worker reads the files, because a folder may be on a slow
    disk.
    """

    async def trust_set(self, params: wire.TrustParams, request: Request) -> wire.TrustResult:
        """Trust a folder's settings, or stop trusting them. Answers once the change is on disk."""
        daemon = self._daemon
        await daemon.modules.load("compactd.session.trust")
        from compactd.session import trust

        def change() -> wire.TrustResult:
            if params.trusted:
                return trust.trust(daemon.home, params.path, daemon.now())
            return trust.untrust(daemon.home, params.path)

        done = await daemon.in_worker(change)
        await daemon.outside.reread(done.path)
        daemon.refresh_sessions()
        return done

    async def trust_list(self, params: wire.Nothing, request: Request) -> wire.TrustList:
        """Return the trusted folders. In the result, `state` says whether a folder's settings file still has
        the content that was trusted.
        """
        daemon = self._daemon
        await daemon.modules.load("compactd.session.trust")
        from compactd.session import trust

        return await daemon.in_worker(lambda: trust.list_trusted(daemon.home))

"""JSON-RPC method handlers: one function per method, which turns its params into its result."""

from __future__ import annotations

from compactd.daemon.handler_host import HandlerHost
from compactd.daemon.handlers.agent import AgentHandlers
from compactd.daemon.handlers.append import AppendHandlers
from compactd.daemon.handlers.base import Handler
from compactd.daemon.handlers.compaction import CompactionHandlers
from compactd.daemon.handlers.files import FileHandlers
from compactd.daemon.handlers.models import SessionlessHandlers
from compactd.daemon.handlers.read import ReadHandlers
from compactd.daemon.handlers.sessions import SessionHandlers
from compactd.daemon.handlers.sharing import SharingHandlers
from compactd.daemon.handlers.trust import TrustHandlers
from compactd.protocol.methods import METHODS

AREAS = (
    SessionHandlers,
    AppendHandlers,
    ReadHandlers,
    CompactionHandlers,
    AgentHandlers,
    SessionlessHandlers,
    FileHandlers,
    TrustHandlers,
    SharingHandlers,
)


def handlers(daemon: HandlerHost) -> dict[str, Handler]:
    """Return the handler of each method in `protocol/methods.py`, except `daemon/ping`."""
    areas = [area(daemon) for area in AREAS]
    return {
        method.name: getattr(area, method.handler)
        for method in METHODS.values()
        for area in areas
        if hasattr(area, method.handler)
    }

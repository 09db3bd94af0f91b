"""JSON-RPC method handlers: one function per method, which turns its params into its result."""

from __future__ import annotations

from compactd.daemon.handlers.agent import PromptingHandlers
from compactd.daemon.handlers.append import AppendingHandlers
from compactd.daemon.handlers.base import Handler
from compactd.daemon.handlers.compaction import ChangingHandlers
from compactd.daemon.handlers.files import FileHandlers
from compactd.daemon.handlers.models import FactHandlers
from compactd.daemon.handlers.read import ReadingHandlers
from compactd.daemon.handlers.sessions import SessionHandlers
from compactd.daemon.handlers.trust import TrustHandlers
from compactd.daemon.host import Host

AREAS = (
    SessionHandlers,
    AppendingHandlers,
    ReadingHandlers,
    ChangingHandlers,
    PromptingHandlers,
    FactHandlers,
    FileHandlers,
    TrustHandlers,
)


def handlers(daemon: Host) -> dict[str, Handler]:
    """Return the handler of each method in `protocol/methods.py`, except `daemon/ping`."""
    return {name: handler for area in AREAS for name, handler in area(daemon).by_method().items()}

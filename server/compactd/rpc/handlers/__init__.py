"""One function a method: from params to a result, between the wire and the inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compactd.rpc.handlers.appending import AppendingHandlers
from compactd.rpc.handlers.base import Handler
from compactd.rpc.handlers.changing import ChangingHandlers
from compactd.rpc.handlers.facts import FactHandlers
from compactd.rpc.handlers.files import FileHandlers
from compactd.rpc.handlers.prompting import PromptingHandlers
from compactd.rpc.handlers.reading import ReadingHandlers
from compactd.rpc.handlers.sessions import SessionHandlers
from compactd.rpc.handlers.trusting import TrustHandlers

if TYPE_CHECKING:
    from compactd.daemon import Daemon

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


def handlers(daemon: Daemon) -> dict[str, Handler]:
    """The handler of each method of `rpc/methods.py` but `daemon/ping`."""
    return {name: handler for area in AREAS for name, handler in area(daemon).by_method().items()}

"""Reduce texts by a daemon that starts when the first text needs it. A failure leaves every text as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from compactd.client import Client, DaemonGone, RpcError
from compactd.core.reduce.marks import defuse
from compactd.core.reduce.output import Level, ToolOutput
from compactd.core.reduce.reduce import MIN_CHARS, reduce_output
from compactd.core.reduce.shown import ShownLines
from compactd.integrations.outputs.own_session import (
    MAX_BYTES,
    Call,
    NoSession,
    ReducedText,
    open_own,
    open_stored,
    reduce_text,
    session_name,
)
from compactd.protocol.errors import SessionNotFound

HOW = "compactd reduce --expand"
"""The command that prints an original. In a mark, it comes before the reference."""
STRONGEST: Level = "strong"
"""What this level keeps whole, every level keeps."""
TIMEOUT_S = 20.0
"""How long the daemon may take for one answer."""
MAX_TRIED_CHARS = 200_000
"""A longer text goes to the daemon at once. A shorter one is reduced here first: that takes less time than
to start the daemon."""


class Reducer:
    """Reduces the texts of one command. Use it with `with`."""

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        *,
        session_id: str | None = None,
        level: Level | None = None,
        observe: bool = False,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`folder`: the project's. `session_id`: a stored session that keeps the originals instead of the
        folder's own one. `max_bytes`: how large the folder's own one may grow."""
        self._folder = folder
        self._environ = environ
        self._stored = session_id
        self._level: Level | None = level
        self._observe = observe
        self._max_bytes = max_bytes
        self._client: Client | None = None
        self._chars = 0
        """How much the session with the originals has got."""
        self.session_id: str | None = None
        """The session with the originals; None as long as no daemon was needed."""
        self.failure = ""
        """Why texts were left as they are; empty if nothing failed."""

    def reduce(self, text: str, call: Call) -> ReducedText | None:
        """Return what to show of a text; None if it stays as it is. After a failure, every text stays."""
        if self.failure or not self._is_reducible(text, call):
            return None
        try:
            client = self._client or Client(env=self._environ)
            self._client = client
            if self.session_id is None or self._chars > self._max_bytes:
                self._open_next(client)
            assert self.session_id is not None
            self._chars += len(text)
            return reduce_text(
                client,
                self.session_id,
                text,
                call,
                how=HOW,
                level=self._level,
                observe=self._observe,
                timeout_s=TIMEOUT_S,
            )
        except (RpcError, DaemonGone, NoSession, TimeoutError, OSError) as error:
            self.failure = self._why(error)
            return None

    def _why(self, error: Exception) -> str:
        """Return why an output could not be reduced, in words for a user of the command."""
        if not isinstance(error, RpcError):
            return str(error)
        if self._stored is not None and error.code == SessionNotFound.code:
            return f"no session {self._stored!r}. `compactd sessions` lists them."
        return error.message

    def _open_next(self, client: Client) -> None:
        """Open the session for the originals. If the last one has grown large, open the next one of its name:
        the daemon then frees its memory."""
        if self._stored is not None:
            if self.session_id is None:
                open_stored(client, self._stored, TIMEOUT_S)
                self.session_id = self._stored
            return
        if self.session_id is not None:
            client.session_close(session_id=self.session_id, timeout_s=TIMEOUT_S)
        self._chars = 0
        self.session_id = open_own(
            client,
            session_name("shell", self._folder),
            title=f"Outputs of commands in {self._folder.name}",
            folder=self._folder,
            environ=self._environ,
            timeout_s=TIMEOUT_S,
            max_bytes=self._max_bytes,
        )

    def _is_reducible(self, text: str, call: Call) -> bool:
        """Return whether the daemon may leave something out. Otherwise it is not started. O(length)."""
        if defuse(text) != text:
            return True
        if len(text) < MIN_CHARS:
            return False
        if self._stored is not None or len(text) > MAX_TRIED_CHARS:
            # A stored session may show the same lines.
            return True
        output = ToolOutput(call.name, call.arguments, text, call.is_error)
        try:
            return bool(reduce_output(output, ShownLines(), "e1", self._level or STRONGEST).rules)
        except Exception:
            # A fault in a rule must not lose the output. The daemon answers it with an error.
            return True

    def __enter__(self) -> Reducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()

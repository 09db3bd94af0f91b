"""`compactd mcp --wrap`: run another MCP server, and reduce the texts of its tool results.

Two threads pass lines on, one in each direction, so that their order stays. Everything but responses to
`tools/call` and `tools/list` goes through byte for byte. If a reduction fails, the result goes through too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec import UNSET, Raw, UnsetType

from compactd._runtime.programs import resolve_command
from compactd.client import Client, DaemonGone, RpcError
from compactd.core.reduce.marks import defuse
from compactd.core.reduce.reduce import MIN_CHARS
from compactd.integrations.mcp import output_tool
from compactd.integrations.mcp.wrapped_lines import (
    ListParams,
    ToolCallParams,
    decode,
    names_of_tools,
    read_envelope,
    tool_response,
    with_texts,
    with_tool,
)
from compactd.integrations.outputs.own_session import (
    MAX_BYTES,
    Call,
    NoSession,
    open_own,
    read_original,
    reduce_text,
    session_name,
)
from compactd.integrations.outputs.references import Reference
from compactd.protocol.errors import InvalidParams, SessionNotFound

What = TypeVar("What")

READ_BYTES = 65_536
MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line goes through without being read."""
MAX_WAITING = 10_000
"""So many requests without an answer are remembered."""
MAX_FAILURES = 3
"""After so many failures in a row, nothing is reduced any more."""
TIMEOUT_S = 10.0
"""How long a result waits for its reduction."""
END_S = 5.0
"""How long the server may take to end after its output has ended."""
TERMINATED = 128


class Wrapper:
    """A wrapped MCP server."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        *,
        level: str | None = None,
        observe: bool = False,
    ) -> None:
        """`folder`: the project's. `observe`: change nothing, and count what would be left out."""
        self._command = command
        self._folder = folder
        self._environ = environ
        self._level = level
        self._observe = observe
        self._name = session_name("mcp", folder, *command)
        self._tool_name = output_tool.NAMES[0]
        self._calls: dict[bytes, ToolCallParams] = {}
        """The tool calls that wait for the server's response, by the bytes of their id."""
        self._lists: dict[bytes, None] = {}
        """The requests for the first part of the list of tools that wait for their response."""
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._client: Client | None = None
        self._session_id: str | None = None
        self._chars = 0
        """How much this session has got."""
        self._failures = 0

    def run(self) -> int:
        """Pass messages between stdin and stdout and the server until it ends. Return its exit code. Raise
        `OSError` if it cannot be started.
        """
        program = resolve_command(self._command[0], self._environ.get("PATH"), Path.cwd())
        process = subprocess.Popen(
            [program, *self._command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(self._environ),
        )
        server_input, server_output = process.stdin, process.stdout
        assert server_input is not None
        assert server_output is not None

        def to_server() -> None:
            with suppress(OSError, ValueError), server_input:
                for line in _lines(sys.stdin.fileno()):
                    passed = self.from_client(line)
                    server_input.write(passed)
                    server_input.flush()

        # It cannot be stopped while it waits for the client, so it must not keep the process alive.
        threading.Thread(target=to_server, daemon=True).start()
        try:
            for line in _lines(server_output.fileno()):
                self._write(self.from_server(line))
        except BrokenPipeError:
            # The client is gone.
            process.terminate()
        finally:
            if self._client is not None:
                self._client.close()
        try:
            code = process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        return code if code >= 0 else TERMINATED - code

    # --- the client's messages ------------------------------------------------------------------------

    def from_client(self, line: bytes) -> bytes:
        """Return what the server gets of a line. Calls of the added tool are answered at once."""
        message = read_envelope(line)
        if message is None or message.method is UNSET or message.id is UNSET:
            return line
        if message.method == "tools/list":
            if (decode(bytes(message.params), ListParams) or ListParams()).cursor is None:
                _remember(self._lists, bytes(message.id), None)
        elif message.method == "tools/call":
            call = decode(bytes(message.params), ToolCallParams) or ToolCallParams()
            if call.name == self._tool_name and not self._observe:
                self._answer(message.id, call)
                return b""
            _remember(self._calls, bytes(message.id), call)
        return line

    def _answer(self, request_id: Raw, call: ToolCallParams) -> None:
        try:
            text, is_error = output_tool.show(bytes(call.arguments), self._name, self._original)
        except (RpcError, DaemonGone, TimeoutError, OSError) as error:
            text, is_error = f"The output cannot be read: {_one_line(error)}", True
        self._write(tool_response(request_id, (text,), is_error=is_error))

    def _original(self, where: Reference) -> str | None:
        try:
            return read_original(self._daemon(), where, TIMEOUT_S)
        except RpcError as error:
            if error.code in (InvalidParams.code, SessionNotFound.code):
                return None
            raise

    # --- the server's messages ------------------------------------------------------------------------

    def from_server(self, line: bytes) -> bytes:
        """Return what the client gets of a line."""
        message = read_envelope(line) if self._calls or self._lists else None
        if message is None or message.id is UNSET or message.method is not UNSET:
            return line
        key = bytes(message.id)
        if key in self._lists:
            del self._lists[key]
            return self._with_tool(line, message.result)
        call = self._calls.pop(key, None)
        if call is None or message.result is UNSET:
            return line
        return with_texts(
            line, lambda text, is_error: self._reduced(text, call, is_error=is_error), self._defused
        )

    def _with_tool(self, line: bytes, result: Raw | UnsetType) -> bytes:
        """Return the first part of the list of tools with the tool that shows outputs. Not every client asks
        for the other parts."""
        name = None if result is UNSET else output_tool.free_name(names_of_tools(result))
        if name is None or self._observe:
            return line
        self._tool_name = name
        return with_tool(line, output_tool.tool(name))

    def _defused(self, text: str) -> str:
        return text if self._observe else defuse(text)

    def _reduced(self, text: str, call: ToolCallParams, *, is_error: bool) -> str:
        """Return the text to show instead of a result's."""
        is_small = len(text) < MIN_CHARS and defuse(text) == text
        if is_small or self._failures >= MAX_FAILURES:
            return text
        arguments = decode(bytes(call.arguments), dict[str, object]) or {}
        try:
            shown = reduce_text(
                self._daemon(),
                self._session(text),
                text,
                Call(name=call.name, arguments=arguments, is_error=is_error),
                how="expand",
                level=self._level,
                observe=self._observe,
                timeout_s=TIMEOUT_S,
            ).text
        except (RpcError, DaemonGone, NoSession, TimeoutError, OSError) as error:
            self._failures += 1
            rest = "" if self._failures < MAX_FAILURES else ", and later ones too"
            sys.stderr.write(f"compactd mcp: a result goes through as it is{rest}: {_one_line(error)}\n")
            return text
        self._failures = 0
        return shown

    # --- the daemon, and stdout -----------------------------------------------------------------------

    def _daemon(self) -> Client:
        with self._starting:
            if self._client is None:
                self._client = Client(env=self._environ, restarts=True)
            return self._client

    def _session(self, text: str) -> str:
        """Return the session that keeps the original of `text`. If the last one has grown large, it is the
        next one of its name: the daemon then frees its memory."""
        client = self._daemon()
        if self._session_id is not None and self._chars > MAX_BYTES:
            client.session_close(session_id=self._session_id, timeout_s=TIMEOUT_S)
            self._session_id = None
        if self._session_id is None:
            self._chars = 0
            self._session_id = open_own(
                client,
                self._name,
                title=f"Outputs of the MCP server {Path(self._command[0]).name} in {self._folder.name}",
                folder=self._folder,
                environ=self._environ,
                timeout_s=TIMEOUT_S,
            )
        self._chars += len(text)
        return self._session_id

    def _write(self, data: bytes) -> None:
        with self._writing:
            view = memoryview(data)
            while view:
                view = view[os.write(sys.stdout.fileno(), view) :]


def _lines(fd: int) -> Iterator[bytes]:
    """Yield the lines that come from `fd`, each with its end. Parts of a line that is too long come as they
    are."""
    begun: list[bytes] = []
    size = 0
    while data := os.read(fd, READ_BYTES):
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield b"".join((*begun, line, b"\n"))
            begun, size = [], 0
        if rest:
            begun.append(rest)
            size += len(rest)
        if size > MAX_LINE_BYTES:
            yield b"".join(begun)
            begun, size = [], 0
    if begun:
        yield b"".join(begun)


def _remember(requests: dict[bytes, What], request_id: bytes, what: What) -> None:
    requests[request_id] = what
    if len(requests) > MAX_WAITING:
        del requests[next(iter(requests))]


def _one_line(error: Exception) -> str:
    return " ".join((error.message if isinstance(error, RpcError) else str(error)).split())

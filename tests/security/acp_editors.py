"""An ACP client that sends raw bytes to `compactd acp -- AGENT`, with an agent that is scripted by files."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compactd.client import Client
from tests.support.command_line import COMPACTD, TIMEOUT_S, environment

AGENT = Path(__file__).with_name("acp_scripted_agent.py")
SMALL = {"COMPACTD_STRATEGY": "extract", "COMPACTD_KEEP_MESSAGES": "5", "COMPACTD_KEEP_RECENT_TOKENS": "300"}


class Editor:
    """One session; every line that comes is kept as it came."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.lines: list[bytes] = []
        self._last_id = 10**12
        """No line that a test makes up has such an id."""
        self._log = bytearray()
        self._logging = threading.Thread(target=self._read_log, daemon=True)
        self._logging.start()

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def ask(self, method: str, params: object) -> dict[str, Any]:
        """The answer; what comes before it is in `lines`."""
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self.send(json.dumps(request).encode() + b"\n")
        return self.answer(self._last_id)

    def answer(self, number: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if f'"id": {number}, "result"'.encode() in line or b'"id":%d,"' % number in line:
                found: dict[str, Any] = json.loads(line)
                return found
        raise AssertionError(f"the proxy is gone: {self.log}")

    def prompt(self, *blocks: object, session: str = "s1") -> dict[str, Any]:
        """Strings are text blocks."""
        content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        return self.ask("session/prompt", {"sessionId": session, "prompt": content})

    def scripted(self, name: str, lines: Iterable[object]) -> list[bytes]:
        """Has the agent send these at the prompt that ends in `name`; dicts are messages."""
        sent = [
            one if isinstance(one, bytes) else json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n"  # type: ignore[dict-item]
            for one in lines
        ]
        (self.folder / f"say-{name}").write_bytes(b"".join(sent))
        return sent

    @property
    def got(self) -> list[bytes]:
        """Return the lines that the agent received."""
        return [line + b"\n" for line in (self.folder / "got").read_bytes().split(b"\n")[:-1]]

    @property
    def prompts(self) -> list[list[dict[str, Any]]]:
        """The blocks of each prompt that came to the agent."""
        messages = [json.loads(line) for line in self.got if b"session/prompt" in line]
        return [message["params"]["prompt"] for message in messages]

    @property
    def log(self) -> str:
        """The proxy's, as far as it was written."""
        return self._log.decode("utf-8", "replace")

    def close(self) -> int:
        """Ends the input; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(TIMEOUT_S)
        self._logging.join(TIMEOUT_S)
        return code

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._log += line


@contextmanager
def edited(home: Path, env: Mapping[str, str] = SMALL, load: str | None = None) -> Iterator[Editor]:
    """A session `s1` through the proxy, opened, or loaded where `load` names it."""
    folder = home / "agent"
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [*COMPACTD, "acp", "--window", "100000", "--", sys.executable, str(AGENT), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, env),
        cwd=home,
    )
    with process:
        editor = Editor(process, folder)
        try:
            editor.ask("initialize", {"protocolVersion": 1})
            opened = {"cwd": str(home), "mcpServers": []}
            if load is None:
                editor.ask("session/new", opened)
            else:
                editor.ask("session/load", {**opened, "sessionId": load})
            yield editor
        finally:
            process.kill()


def mirrored(home: Path, session: str = "acp:s1") -> list[dict[str, Any]]:
    """The messages that were kept, oldest first, after the proxy ended."""
    with Client(env=environment(home)) as client:
        client.session_start(session_id=session)
        entries = client.session_history(session_id=session).entries
    return [json.loads(bytes(entry.message)) for entry in entries if entry.kind == "message"]


def update(kind: str, /, **fields: object) -> dict[str, Any]:
    """A `session/update` of the agent's."""
    said = {"sessionUpdate": kind, **fields}
    return {"method": "session/update", "params": {"sessionId": "s1", "update": said}}


def block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}

"""A client that starts the daemon and sends bytes: threads, both framings, messages in order of arrival.

Every message of the daemon is kept with its position, so that a test can say "before" and mean it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.child import Child

PATIENCE_S = 30.0
"""When an answer is given up. Nothing that works comes near it."""

SERVE = (sys.executable, "-m", "compactd", "serve")


@dataclass(frozen=True)
class Got:
    """One message of the daemon."""

    at: int
    """Its position among all messages from the daemon."""
    body: bytes
    value: dict[str, Any]


class Refused(Exception):
    """An error answer."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: dict[str, Any] = error.get("data") or {}


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without compactd's variables, except the data folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("COMPACTD_", "OPENCODE_"))}
    return {
        **kept,
        "COMPACTD_HOME": str(home),
        "XDG_CONFIG_HOME": str(home.parent / "config"),
        "COMPACTD_IDLE_EXIT": "0",
        **(more or {}),
    }


class Daemon(Child):
    """A daemon, and a thread that reads what it sends."""

    def __init__(
        self,
        home: Path,
        *,
        framing: str = "lines",
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = SERVE,
        cwd: Path | None = None,
    ) -> None:
        self.home = home
        super().__init__(command, environment(home, env), framing, cwd)
        self.received: list[Got] = []
        """Every message, in the order in which it came."""
        self._answers: dict[object, Got] = {}
        self._changed = threading.Condition()
        self._at_end = False
        self._last_id = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # --- asking -------------------------------------------------------------------------------------

    def call(self, method: str, **params: Any) -> Any:
        """The result of a request; raises `Refused` for an error."""
        return self.result(self.ask(method, **params))

    def call_raw(self, method: str, params: bytes) -> Any:
        """Do the same as `call`, with the exact bytes of the params, which may not contain a line end."""
        return self.result(self.ask_raw(method, params))

    def refusal(self, method: str, **params: Any) -> Refused:
        """The error that a request is answered with."""
        return self.refused(self.ask(method, **params))

    def refused(self, id: object) -> Refused:
        """The error that the request with this id is answered with."""
        try:
            result = self.result(id)
        except Refused as error:
            return error
        raise AssertionError(f"no error, but {str(result)[:500]}")

    def ask(self, method: str, **params: Any) -> int:
        """Sends a request and gives back its id."""
        return self.ask_raw(method, json.dumps(params, ensure_ascii=False).encode())

    def ask_raw(self, method: str, params: bytes) -> int:
        """Sends a request with these bytes as its params."""
        self._last_id += 1
        head = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":' % (self._last_id, method.encode())
        self.send(head + params + b"}")
        return self._last_id

    def notify(self, method: str, **params: Any) -> None:
        """Sends a notification."""
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    # --- what comes ---------------------------------------------------------------------------------

    def result(self, id: object) -> Any:
        """The result of the request with this id; raises `Refused` for an error."""
        value = self.answer(id).value
        if "error" in value:
            raise Refused(value["error"])
        return value["result"]

    def answer(self, id: object) -> Got:
        """The answer to the request with this id."""
        return self._wait(lambda: self._answers.get(id), f"answer to {id}")

    def answered_so_far(self, id: object) -> bool:
        """Return whether the answer has arrived."""
        with self._changed:
            return id in self._answers

    def event(
        self,
        type: str,
        session_id: str | None = None,
        after: int = -1,
        patience_s: float = PATIENCE_S,
        **fields: Any,
    ) -> Got:
        """The first event of this type, and with these fields, after a position; waits for it."""

        def find() -> Got | None:
            for got in self.received[after + 1 :]:
                params = got.value.get("params", {})
                if (
                    got.value.get("method") == "agent/event"
                    and params["type"] == type
                    and session_id in (None, params["session_id"])
                    and all(params.get(name) == value for name, value in fields.items())
                ):
                    return got
            return None

        return self._wait(find, f"event {type} {fields}", patience_s)

    def wait(self, is_it: Callable[[Got], bool], what: str, patience_s: float = PATIENCE_S) -> Got:
        """The first message of the daemon of which this is true; waits for it."""
        return self._wait(lambda: next((got for got in self.received if is_it(got)), None), what, patience_s)

    def asked(self, requests: Sequence[object]) -> None:
        """Comes back when a server has a request of this daemon's."""
        until = time.monotonic() + PATIENCE_S
        while not requests and time.monotonic() < until:
            self.call("daemon/ping")
        assert requests, "no request"

    def events(self, session_id: str | None = None, after: int = -1) -> list[dict[str, Any]]:
        """Events that came so far, in order."""
        with self._changed:
            got = self.received[after + 1 :]
        return [
            one.value["params"]
            for one in got
            if one.value.get("method") == "agent/event"
            and session_id in (None, one.value["params"]["session_id"])
        ]

    @property
    def now(self) -> int:
        """The position of the last message that came."""
        with self._changed:
            return len(self.received) - 1

    # --- its life -----------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL, wherever it stands; returns when it is gone."""
        super().kill()
        self._reader.join(PATIENCE_S)

    def stop(self) -> int:
        """Ends its input and gives back its exit code."""
        self.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def _wait(self, find: Callable[[], Got | None], what: str, patience_s: float = PATIENCE_S) -> Got:
        until = time.monotonic() + patience_s
        with self._changed:
            while (found := find()) is None:
                left = until - time.monotonic()
                if left <= 0 or self._at_end:
                    raise TimeoutError(f"no {what}; stderr: {self.log()[-2000:]!r}")
                self._changed.wait(left)
            return found

    def _read(self) -> None:
        try:
            for body in self._bodies():
                value = json.loads(body)
                with self._changed:
                    got = Got(len(self.received), body, value)
                    self.received.append(got)
                    if "method" not in value:  # its own requests have one
                        self._answers[value["id"]] = got
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._at_end = True
                self._changed.notify_all()

    def _bodies(self) -> Iterator[bytes]:
        out = self.stdout
        if self.framing == "lines":
            yield from iter(out.readline, b"")
            return
        while head := out.readline():
            length = 0
            while head.strip():
                name, _, value = head.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                head = out.readline()
            yield out.read(length)

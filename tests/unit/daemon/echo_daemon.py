"""The real transport with fake handlers, as a program, so that the wire can be tested alone.

Started as `python echo_daemon.py [--frame-limit BYTES] [--drain SECONDS] [--cancel SECONDS]`.
"""

from __future__ import annotations

from compactd.daemon.rpc.stdio import take_stdio

FDS = take_stdio()

import asyncio  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from collections.abc import Awaitable, Mapping  # noqa: E402

import msgspec  # noqa: E402
from msgspec import Raw, Struct  # noqa: E402

from compactd.daemon.rpc.connection import Connection  # noqa: E402
from compactd.daemon.rpc.request import (  # noqa: E402
    Reply,
    Request,
)
from compactd.protocol.errors import CompactdError, NothingToUndo, SessionNotFound  # noqa: E402
from compactd.protocol.messages import encode  # noqa: E402
from compactd.protocol.methods import Method  # noqa: E402


class Nothing(Struct, frozen=True, kw_only=True):
    """No params, or no result."""


class Part(Struct, frozen=True, kw_only=True):
    """A struct in the params."""

    name: str
    times: int = 1


class EchoParams(Struct, frozen=True, kw_only=True):
    """Params of `test/echo`."""

    value: Raw = Raw(b"null")
    text: str = ""
    times: int = 1
    part: Part | str | None = None
    parts: tuple[Part, ...] = ()
    print: str = ""
    """Printed by this process, and by a child of it that also tells what it found on stdin."""
    spin: int = 0
    """Turns of a loop to be busy for."""
    before: bool = False
    """A `test/before` goes out before the answer."""
    after: bool = False
    """A `test/after` goes out after the answer."""
    wake: str = ""
    """The sleeper to wake."""


class EchoResult(Struct, frozen=True, kw_only=True):
    """The result of `test/echo`: the params that it was given."""

    value: Raw
    text: str
    times: int
    part: Part | str | None
    parts: tuple[Part, ...]


class SleepParams(Struct, frozen=True, kw_only=True):
    """Params of `test/sleep` and `session/compact`: sleeps until it is woken or cancelled."""

    session_id: str = "nameless"
    deaf: bool = False
    """Does not end when it is cancelled."""


class FailParams(Struct, frozen=True, kw_only=True):
    """Params of `test/fail`."""

    kind: str
    later: bool = False
    """Whether to answer from a task."""


class AskParams(Struct, frozen=True, kw_only=True):
    """Params of `test/ask`: asks the client `tool/execute`."""

    timeout_s: float = 10.0


class FloodParams(Struct, frozen=True, kw_only=True):
    """Params of `test/flood`."""

    count: int
    size_bytes: int
    droppable: bool


class FloodResult(Struct, frozen=True, kw_only=True):
    """The result of `test/flood`."""

    sent: int
    dropped: int


class Text(Struct, frozen=True, kw_only=True):
    """A result of one text."""

    text: str


class Listed(Struct, frozen=True):
    text: str
    sessions: tuple[Struct, ...] = ()
    """There are none: an editor's command then takes the newest sleeper."""


class Panic(BaseException):
    """An exception like pyo3's panic, which does not derive from `Exception`."""


METHODS = {
    name: Method(
        name=name, params=params, result=result, scope="none", long_running=name == "session/compact"
    )
    for name, params, result in (
        ("daemon/ping", Nothing, Nothing),
        ("test/echo", EchoParams, EchoResult),
        ("test/sleep", SleepParams, Text),
        ("test/fail", FailParams, Nothing),
        ("test/ask", AskParams, Text),
        ("test/flood", FloodParams, FloodResult),
        ("session/compact", SleepParams, Text),
        ("session/list", Nothing, Listed),
        ("session/undo", SleepParams, Text),
    )
}


class Echo:
    """The double: holds nothing but who sleeps."""

    def __init__(self) -> None:
        self.methods: Mapping[str, Method] = METHODS
        self.connection: Connection | None = None
        self._sleepers: dict[str, asyncio.Event] = {}
        self._settings = "none"

    def call(self, method: Method, params: Struct, request: Request) -> Reply | Awaitable[Reply]:
        """Every kind of handler there is."""
        match params:
            case EchoParams():
                return self._echo(params, request)
            case SleepParams() if method.name == "session/undo":
                raise NothingToUndo(f"{params.session_id}: nothing", session_id=params.session_id)
            case SleepParams():
                return self._sleep(params, request)
            case FailParams():
                return self._fail_later(params) if params.later else fail(params)
            case AskParams():
                return self._ask(params)
            case FloodParams():
                return self._flood(params)
            case _ if method.name == "session/list":
                return Listed(text=self._settings)
            case _:
                return Nothing()

    def configure(self, settings: Raw, *, changed: bool) -> tuple[str, ...]:
        """Remembers the settings, for `session/list` to tell; one that says "odd" is warned of."""
        self._settings = bytes(settings).decode()
        if b"refuse" in bytes(settings):
            raise CompactdError("not these")
        return (f"odd, {'changed' if changed else 'at first'}",) if b"odd" in bytes(settings) else ()

    def newest_session(self) -> str | None:
        """The newest sleeper."""
        return next(reversed(self._sleepers), None)

    async def drain(self, timeout_s: float) -> None:
        """Says so, and wakes even the deaf."""
        sys.stderr.write("drained\n")
        for event in self._sleepers.values():
            event.set()

    def _echo(self, params: EchoParams, request: Request) -> Reply:
        assert self.connection is not None
        if params.print:
            print(params.print)
            code = f"import sys; print({params.print!r}, 'of a child', repr(sys.stdin.read()))"
            subprocess.run([sys.executable, "-c", code], check=True)
        for _ in range(params.spin):
            pass
        if params.before:
            self.connection.out.notify("test/before", Nothing())
        if params.after:
            request.after(self._tell_after)
        if params.wake:
            self._sleepers[params.wake].set()
        return EchoResult(
            value=params.value, text=params.text, times=params.times, part=params.part, parts=params.parts
        )

    def _tell_after(self) -> None:
        assert self.connection is not None
        self.connection.out.notify("test/after", Nothing())

    async def _sleep(self, params: SleepParams, request: Request) -> Reply:
        assert self.connection is not None
        event = self._sleepers[params.session_id] = asyncio.Event()
        request.progress(0.5, "halfway")
        self.connection.out.notify("test/asleep", Text(text=params.session_id))
        while not event.is_set():
            try:
                await event.wait()
            except asyncio.CancelledError:
                if not params.deaf:
                    self.connection.out.notify("test/cancelled", Text(text=params.session_id))
                    raise
        return Text(text=params.session_id)

    async def _fail_later(self, params: FailParams) -> Reply:
        await asyncio.sleep(0)
        return fail(params)

    async def _ask(self, params: AskParams) -> Reply:
        assert self.connection is not None
        try:
            result = await self.connection.out.request("tool/execute", Nothing(), params.timeout_s)
        except (TimeoutError, ConnectionError) as error:
            return Text(text=type(error).__name__)
        return Text(text=bytes(result).decode())

    def _flood(self, params: FloodParams) -> Reply:
        assert self.connection is not None
        body = b'{"jsonrpc":"2.0","method":"test/drop","params":"%b"}' % (b"x" * params.size_bytes)
        sent = sum(self.connection.out.notify_body(body, params.droppable) for _ in range(params.count))
        return FloodResult(sent=sent, dropped=params.count - sent)


def fail(params: FailParams) -> Reply:
    """Goes wrong in one of many ways."""
    match params.kind:
        case "told":
            raise SessionNotFound("no session s9: start it", exists=True)
        case "surrogate":
            raise SessionNotFound("no file a\ud83db", session_id="c\udcffd")
        case "panic":
            raise Panic("of a library in Rust")
        case "deep":
            return Raw(encode(msgspec.json.decode(b"[" * 900 + b"]" * 900)) + deep(10**6))
        case "unencodable":
            return Text(text="\ud83d")
        case _:
            raise ValueError("the secret of /home/someone")


def deep(left: int) -> bytes:
    """Too deep."""
    return deep(left - 1) if left else b""


async def serve(options: Mapping[str, str]) -> int:
    """Serves until the client ends."""
    echo = Echo()
    echo.connection = Connection(
        echo,
        FDS,
        frame_limit_bytes=int(options.get("--frame-limit", 1 << 26)),
        drain_s=float(options.get("--drain", 60)),
        cancel_s=float(options.get("--cancel", 5)),
    )
    return await echo.connection.run()


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True)))))

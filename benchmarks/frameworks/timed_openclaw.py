"""Times OpenClaw between two calls of the model. Its gateway is a program, so the model and the tools are
servers in this process, and sending a request of 200,000 tokens is a part of each time.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.frameworks.clock import DONE, EARLIER, REQUEST, Clock, call_id, history
from benchmarks.frameworks.runners import BIG_WINDOW, Timed
from benchmarks.frameworks.with_openclaw import NAME
from tests.frameworks.openclaw.gateway import Gateway, packages
from tests.frameworks.support.talk import ToolUse

MODEL = "timed"
SESSION = "timed"


class _Model(BaseHTTPRequestHandler):
    """Answers with the next step, as a stream."""

    protocol_version = "HTTP/1.1"
    clock: Clock
    earlier: list[ToolUse]
    """What is left of the history."""

    def do_POST(self) -> None:
        """Answer a request: one that is timed, or one of the history."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_timed = REQUEST.encode() in body
        if is_timed:
            step = self.clock.called()
        else:
            step = self.earlier.pop(0) if self.earlier else None
        said: dict[str, Any] = {"role": "assistant"}
        if step is None:
            said["content"] = DONE
        else:
            function = {"name": step.name, "arguments": json.dumps({"number": step.number})}
            said["tool_calls"] = [{"index": 0, "id": call_id(step), "type": "function", "function": function}]
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        size = len(body) // 3
        usage = {"prompt_tokens": size, "completion_tokens": 10, "total_tokens": size + 10}
        end = "stop" if step is None else "tool_calls"
        sent = (
            {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {"choices": [], "usage": usage},
        )
        lines = [b"data: %b\n\n" % json.dumps({**chunk, **each}).encode() for each in sent]
        answer = b"".join([*lines, b"data: [DONE]\n\n"])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if is_timed:
            self.clock.answered()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _timed(engine: str) -> Callable[[Clock, bool], Awaitable[None]]:
    async def run(clock: Clock, is_long: bool) -> None:
        if packages() is None:
            raise ImportError("OpenClaw is not installed: sh tests/frameworks/openclaw/setup.sh")

        class Model(_Model):
            pass

        Model.clock = clock
        Model.earlier = history()
        server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory(prefix="openclaw-") as folder:
            url = f"http://127.0.0.1:{server.server_port}/v1"
            windows = {MODEL: BIG_WINDOW}
            with Gateway(Path(folder), engine=engine, provider_url=url, windows=windows) as gateway:
                if is_long:
                    await asyncio.to_thread(gateway.ask, EARLIER, SESSION, model=MODEL)
                    # The first request of a process is to have the history.
                    gateway.stop()
                    gateway.start()
                clock.begin()
                await asyncio.to_thread(gateway.ask, REQUEST, SESSION, model=MODEL)
        server.shutdown()

    return run


TIMED = (
    Timed(NAME, "its own compaction", "own", _timed("legacy")),
    Timed(NAME, "compactd's plugin", "compactd", _timed("compactd")),
    Timed(NAME, "an engine that changes nothing", "own", _timed("inspection")),
)

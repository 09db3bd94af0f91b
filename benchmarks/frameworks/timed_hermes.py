"""Times Hermes Agent between two calls of the model. Hermes sends HTTP, so the model is a server in this
process, and sending a request of 200,000 tokens is a part of each time.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.frameworks.clock import DONE, EARLIER, REQUEST, Clock, call_id, history
from benchmarks.frameworks.runners import BIG_WINDOW, Timed
from tests.frameworks.support.talk import ToolUse


class _Model(BaseHTTPRequestHandler):
    clock: Clock

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Hermes asks which kind of server this is."""
        self.send_error(404)

    def do_POST(self) -> None:
        """Answer with the next step, as a stream."""
        if not self.path.endswith("/chat/completions"):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(404)
            return
        step = self.clock.called()
        size = int(self.headers["Content-Length"])
        self.rfile.read(size)
        said: dict[str, Any] = {"role": "assistant"}
        if step is None:
            said["content"] = DONE
        else:
            said["tool_calls"] = [{"index": 0, **_call(step)}]
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "timed"}
        usage = {"prompt_tokens": size // 3, "completion_tokens": 10, "total_tokens": size // 3 + 10}
        end = "stop" if step is None else "tool_calls"
        sent = [
            {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {"choices": [], "usage": usage},
        ]
        lines = [b"data: %b\n\n" % json.dumps({**chunk, **each}).encode() for each in sent]
        body = b"".join([*lines, b"data: [DONE]\n\n"])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.clock.answered()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _call(use: ToolUse) -> dict[str, Any]:
    function = {"name": use.name, "arguments": json.dumps({"number": use.number})}
    return {"id": call_id(use), "type": "function", "function": function}


def _history() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": EARLIER}]
    for use in history():
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [_call(use)]},
            {"role": "tool", "name": use.name, "tool_call_id": call_id(use), "content": use.output},
        ]
    return [*messages, {"role": "assistant", "content": DONE}]


def _timed(engine: str, **host: Any) -> Callable[[Clock, bool], Awaitable[None]]:
    async def run(clock: Clock, is_long: bool) -> None:
        os.environ.setdefault("HERMES_HOME", tempfile.mkdtemp(prefix="hermes-"))
        from tests.frameworks.hermes.agents import agent_of, configure

        class Model(_Model):
            pass

        Model.clock = clock
        server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        configure(engine, host={"model": {"context_length": BIG_WINDOW}, **host}, persist=False)
        messages = _history() if is_long else None
        agent = agent_of(f"http://127.0.0.1:{server.server_port}/v1")
        clock.begin()
        agent.run_conversation(REQUEST, conversation_history=messages)
        server.shutdown()

    return run


TIMED = (
    Timed("Hermes Agent", "`AIAgent`", "alone", _timed("compressor", compression={"enabled": False})),
    Timed("Hermes Agent", "its own compressor", "own", _timed("compressor")),
    Timed("Hermes Agent", "`CompactdEngine`", "compactd", _timed("compactd")),
)

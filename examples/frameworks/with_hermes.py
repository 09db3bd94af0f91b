"""Hermes Agent with compactd: 40 tool calls in 8,000 tokens. The model is a script on this machine, so it
needs no key and no network. Hermes gets a new folder for its files.

python examples/frameworks/with_hermes.py
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import compactd

CALLS = 40
WINDOW = 8_000
CONFIG = {
    # Hermes refuses models with windows below 64,000 tokens. compactd keeps requests in less.
    "model": {"context_length": 64_000},
    "context": {"engine": "compactd"},
    "plugins": {
        "enabled": ["compactd"],
        "entries": {"compactd": {"context_window": WINDOW, "persist": False}},
    },
}


def read_meter(number: int) -> str:
    """Read a meter in the cellar."""
    rows = [f"meter {number}, hour {hour:02}: {(number * 37 + hour * 11) % 97} kWh" for hour in range(24)]
    return "\n".join(rows)


class Script(BaseHTTPRequestHandler):
    """A model that reads all meters, looks one up, and is done."""

    sizes: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        """Hermes asks which kind of server this is."""
        self.send_error(404)

    def do_POST(self) -> None:
        """Answer a model request with the next step, as a stream."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith("/chat/completions"):
            self.send_error(404)
            return
        messages = json.loads(body)["messages"]
        self.sizes.append(len(messages))
        number = len(self.sizes)
        said: dict[str, Any] = {"role": "assistant"}
        if number <= CALLS + 1:
            name, arguments = ("read_meter", {"number": number})
            if number == CALLS + 1:
                name, arguments = ("recall", {"query": "meter 3, hour 07"})
            call = {"name": name, "arguments": json.dumps(arguments)}
            said["tool_calls"] = [{"index": 0, "id": f"call{number}", "type": "function", "function": call}]
        else:
            record = json.loads(messages[-1]["content"])["record"]
            (line,) = [each for each in record.splitlines() if "meter 3, hour 07" in each]
            said["content"] = f"All meters are read. The record says: {line}"
        # The readings take about two characters a token, everything else four.
        readings = sum(len(message["content"]) for message in messages if message["role"] == "tool")
        self._send(said, readings // 2 + (len(body) - readings) // 4)

    def _send(self, said: dict[str, Any], tokens: int) -> None:
        usage = {"prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10}
        reason = "tool_calls" if "tool_calls" in said else "stop"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "script"}
        for more in (
            {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": usage},
        ):
            self.wfile.write(b"data: %b\n\n" % json.dumps({**chunk, **more}).encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def main() -> None:
    """Run the agent, and say what it did."""
    home = Path(tempfile.mkdtemp())
    os.environ["HERMES_HOME"] = str(home)
    # What `compactd install hermes` does, and the two commands that it names.
    plugin = Path(compactd.__file__).parent / "integrations" / "frameworks" / "hermes" / "plugin"
    shutil.copytree(plugin, home / "plugins" / "compactd")
    (home / "config.yaml").write_text(json.dumps(CONFIG))

    from run_agent import AIAgent
    from tools.registry import registry

    parameters = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    registry.register(
        name="read_meter",
        toolset="cellar",
        schema={"name": "read_meter", "description": read_meter.__doc__, "parameters": parameters},
        handler=lambda arguments, **_: read_meter(arguments["number"]),
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), Script)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    agent = AIAgent(
        base_url=f"http://127.0.0.1:{server.server_port}/v1",
        api_key="none",
        provider="custom",
        model="script",
        enabled_toolsets=["cellar", "context_engine"],
        quiet_mode=True,
        skip_context_files=True,
        skip_memory=True,
        tool_delay=0,
    )
    result = agent.run_conversation("Read all meters.")
    agent.shutdown_memory_provider(result["messages"])
    server.shutdown()

    engine = agent.context_compressor
    used = engine.session().state().token_usage.current_context_tokens
    held = len(result["messages"])
    print(f"messages that Hermes holds: {held}; in the largest request: {max(Script.sizes)}")
    print(f"context at the end: {used:,} of {WINDOW:,} tokens, after {engine.compression_count} compactions")
    print(f"answer: {result['final_response']}")
    shutil.rmtree(home)


if __name__ == "__main__":
    main()

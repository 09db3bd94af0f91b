"""A small MCP server for tests, run as a program. It writes its messages by hand, so their bytes are known.

    python raw_mcp_server.py FOLDER

`print {"name": N}` returns the text of the file FOLDER/N; `fail` the same as an error; `structured` also as
structured content. Every line that comes in is written to FOLDER/received. With FOLDER/taken, a tool has the
name of the tool that a wrapper adds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ODD = (
    b'{ "jsonrpc" : "2.0" ,"method":"notifications/message", '
    b'"params":{"level":"info","data":"caf\\u00e9  \xc3\xa9"} }\r\n'
)
"""A line whose bytes no other program would write in the same way."""

TAKEN = "compactd_expand_output"


def main(folder: Path) -> None:
    with (folder / "received").open("ab", buffering=0) as received:
        for line in sys.stdin.buffer:
            received.write(line)
            message = json.loads(line)
            if "id" in message and "method" in message:
                answer(folder, message)


def answer(folder: Path, message: dict) -> None:
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "raw", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list" if not message.get("params", {}).get("cursor"):
            own = ["print", "fail", *([TAKEN] if (folder / "taken").exists() else [])]
            result = {"tools": [tool(name) for name in own], "nextCursor": "2"}
        case "tools/list":
            result = {"tools": [tool("structured")]}
        case "tools/call":
            sys.stdout.buffer.write(ODD)
            result = call(folder, message["params"]["name"], message["params"].get("arguments", {}))
        case _:
            result = {}
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def call(folder: Path, name: str, arguments: dict) -> dict:
    if name == TAKEN:
        return {"content": [{"type": "text", "text": "the server's own tool"}]}
    path = folder / arguments["name"]
    blocks = [{"type": "text", "text": path.read_text(), "_meta": {"kept": True}}]
    if name == "structured":
        return {"content": blocks, "structuredContent": {"text": path.read_text()}}
    return {"content": blocks, "isError": name == "fail"}


def tool(name: str) -> dict:
    return {"name": name, "description": name, "inputSchema": {"type": "object"}}


def send(message: dict) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

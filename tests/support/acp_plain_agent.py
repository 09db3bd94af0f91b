"""The same agent as `acp_sdk_agent.py`, without the SDK, which takes a second to load."""

from __future__ import annotations

import json
import sys
from pathlib import Path

WINDOW = 50_000
OWN = [{"name": "fly", "description": "Flies"}, {"name": "compact", "description": "Its own"}]


def main(log: str, tells_usage: bool) -> None:
    sizes: dict[str, int] = {}
    for line in sys.stdin:
        message = json.loads(line)
        params = message["params"]
        name = params.get("sessionId", "")
        result: dict = {}
        noted: dict = {"did": message["method"].removeprefix("session/"), "session": name}
        match message["method"]:
            case "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
            case "session/new":
                noted["session"] = name = f"s{len(sizes) + 1}"
                sizes[name] = 0
                result = {"sessionId": name}
            case "session/load":
                sizes[name] = 0
                told(name, "user_message_chunk", content=text_block("an old prompt"))
            case "session/prompt":
                text = "\n".join(block["text"] for block in params["prompt"])
                noted["text"] = text
                sizes[name] += answered(name, text) + len(text)
                if tells_usage:
                    told(name, "usage_update", used=sizes[name] // 4, size=WINDOW)
                result = {"stopReason": "end_turn"}
        with Path(log).open("a") as file:
            file.write(json.dumps(noted) + "\n")
        sent(id=message["id"], result=result)


def answered(name: str, text: str) -> int:
    """Characters of what it said."""
    if text.endswith("commands"):
        told(name, "available_commands_update", availableCommands=OWN)
    number = text.rsplit(" ", 1)[-1]
    long = "\n".join(f"row {number}.{row}: the quick brown fox reads ledger_{row}.py" for row in range(120))
    told(name, "tool_call", toolCallId="call-1", title="Read ledger", kind="read", rawInput={"path": "a.py"})
    block = {"type": "content", "content": text_block(long)}
    told(name, "tool_call_update", toolCallId="call-1", status="completed", content=[block])
    for part in (f"Step {number} is done, ", f"TOTAL_{number} is right."):
        told(name, "agent_message_chunk", content=text_block(part))
    return len(long)


def text_block(text: str) -> dict:
    return {"type": "text", "text": text}


def told(name: str, update: str, /, **fields: object) -> None:
    sent(method="session/update", params={"sessionId": name, "update": {"sessionUpdate": update, **fields}})


def sent(**fields: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], "gauge" in sys.argv)

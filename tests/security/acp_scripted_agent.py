"""An ACP agent that is scripted by files: `python acp_scripted_agent.py FOLDER`.

It writes each line that it receives to FOLDER/got, unchanged. At a `session/load` it sends the lines of
FOLDER/load. At a prompt that ends in `N` it sends the lines of FOLDER/say-N, unchanged, before it answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(folder: Path) -> None:
    count = 0
    with (folder / "got").open("ab", buffering=0) as got:
        for line in sys.stdin.buffer:
            got.write(line)
            try:
                message = json.loads(line)
                method, number, params = message["method"], message["id"], message["params"]
            except (ValueError, RecursionError, KeyError, TypeError):
                continue
            if not isinstance(number, int | str) or not isinstance(params, dict):
                continue
            result: dict[str, object] = {}
            match method:
                case "session/new":
                    count += 1
                    result = {"sessionId": f"s{count}"}
                case "session/load":
                    count += 1
                    say(folder / "load")
                case "session/prompt":
                    say(folder / f"say-{last_word(params.get('prompt'))}")
                    result = {"stopReason": "end_turn"}
            answer = json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
            sys.stdout.buffer.write(answer.encode() + b"\n")
            sys.stdout.buffer.flush()


def last_word(prompt: object) -> str:
    blocks = prompt if isinstance(prompt, list) else []
    words = " ".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict)).split()
    word = words[-1] if words else ""
    return word if word.isalnum() else "nothing"


def say(path: Path) -> None:
    if path.exists():
        sys.stdout.buffer.write(path.read_bytes())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

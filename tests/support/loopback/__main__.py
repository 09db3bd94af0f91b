"""The loopback provider by itself: prints its address as JSON and serves until stdin ends."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.support.loopback.script import step_from
from tests.support.loopback.server import Loopback


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.loopback", description=__doc__)
    parser.add_argument(
        "--script", type=Path, help='JSON list of steps: [{"type": "Answer", "text": "hi"}, …]'
    )
    parser.add_argument("--window", type=int, help="tokens above which a request is refused")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--record", type=Path, help="where the requests go at the end, one JSON object a line"
    )
    options = parser.parse_args()
    steps = [step_from(step) for step in json.loads(options.script.read_text())] if options.script else []
    with Loopback(steps, window=options.window, port=options.port) as server:
        print(json.dumps({"base_url": server.base_url}), flush=True)
        sys.stdin.read()
        if options.record:
            lines = [
                {"wire": seen.wire, "path": seen.path, "headers": seen.headers, "body": seen.body,
                 "tokens": seen.tokens, "accepted": seen.accepted}
                for seen in server.requests
            ]  # fmt: skip
            options.record.write_text("".join(f"{json.dumps(each)}\n" for each in lines))


if __name__ == "__main__":
    main()

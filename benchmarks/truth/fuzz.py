"""Sends random input to classify, lookup and count: `python -m benchmarks.truth.fuzz --minutes 10`.

It uses a real daemon on pipes. Texts and names come from hypothesis, from random bytes, and from real ones
that are cut, doubled, nested and mixed. Every request must be answered, none with -32603; a ping between them
must be answered quickly; the process must not grow after the first minute. Otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.client import Daemon, Refused

REAL = (
    "prompt is too long: 213462 tokens > 200000 maximum",
    '{"error":{"message":"maximum context length is 8192 tokens","code":"context_length_exceeded"}}',
    'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    "Error code: 400 - {'error': {'message': 'Input is too long for requested model.'}}",
    "<html><body>413 Request Entity Too Large</body></html>",
    "rate limit reached: 30000 tokens per minute, requested 31234",
)
NAMES = (
    "anthropic/claude-sonnet-4-5[1m]",
    "us.anthropic.claude-opus-4-5-20251101-v1:0",
    "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-sonnet-20240229-v1:0",
    "qwen2.5-coder:32b-instruct-q4_K_M",
    "openrouter/qwen/qwen3-coder:free",
    "publishers/google/models/gemini-2.5-pro@default",
    "gpt-4o-2024-08-06",
)
MB = 1024 * 1024
SLOW_S = 1.0
"""A ping that takes longer, beside requests of megabytes on a busy machine, is a stall."""
GROWTH_KB = 64 * 1024


def resident_kb(pid: int) -> int:
    """Memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


def damaged(text: str, dice: random.Random) -> str:
    """`text` cut, doubled, nested, with odd bytes in it."""
    for _ in range(dice.randrange(4)):
        text = _once(text, dice)[:MB]
    return text.encode("utf-8", "replace").decode()


def _once(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    match dice.randrange(10):
        case 0:
            return text[:at]
        case 1:
            return text[at:] + text[:at]
        case 2:
            return text * dice.randrange(1, 40)
        case 3:
            return json.dumps(text)
        case 4:
            return json.dumps({"error": {"message": text}})
        case 5:
            return repr(text.encode("utf-8", "replace"))
        case 6:
            return text[:at] + chr(dice.randrange(0xD800)) * dice.randrange(1, 9) + text[at:]
        case 7:
            return text[:at] + str(dice.randrange(10**12)) + text[at:]
        case 8:
            return "{" * dice.randrange(1, 9000) + text
        case _:
            return text.replace(" ", dice.choice(("\n", "\x00", "\u3000", "")))


def main() -> None:
    """Run the command line. Exits with code 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    dice = random.Random(options.seed)
    seen: Counter[str] = Counter()
    slowest, began = 0.0, time.monotonic()
    first_kb = most_kb = 0

    with tempfile.TemporaryDirectory() as folder, Daemon(Path(folder) / "home") as daemon:

        def asked(method: str, **params: object) -> None:
            try:
                daemon.call(method, **params)
                seen[f"{method} answered"] += 1
            except Refused as refused:
                seen[f"{method} {refused.code}"] += 1
                if refused.code == -32603:
                    print(daemon.log()[-4000:])
                    raise

        def ping() -> None:
            nonlocal slowest
            at = time.monotonic()
            daemon.call("daemon/ping")
            slowest = max(slowest, time.monotonic() - at)

        @settings(
            max_examples=200,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(st.text(), st.text(max_size=60), st.integers() | st.none(), st.binary(max_size=4000))
        def anything(text: str, name: str, number: int | None, data: bytes) -> None:
            text = text.encode("utf-8", "replace").decode()
            number = None if number is None else number % 1000
            asked("overflow/classify", body=text, status=number, code=name or None)
            asked("overflow/classify", message=data.decode("utf-8", "replace"), window=100_000)
            asked("models/lookup", model=name, provider=text[:40] or None)
            asked("tokens/count", text=text + data.decode("latin-1"))

        while time.monotonic() - began < 60 * options.minutes:
            anything()
            for _ in range(60):
                asked(
                    "overflow/classify",
                    body=damaged(dice.choice(REAL), dice),
                    status=dice.choice((None, 400, 413, 429, 500)),
                )
                asked(
                    "models/lookup",
                    model=damaged(dice.choice(NAMES), dice)[:5000],
                    base_url=dice.choice((None, "http://127.0.0.1:1/v1")),
                )
                asked(
                    "tokens/count",
                    text=damaged(dice.choice(REAL), dice),
                    model=dice.choice((None, "openai/gpt-4o", *NAMES)),
                )
                ping()
            for big in (
                os.urandom(MB).decode("latin-1"),
                "a" * MB,
                "token " * (MB // 6),
                "😀" * (MB // 4),
                "{" * MB,
            ):
                asked("overflow/classify", body=big)
                asked("tokens/count", text=big)
                ping()
            kb = resident_kb(daemon.process.pid)
            most_kb = max(most_kb, kb)
            if not first_kb and time.monotonic() - began > min(60.0, 15 * options.minutes):
                first_kb = kb
    for what, count in sorted(seen.items()):
        print(f"{count:8} {what}")
    growth = most_kb - (first_kb or most_kb)
    print(f"seed {options.seed}; slowest ping {1000 * slowest:.0f} ms;")
    print(f"memory {most_kb // 1024} MB, {growth // 1024} MB above the first minute's")
    if slowest > SLOW_S or growth > GROWTH_KB:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

"""Speed of the command line on a session file: `inspect` on a long one, `watch` on one that grows.

Core time is read from the scheduler (`/proc/PID/task/*/schedstat`, nanoseconds), so only on Linux.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter

from benchmarks.conversation import turns
from benchmarks.figures import Row, Target, median

TOKENS = 1_000_000
CHARS_A_TOKEN = 4
RUNS = 5
IDLE_S = 5.0
LINES = 1_000

COMPACTD = (sys.executable, "-m", "compactd")


def looks(env: Mapping[str, str], folder: Path) -> list[Row]:
    """The rows of the table. Takes about half a minute."""
    file = folder / "long.jsonl"
    with file.open("wb") as stream:
        for line in _lines(TOKENS * CHARS_A_TOKEN):
            stream.write(line)
    inspects = [_run(env, "inspect", str(file), "--json") for _ in range(RUNS + 1)][1:]
    page = str(folder / "page.html")
    pages = [_run(env, "inspect", str(file), "--html", page, "--force") for _ in range(RUNS)]
    once = [_run(env, "watch", str(file), "--once") for _ in range(RUNS + 1)][1:]
    idle, a_line = _watched(env, folder / "growing.jsonl")
    size = "1M tokens"
    return [
        Row(
            what=f"inspect a file of {size}",
            value=median([wall for wall, _ in inspects]),
            unit="s",
            beside={"its processes' cores": median([cpu for _, cpu in inspects])},
            target=Target(most=1.5),
        ),
        Row(
            what=f"the same as a page, {size}",
            value=median([wall for wall, _ in pages]),
            unit="s",
            beside={"its processes' cores": median([cpu for _, cpu in pages])},
        ),
        Row(what=f"watch --once, {size}", value=1000 * median([wall for wall, _ in once]), unit="ms"),
        Row(what="watch a file that rests", value=idle, unit="% of a core", target=Target(most=1.0)),
        Row(what="watch a line that comes", value=a_line, unit="ms of a core"),
    ]


def _lines(chars: int) -> Iterator[bytes]:
    """A session of Claude Code of about so many characters, each answer with a report."""
    size = number = 0
    for turn in turns():
        for message in turn:
            number += 1
            line = _line(message, number)
            size += len(line)
            yield line
        if size >= chars:
            return


def _line(message: Mapping[str, object], number: int) -> bytes:
    role = "assistant" if message["role"] == "assistant" else "user"
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _blocks(content)
    said: dict[str, object] = {"role": role, "content": blocks}
    if role == "assistant":
        usage = {"input_tokens": min(150_000, 40 * number), "output_tokens": 200}
        said |= {"id": f"m{number}", "model": "claude-opus-4-5", "usage": usage}
    record = {"type": role, "uuid": f"u{number}", "sessionId": "s", "cwd": "/x", "message": said}
    return json.dumps(record).encode() + b"\n"


def _blocks(content: object) -> list[dict[str, object]]:
    """Neutral blocks as Anthropic has them."""
    found: list[dict[str, object]] = []
    for block in content if isinstance(content, list) else ():
        match block:
            case {"type": "tool_call", "call_id": id, "name": name, "arguments": arguments}:
                found.append({"type": "tool_use", "id": id, "name": name, "input": arguments})
            case {"type": "tool_result", "call_id": id, "content": text}:
                found.append({"type": "tool_result", "tool_use_id": id, "content": text})
            case _:
                found.append(dict(block))
    return found


def _run(env: Mapping[str, str], *arguments: str) -> tuple[float, float]:
    """(seconds by the wall, seconds of cores of the command and its daemon)."""
    begun = perf_counter()
    process = subprocess.Popen([*COMPACTD, *arguments], env=dict(env), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return wall, used.ru_utime + used.ru_stime


def _watched(env: Mapping[str, str], file: Path) -> tuple[float, float]:
    """(percent of a core while the file rests, milliseconds of a core for a line that comes)."""
    lines = list(_lines(LINES * 2_000))[: LINES + 10]
    file.write_bytes(b"".join(lines[:10]))
    process = subprocess.Popen(
        [*COMPACTD, "watch", str(file), "--json"], env=dict(env), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        before, begun = _cores_s(process.pid), perf_counter()
        time.sleep(IDLE_S)
        idle = 100 * (_cores_s(process.pid) - before) / (perf_counter() - begun)
        before = _cores_s(process.pid)
        with file.open("ab", buffering=0) as stream:
            for start in range(10, len(lines), 50):
                stream.write(b"".join(lines[start : start + 50]))
                process.stdout.readline()
        return idle, 1000 * (_cores_s(process.pid) - before) / (len(lines) - 10)
    finally:
        process.terminate()
        process.wait()


def _cores_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

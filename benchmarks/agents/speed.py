"""How long an agent waits for its hook, and pi for its extension: `python -m benchmarks.agents.speed`.

The input is a Claude Code transcript of 50 MB, made of recorded sessions: a history that was compacted, then
as much as fills a context window, then 100 KB per run. Tool outputs of 10 to 100 KB are recorded ones, in a
context that shows 1 MB of others. Each row is measured from spawn to exit, in CPU time and in wall time; wall
time means something only if the machine is idle.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.agents import pi_speed
from benchmarks.agents.pi_speed import Measured
from benchmarks.retention import sessions

HISTORY_BYTES = 47_500_000
STRETCH_BYTES = 2_250_000
NEW_BYTES = 100_000
SHOWN_BYTES = 1_000_000
"""How much of tool outputs the context shows when an output is reduced."""
OUTPUT_BYTES = (10_000, 100_000)
RUNS = 7
MODEL_S = 3.0
"""How long the model takes to write a summary. A real one takes longer."""
BETWEEN_S = 0.1
SESSION = "speed"
SUMMARY = {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "We did things."}}


def recorded_lines(data: Path) -> list[bytes]:
    """Return the lines of Claude Code's recorded sessions, except the records of compactions."""
    lines: list[bytes] = []
    for source in sessions.sources(data):
        if source.format == "claude-code":
            lines += source.file.read_bytes().splitlines(keepends=True)
    return [line for line in lines if b"isCompactSummary" not in line and b"compact_boundary" not in line]


def endless(lines: list[bytes]) -> Iterator[bytes]:
    """Yield the lines over and over, with new ids each time."""
    number = 0
    while True:
        number += 1
        for line in lines:
            yield line.replace(b'"uuid":"', b'"uuid":"%d-' % number, 1)


def taken(lines: Iterator[bytes], size_bytes: int) -> bytes:
    """Take lines until they have about `size_bytes` bytes. Return them joined."""
    found: list[bytes] = []
    size = 0
    while size < size_bytes:
        line = next(lines)
        found.append(line)
        size += len(line)
    return b"".join(found)


def summary(number: int) -> bytes:
    """Return the record of an agent's compaction, with this number in its id."""
    return json.dumps({**SUMMARY, "uuid": f"summary-{number}"}, separators=(",", ":")).encode() + b"\n"


class Runs:
    """A home folder with a transcript, and the commands that run on it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.transcript = home / "transcript.jsonl"
        self.times: dict[str, list[tuple[float, float]]] = {}

    def run(self, row: str, command: str, told: dict[str, object], *options: str) -> bytes:
        """Run `compactd COMMAND claude-code`, note its times under `row`, and return its output."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "compactd", command, "claude-code", *options],
            input=json.dumps({"session_id": SESSION, **told}).encode(),
            capture_output=True,
            env={**os.environ, "HOME": str(self.home), "COMPACTD_HOME": str(self.home / "data")},
            check=True,
        )
        clock = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.times.setdefault(row, []).append((cpu, clock))
        return done.stdout

    def hook(self, row: str, name: str, **more: str) -> bytes:
        """Run the hook for the event `name`, note its times under `row`, and return its output."""
        event = {"transcript_path": str(self.transcript), "cwd": "/project", "hook_event_name": name, **more}
        return self.run(row, "hook", event)

    def tool(self, row: str, number: int, output: str, *options: str) -> bytes:
        """Run the hook for the output of a tool, note its times under `row`, and return its output."""
        event = {"transcript_path": str(self.transcript), "cwd": "/project", "hook_event_name": "PostToolUse"}
        call = {"tool_name": "Bash", "tool_use_id": f"toolu_{number}", "tool_input": {"command": "make"}}
        response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return self.run(row, "hook", {**event, **call, "tool_response": response}, *options)

    def add(self, data: bytes) -> None:
        """Append bytes to the transcript."""
        with self.transcript.open("ab") as file:
            file.write(data)

    def again(self, times: int, act: Callable[[], object]) -> None:
        """Run `act` several times, each time from the same state of the data folder."""
        kept = self.home / "kept"
        shutil.copytree(self.home / "data", kept)
        for _ in range(times):
            shutil.rmtree(self.home / "data")
            shutil.copytree(kept, self.home / "data")
            act()
        shutil.rmtree(kept)


def measured(runs: Runs, lines: list[bytes]) -> int:
    """Run everything. Return the number of characters that the hook adds."""
    source = endless(lines)
    runs.add(taken(source, HISTORY_BYTES) + summary(1) + taken(source, STRETCH_BYTES))
    for _ in range(5):
        runs.hook("a transcript of 50 MB that is new, each of its first events", "Stop")
    for _ in range(RUNS):
        runs.add(taken(source, NEW_BYTES))
        runs.hook("100 KB new behind 50 MB", "Stop")
    runs.add(taken(source, NEW_BYTES))
    back: list[bytes] = []
    runs.again(RUNS, lambda: back.append(compaction(runs)))
    window = {"context_window_size": 200_000, "current_usage": {"input_tokens": 82_000}}
    for _ in range(RUNS):
        runs.run("status line", "statusline", {"context_window": window})
    return len(json.loads(back[-1])["hookSpecificOutput"]["additionalContext"])


def recorded_outputs(lines: list[bytes]) -> list[str]:
    """Return the texts of tool results in the recorded rows, each once, in order."""
    found: dict[str, None] = {}
    for line in lines:
        try:
            content = json.loads(line).get("message", {}).get("content")
        except ValueError:
            continue  # A last line without a line end.
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and isinstance(text := block.get("content"), str):
                found[text] = None
    return list(found)


def reductions(runs: Runs, outputs: list[str]) -> None:
    """Run the hook for outputs of a tool: small ones, and those of `OUTPUT_BYTES`, made of recorded ones."""
    reducing = ("--reduce", "default")
    number = size = 0
    for output in outputs:
        if size > SHOWN_BYTES:
            break
        if len(output) > 2_000:
            size += len(output)
            number += 1
            runs.tool("the tool outputs that the context shows", number, output[:100_000], *reducing)
    large = "\n".join(outputs[::-1])
    for at in range(RUNS):
        runs.tool("a tool output, not reduced", number, large[:100_000])
        runs.tool("a tool output of 1 KB, reduced", number, large[:1_000], *reducing)
        for size in OUTPUT_BYTES:
            number += 1
            row = f"a tool output of {size // 1000} KB, reduced, 1 MB shown"
            runs.tool(row, number, large[at * size : (at + 1) * size], *reducing)


def compaction(runs: Runs) -> bytes:
    """Run the events of a compaction of Claude Code, in its order. Return what the hook adds."""
    runs.hook("100 KB new, and a compaction begins", "PreCompact", trigger="manual")
    time.sleep(MODEL_S)
    fork = {
        "agent_id": "fork",
        "agent_type": "",
        "last_assistant_message": "<summary>We did things.</summary>",
    }
    runs.hook("the summary is written", "SubagentStop", **fork)
    time.sleep(BETWEEN_S)
    return runs.hook("the session starts again, and what was lost", "SessionStart", source="compact")


def main() -> int:
    """Run the command line. Return the exit code."""
    data = sessions.shared_data()
    if data is None:
        print(
            "no recordings: COMPACTD_TEST_DATA names none, and none are beside the checkout", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory() as folder:
        runs, lines = Runs(Path(folder)), recorded_lines(data)
        reductions(runs, recorded_outputs(lines))
        shutil.rmtree(runs.home / "data")
        back = measured(runs, lines)
    for row, times in runs.times.items():
        cpu, clock = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
        slowest = max(clock for _, clock in times) * 1000
        print(f"{row:60} {cpu:5.0f} ms of processor, {clock:5.0f} by the clock, slowest {slowest:5.0f}")
    print(f"put back: {back:,} characters")
    of_pi(pi_speed.measured(data, os.environ))
    return 0


def of_pi(runs: list[Measured]) -> None:
    """Print the rows of pi's extension."""
    if not runs:
        print("pi's extension: not measured, for pi is not here (tests/editors/pi/setup.sh fetches it)")
        return
    message = statistics.median(run.processor_ms for run in runs)
    held = max(run.held_ms for run in runs)
    print(f"{'pi, a message':60} {message:5.2f} ms of processor, {held:5.2f} at most that pi waits")
    cpu = statistics.median(run.daemon_ms for run in runs)
    clock = statistics.median(run.compaction_ms for run in runs)
    slowest = max(run.compaction_ms for run in runs)
    row = f"pi, a compaction of {pi_speed.TOKENS:,} tokens"
    print(f"{row:60} {cpu:5.0f} ms of processor, {clock:5.0f} by the clock, slowest {slowest:5.0f}")


if __name__ == "__main__":
    sys.exit(main())

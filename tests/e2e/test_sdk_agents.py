"""The agents in examples/, with the providers' own SDKs and a provider that refuses large requests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.client import environment
from tests.support.loopback import Answer, Call, Loopback, Overflow, Step
from tests.support.own_loop import environment as provider

ROOT = Path(__file__).parents[2]
WINDOW = 24_000
FILES = 14
LINES = 220
REFUSED_AT = (3, 8, 12)
"""Requests that are answered with an overflow, whatever their size."""

MODELS = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-5"}
RUN = """
import sys
from pathlib import Path
from compactd.client import Client
from examples.{wire}_agent import Agent
with Client(restarts=True) as daemon:
    agent = Agent(daemon, sys.argv[1], Path(sys.argv[2]))
    print(agent.ask("Which file holds the word quince? Never write a file."))
    print(daemon.agent_state(session_id=agent.session_id).compaction.count)
"""


@pytest.mark.parametrize("wire", sorted(MODELS))
def test_an_agent_of_a_hundred_lines_goes_through_three_overflows_to_the_right_answer(
    tmp_path: Path, wire: str
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(FILES):
        lines = [f"row {number}.{line}: value_{number * line % 97} of the ledger" for line in range(LINES)]
        lines[100] = "here is the quince" if number == FILES - 2 else lines[100]
        (folder / f"part{number}.txt").write_text("\n".join(lines))
    reads = [
        Answer(
            calls=(Call("read_file", f'{{"path":"part{number}.txt"}}', id=f"call_{number}"),),
            count_input=True,
        )
        for number in range(FILES)
    ]
    script: list[Step] = [*reads, Answer(text="It is part12.txt.", count_input=True)]
    for at in REFUSED_AT:
        script.insert(at, Overflow(requested=WINDOW + 512, limit=WINDOW))

    with Loopback(script, window=WINDOW) as server:
        done = subprocess.run(
            [sys.executable, "-c", RUN.format(wire=wire), MODELS[wire], str(folder)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**environment(tmp_path / "home"), **provider(wire, server.base_url)},
            timeout=100,
            check=False,
        )

    assert done.returncode == 0, done.stderr
    answer, compactions = done.stdout.split("\n")[:2]
    assert answer == "It is part12.txt."
    assert int(compactions) >= len(REFUSED_AT)
    assert sum(seen.tokens > WINDOW for seen in server.requests) <= 1, "the server's window is learned"
    assert all("Never write a file." in seen.raw.decode() for seen in server.requests)

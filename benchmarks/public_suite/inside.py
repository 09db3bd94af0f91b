"""The benchmark's part that runs in the suite's environment: runs the suite's benchmark on both forms.

It asks the parent process to compact, with one JSON object per line on stdout, and reads the answer from
stdin:

- `{"type": "compact", "turns": [[ROLE, TEXT], ...], "round": N, "budget_chars": N}`, answered by
  `{"text": TEXT}`
- `{"type": "done", "forms": {"own": ..., "relabelled": ...}}`, the last line: the suite's results

Only the standard library and the suite are imported here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import IO, Any

from compaction_kit import benchmark, cli
from compaction_kit.compacted import CompactedContext

from benchmarks.public_suite import COMPACTD
from benchmarks.public_suite.relabelled import relabelling

BUILDERS = ("build_random_session", "build_semantic_session", "build_semantic_heldout_session")
"""The functions from which the suite's benchmark gets its sessions."""


class AskingParent:
    """A compactor of the suite that asks the parent process."""

    name = COMPACTD

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests = requests
        self._answers = answers

    def compact(self, turns, round_num: int = 1, budget_chars: int | None = None) -> CompactedContext:
        """Return the context after one more compaction."""
        told = [[turn.role, turn.text] for turn in turns]
        _send(
            self._requests,
            {"type": "compact", "turns": told, "round": round_num, "budget_chars": budget_chars},
        )
        line = self._answers.readline()
        if not line:
            raise SystemExit("the parent process gave no answer")
        return CompactedContext(text=json.loads(line)["text"], compactor_name=self.name, round_num=round_num)


def run(requests: IO[str], answers: IO[str]) -> None:
    """Run the benchmark on the suite's own sessions and on the relabelled ones, and send the results."""
    compactors = {COMPACTD: lambda: AskingParent(requests, answers), **cli.COMPACTORS}
    own = benchmark.run_budget_benchmark(compactors)
    # The benchmark looks its builders up in its module. Its judge stays as it is.
    for name in BUILDERS:
        setattr(benchmark, name, relabelling(getattr(benchmark, name)))
    relabelled = benchmark.run_budget_benchmark(compactors)
    _send(requests, {"type": "done", "forms": {"own": own, "relabelled": relabelled}})


def _send(requests: IO[str], message: Mapping[str, Any]) -> None:
    requests.write(json.dumps(message) + "\n")
    requests.flush()


if __name__ == "__main__":
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the suite prints must not be read as a request
    run(pipe, sys.stdin)

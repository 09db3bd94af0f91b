"""Where the time of a speed-up went: the same work by the daemon before and after it, under py-spy.

    python -m benchmarks.profiled [--document] [NAME ...]

Each state of the daemon is taken out of git into a folder of its own and driven by today's client. py-spy
(https://github.com/benfred/py-spy) is no dependency: it is looked for on PATH (`pip install py-spy`), samples
the daemon from outside, and counts a thread only while it runs. `--document` writes docs/speedups.md.
"""

from __future__ import annotations

import argparse
import io
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, sleep

from msgspec import Struct

from benchmarks.driven import WORK
from benchmarks.figures import machine
from benchmarks.peers import HERE, Peer, environment

REPOSITORY = HERE.parent
PAGE = REPOSITORY / "docs" / "speedups.md"
RATE = 1000
"""Samples a second."""

ATTACHED_S = 1.0
"""Seconds until py-spy samples. The measured work begins only after that."""

ROWS = 12
OURS = "compactd/"
IDLE = "read_ahead.py"
"""Reads ahead while nobody asks for anything, so also until py-spy is there: left out."""


class Speedup(Struct, frozen=True):
    """One speed-up: a state before it, and the state with it; none: the checkout as it is."""

    name: str
    what: str
    work: str
    before: str
    after: str | None = None


SPEEDUPS = (
    Speedup(
        "opening",
        "The messages of a stored session are decoded only when something needs them.",
        "a session of 1.1M tokens is opened and closed again, ten times",
        before="883744f",
    ),
    Speedup(
        "compaction",
        "The facts about a message that a summary needs are computed once, in idle time, and the values of "
        "its lines are computed in arrays.",
        "a session of 1M tokens is compacted without a model, in the process that appended its messages",
        before="fee931c",
    ),
    Speedup(
        "summary",
        "A plan looks for constraints only at word starts, a transcript is written in one pass, and the "
        "data for checking a summary is read while the model writes.",
        "a session of 200k tokens is compacted with a model that answers after 2.5 s, five times",
        before="5e143f3",
    ),
    Speedup(
        "reading",
        "A compaction without a model goes through the text fewer times.",
        "a stored session of 200k tokens is opened and immediately compacted without a model, three times",
        before="cfa1fec",
    ),
    Speedup(
        "plan",
        "What the plan of a compaction needs to know of a message is computed when the message is appended.",
        "a compaction of a session of 1M tokens is planned (`session/compact` with `dry_run` and "
        "`plan_only`), fifty times",
        before="cfa1fec",
    ),
    Speedup(
        "counting",
        "Long texts are counted in two threads, and the rows contain the time of both. A request waits only "
        "as long as `Bpe.count_each` takes.",
        "`tokens/count` counts 1M tokens with the vocabulary of gpt-4o, three times",
        before="cfa1fec",
    ),
    Speedup(
        "small",
        "Requests are read on the event loop, without a switch between threads.",
        "the client sends 10,000 pings, each after the answer to the previous one",
        before="388dd93",
    ),
    Speedup(
        "large",
        "A large message is checked while it arrives, not after its last byte.",
        "a message of 55 MB with an unknown method is sent and refused, five times",
        before="388dd93",
    ),
    Speedup(
        "dropping",
        "When the oldest messages are dropped, only the names in them are read, not their whole text.",
        "a stored session of 200k tokens is opened and its oldest messages are immediately dropped, "
        "three times",
        before="cfa1fec",
    ),
    Speedup(
        "resting",
        "Memory is given back to the system once for many compactions, not after each. [Load](load.md) shows "
        "the effect on small requests.",
        "twenty sessions of 200k tokens are compacted without a model at the same time",
        before="523d9ec",
    ),
)


class Profile(Struct, frozen=True):
    """Samples of one state of the code."""

    runs: int
    samples: Mapping[str, int]
    """For each function of compactd, the number of samples in which it was on a stack; once per thread."""
    total: int
    took_ms: float
    """Wall time of one run, seen by the client, while the profiler runs."""

    def ms(self, samples: int) -> float:
        """Return the milliseconds per run that these samples stand for."""
        return 1000 * samples / RATE / self.runs


def profiled(speedup: Speedup, revision: str | None, spy: str) -> Profile:
    """Check out `revision`, run the workload on it under the profiler `spy`, and return the samples."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = environment(folder, folder / "home")
        if revision is not None:
            _take_out(revision, folder)
            env["PYTHONPATH"] = str(folder / "server")
        raws: list[Path] = []
        took_s: list[float] = []

        @contextmanager
        def sampled(peer: Peer) -> Iterator[None]:
            raws.append(folder / f"{len(raws)}.raw")
            command = [spy, "record", "--format", "raw", "--rate", str(RATE), "--nonblocking"]
            process = subprocess.Popen(
                [*command, "--output", str(raws[-1]), "--pid", str(peer.process.pid)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            sleep(ATTACHED_S)
            began = perf_counter()
            try:
                yield
            finally:
                took_s.append(perf_counter() - began)
                process.send_signal(signal.SIGINT)
                process.wait()

        runs = WORK[speedup.name](env, sampled)
        return _read(raws, runs, sum(took_s))


def _take_out(revision: str, folder: Path) -> None:
    packed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", revision, "server"], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _read(raws: Sequence[Path], runs: int, took_s: float) -> Profile:
    samples: Counter[str] = Counter()
    total = 0
    for raw in raws:
        for line in raw.read_text("utf-8").splitlines():
            stack, _, count = line.rpartition(" ")
            frames = {_function(frame) for frame in stack.split(";") if OURS in frame}
            if not frames or any(IDLE in frame for frame in frames):
                continue
            total += int(count)
            samples.update(dict.fromkeys(frames, int(count)))
    return Profile(runs=runs, samples=samples, total=total, took_ms=1000 * took_s / runs)


def _function(frame: str) -> str:
    """`function (module)` of `function (path/module.py:12)`, wherever the state was taken out to."""
    function, _, place = frame.partition(" (")
    return f"{function} ({place.rpartition(OURS)[2].partition(':')[0]})"


# --- the page -------------------------------------------------------------------------------------------


def table(speedup: Speedup, before: Profile, after: Profile) -> list[str]:
    """A section: the functions that took most, before and after, in milliseconds of one run."""
    most = sorted(
        before.samples.keys() | after.samples.keys(),
        key=lambda name: -max(before.ms(before.samples.get(name, 0)), after.ms(after.samples.get(name, 0))),
    )
    lines = [
        f"## {speedup.name.capitalize()}",
        "",
        f"{speedup.what} Measured: {speedup.work}; before is `{speedup.before}`, after is"
        f" {f'`{speedup.after}`' if speedup.after else 'the code from which this page was made'}.",
        "",
        "| function, including what it calls | before, ms | after, ms |",
        "|---|---:|---:|",
        f"| total, measured by the client | {before.took_ms:.1f} | {after.took_ms:.1f} |",
        f"| total in compactd | {before.ms(before.total):.1f} | {after.ms(after.total):.1f} |",
    ]
    for name in most[:ROWS]:
        then, now = before.ms(before.samples.get(name, 0)), after.ms(after.samples.get(name, 0))
        lines.append(f"| `{name}` | {then:.1f} | {now:.1f} |")
    return [*lines, ""]


def page(sections: Sequence[Sequence[str]]) -> str:
    """The document."""
    on = machine()
    told = f"{on['cores']} cores, {on['cpu']}, {on['system']}, Python {on['python']}, load {on['load_1_min']}"
    head = [
        "# Speedups",
        "",
        "Each section profiles the daemon before and after one larger speedup. `python -m benchmarks.profiled"
        f" --document` made this page on {datetime.now(UTC):%Y-%m-%d} ({told}). The profiler py-spy samples"
        f" the daemon from outside, {RATE:,} times per second. A row says how many milliseconds threads"
        " spent, per run, in a function and in the functions that it called, so the rows overlap. The time"
        " that the client measured also contains what happens outside compactd's functions: work of the"
        " operating system and the profiler, and waiting for other threads. The time in which an idle daemon"
        " reads messages ahead of a compaction is left out.",
        "",
    ]
    return "\n".join([*head, *(line for section in sections for line in section)]).rstrip() + "\n"


def main() -> int:
    """Profiles what is named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiled", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(one.name for one in SPEEDUPS))
    parser.add_argument("--document", action="store_true", help=f"write {PAGE.relative_to(REPOSITORY)}")
    parser.add_argument("--py-spy", default=shutil.which("py-spy"), metavar="PROGRAM")
    options = parser.parse_args()
    if options.py_spy is None:
        print("py-spy is not on PATH: pip install py-spy, or name it with --py-spy", file=sys.stderr)
        return 2
    sections = []
    for speedup in SPEEDUPS:
        if not options.names or speedup.name in options.names:
            before = profiled(speedup, speedup.before, options.py_spy)
            after = profiled(speedup, speedup.after, options.py_spy)
            sections.append(table(speedup, before, after))
            print("\n".join(sections[-1]), flush=True)
    if options.document:
        PAGE.write_text(page(sections), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

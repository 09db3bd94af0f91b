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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from time import sleep

from msgspec import Struct

from benchmarks import opening
from benchmarks.compacting import check, rest
from benchmarks.conversation import messages_of
from benchmarks.figures import machine
from benchmarks.peers import COMPACTD, HERE, Peer, environment
from benchmarks.sessions import MODEL, append_until, start
from benchmarks.streaming import KEEP, QUICK, SUMMARISER, model_server
from benchmarks.transport import flood

REPOSITORY = HERE.parent
PAGE = REPOSITORY / "docs" / "speedups.md"
RATE = 1000
"""Samples a second."""

ATTACHED_S = 1.0
"""Until py-spy samples; what is measured begins only then."""

ROWS = 12
OURS = "compactd/"
IDLE = "learning.py"
"""Reads ahead while nobody asks for anything, so also until py-spy is there: left out."""

Sampled = Callable[[Peer], AbstractContextManager[None]]
"""Profiles a peer for as long as it is in the block."""


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
        "Messages of a stored session stay bytes until somebody asks for them.",
        "a session of 1.1M tokens opened and closed again, ten times",
        before="883744f",
    ),
    Speedup(
        "compaction",
        "What belongs to one message is learnt once, in idle moments; lines are weighed in arrays.",
        "a session of 1M tokens compacted without a model, in the process that appended it",
        before="fee931c",
    ),
    Speedup(
        "summary",
        "A plan looks for constraints where words begin, a transcript is written in one pass, and what a "
        "summary is checked with is read while the model writes.",
        "a session of 200k tokens compacted with a model that answers after 2.5 s, five times",
        before="5e143f3",
    ),
    Speedup(
        "reading",
        "What a compaction without a model reads for, it finds in fewer passes.",
        "a stored session of 200k tokens opened and compacted without a model at once, three times",
        before="cfa1fec",
    ),
    Speedup(
        "plan",
        "What a plan asks of each message is kept since its append.",
        "a session of 1M tokens planned (`dry_run`, `plan_only`), fifty times",
        before="cfa1fec",
    ),
    Speedup(
        "counting",
        "Much text is counted in two threads, both in the rows; a request waits for `count_each`.",
        "1M tokens counted by gpt-4o's own ranks (`tokens/count`), three times",
        before="cfa1fec",
    ),
    Speedup(
        "pipelined",
        "What one read brings is answered in one go.",
        "50,000 pings that are sent as fast as they are read",
        before="cfa1fec",
    ),
)


class Profile(Struct, frozen=True):
    """Samples of one state."""

    runs: int
    samples: Mapping[str, int]
    """By function of ours, those in which it or what it called ran; of one thread once."""
    total: int

    def ms(self, samples: int) -> float:
        """Milliseconds of one run."""
        return 1000 * samples / RATE / self.runs


def profiled(speedup: Speedup, revision: str | None, spy: str) -> Profile:
    """Takes out the state, drives it, and reads the samples."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = environment(folder, folder / "home")
        if revision is not None:
            _take_out(revision, folder)
            env["PYTHONPATH"] = str(folder / "server")
        raws: list[Path] = []

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
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)
                process.wait()

        runs = WORK[speedup.name](env, sampled)
        return _read(raws, runs)


def _take_out(revision: str, folder: Path) -> None:
    packed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", revision, "server"], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _read(raws: Sequence[Path], runs: int) -> Profile:
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
    return Profile(runs=runs, samples=samples, total=total)


def _function(frame: str) -> str:
    """`function (module)` of `function (path/module.py:12)`, wherever the state was taken out to."""
    function, _, place = frame.partition(" (")
    return f"{function} ({place.rpartition(OURS)[2].partition(':')[0]})"


# --- what is driven -------------------------------------------------------------------------------------

OPENED, COMPACTED, SUMMARISED = 10, 2, 5
COLD, PLANNED, COUNTED = 3, 50, 3
SMALL_TOKENS = 6_000
"""Of a session whose compaction brings what is loaded once."""


def _opening(env: Mapping[str, str], sampled: Sampled) -> int:
    opening.store_long(env, 1_100_000)
    with Peer(COMPACTD, env) as peer:
        peer.call("session/start", {"session_id": opening.SESSION})
        peer.call("session/close", {"session_id": opening.SESSION})
        with sampled(peer):
            for _ in range(OPENED):
                peer.call("session/start", {"session_id": opening.SESSION})
                peer.call("session/close", {"session_id": opening.SESSION})
    return OPENED


def _compaction(env: Mapping[str, str], sampled: Sampled) -> int:
    with Peer(COMPACTD, env) as peer:
        for run in range(COMPACTED):
            name = f"long {run}"
            start(peer, name)
            append_until(peer, name, 1_000_000)
            rest(peer)
            with sampled(peer):
                check(peer.call("session/compact", {"session_id": name, "keep_recent": KEEP}))
            peer.call("session/delete", {"session_id": name})
    return COMPACTED


def _summary(env: Mapping[str, str], sampled: Sampled) -> int:
    with model_server() as server:
        there = {**env, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        with Peer(COMPACTD, there) as peer:
            for run in range(SUMMARISED + 1):
                name = f"summary {run}"
                start(peer, name, model=QUICK)
                append_until(peer, name, 200_000)
                asked = {
                    "session_id": name,
                    "strategy": "summarize",
                    "model": SUMMARISER,
                    "keep_recent": KEEP,
                }
                # The first one loads what is loaded once.
                with sampled(peer) if run else nullcontext():
                    peer.call("session/compact", asked)
                peer.call("session/delete", {"session_id": name})
                peer.events.clear()
    return SUMMARISED


def _reading(env: Mapping[str, str], sampled: Sampled) -> int:
    opening.store_long(env, 200_000)
    for _ in range(COLD):
        with Peer(COMPACTD, env) as peer:
            start(peer, "small")
            append_until(peer, "small", SMALL_TOKENS)
            rest(peer)
            check(peer.call("session/compact", {"session_id": "small", "keep_recent": 1_000}))
            with sampled(peer):
                start(peer, opening.SESSION)
                check(peer.call("session/compact", {"session_id": opening.SESSION, "keep_recent": KEEP}))
            peer.call("session/undo", {"session_id": opening.SESSION})
            peer.call("session/delete", {"session_id": "small"})
    return COLD


def _plan(env: Mapping[str, str], sampled: Sampled) -> int:
    asked = {"session_id": "long", "keep_recent": KEEP, "dry_run": True, "plan_only": True}
    with Peer(COMPACTD, env) as peer:
        start(peer, "long")
        append_until(peer, "long", 1_000_000)
        rest(peer)
        check(peer.call("session/compact", asked))
        with sampled(peer):
            for _ in range(PLANNED):
                peer.call("session/compact", asked)
    return PLANNED


def _counting(env: Mapping[str, str], sampled: Sampled) -> int:
    messages = messages_of(4_000_000)
    with Peer(COMPACTD, env) as peer:
        peer.call("tokens/count", {"text": "the ranks are loaded", "model": MODEL})
        with sampled(peer):
            for _ in range(COUNTED):
                peer.call("tokens/count", {"messages": messages, "model": MODEL})
    return COUNTED


def _pipelined(env: Mapping[str, str], sampled: Sampled) -> int:
    with Peer(COMPACTD, env) as peer:
        flood(peer, 1_000)
        with sampled(peer):
            flood(peer, 50_000)
    return 1


WORK: Mapping[str, Callable[[Mapping[str, str], Sampled], int]] = {
    "opening": _opening,
    "compaction": _compaction,
    "summary": _summary,
    "reading": _reading,
    "plan": _plan,
    "counting": _counting,
    "pipelined": _pipelined,
}


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
        f"{speedup.what} Measured: {speedup.work}; before is `{speedup.before}`, after"
        f" {f'`{speedup.after}`' if speedup.after else 'the state this page was made of'}.",
        "",
        "| function, with all that it calls | before, ms | after, ms |",
        "|---|---:|---:|",
        f"| all of ours | {before.ms(before.total):.1f} | {after.ms(after.total):.1f} |",
    ]
    for name in most[:ROWS]:
        then, now = before.ms(before.samples.get(name, 0)), after.ms(after.samples.get(name, 0))
        lines.append(f"| `{name}` | {then:.1f} | {now:.1f} |")
    return [*lines, ""]


def page(sections: Sequence[Sequence[str]]) -> str:
    """The document."""
    on = machine()
    told = ", ".join(f"{name} {value}" for name, value in on.items())
    head = [
        "# Where the time went",
        "",
        "A profile before and after each of the larger speed-ups: made by `python -m benchmarks.profiled"
        f" --document` on {datetime.now(UTC):%Y-%m-%d} ({told}). py-spy samples the daemon {RATE:,} times a"
        " second from outside; a row counts the samples of threads that ran in a function or in what it"
        " called, in milliseconds of one run, so rows hold each other. Reading ahead in idle moments is"
        " left out.",
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

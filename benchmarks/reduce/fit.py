"""Learns `core/reduce/body_weights.py` from recorded sessions: which bodies of a file are needed later.

    python -m benchmarks.reduce.fit [--data DIR] [--all] [--write]

Held-out sessions (`benchmarks/retention/aside.py`) are left out, except with `--all`. A body of a file that
was read is needed if the agent later writes a fact that the output has only there, or replaces a text that
overlaps it. The model is a logistic regression (L2 3). Without `--write` the weights are printed, and what
the model's order is worth in the held-out sessions: the share of the uses that is lost if a given share of
the text is left out, in that order and in others.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.reduce.measure import Fact, Reading, old_texts, read
from benchmarks.retention import sessions
from benchmarks.retention.aside import is_aside
from benchmarks.retention.atoms import Atom
from compactd.core.history.entries import EntryId
from compactd.core.reduce import body_weights
from compactd.core.reduce.bodies import Body, find_bodies
from compactd.core.reduce.body_model import INPUTS, body_inputs, chances
from compactd.core.reduce.errors import has_failed
from compactd.core.reduce.kinds import recognise
from compactd.core.reduce.numbering import plain_lines
from compactd.core.reduce.outlines import is_document
from compactd.core.reduce.output import ToolOutput
from compactd.core.reduce.reduce import reduce_output
from compactd.core.reduce.shown import ShownLines

L2 = 3.0
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""The shares of the text for which the orders are compared."""


class Sample(Struct, frozen=True):
    """One body of a file that was read."""

    inputs: tuple[float, ...]
    chars: int
    uses: int
    """How many facts are only there, and how many later edits replace a text that overlaps it."""

    @property
    def is_needed(self) -> bool:
        """Whether anything of it is used."""
        return self.uses > 0


def samples(reading: Reading) -> Iterator[Sample]:
    """Yield the bodies of the files that were read in a session. What the view showed before is left out."""
    shown = ShownLines()
    edits = [
        (number, old) for number, record in enumerate(reading.session.records) for old in old_texts(record)
    ]
    for number, output in reading.outputs.items():
        entry_id = EntryId(f"e{number}")
        text = reduce_output(output, shown, entry_id, "light").text
        origin = recognise(output)
        if origin.kind == "file" and not is_document(origin.file) and not has_failed(output):
            lines = plain_lines(text.split("\n"))
            free = [not line.startswith("[… ") for line in lines]
            bodies = find_bodies(lines, free)
            inputs = body_inputs(bodies, lines, free, output, origin.file, shown.asked, number)
            later = [old for edit, old in edits if edit > number]
            uses = _uses(bodies, lines, reading.used[number], later)
            for body, row, count in zip(bodies, inputs, uses, strict=True):
                chars = sum(len(line) + 1 for line in lines[body.start : body.stop])
                yield Sample(row, chars, count)
        shown.add(entry_id, ToolOutput(output.name, output.arguments, text, output.is_error))


def _uses(
    bodies: Sequence[Body], lines: Sequence[str], used: frozenset[Fact], later: Sequence[str]
) -> Iterator[int]:
    """Yield for each body how many facts are only there, and how many texts overlap it that are replaced
    later."""
    text = "\n".join(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans = [(at, at + len(old)) for old in later if (at := text.find(old)) >= 0]
    places = [
        [at for at, line in enumerate(lines) if (line.strip() == value if kind == "line" else value in line)]
        for kind, value in used
    ]
    for body in bodies:
        first, end = starts[body.start], starts[body.stop]
        yield sum(begin < end and stop > first for begin, stop in spans) + sum(
            bool(found) and all(body.start <= at < body.stop for at in found) for found in places
        )


def learned(found: Sequence[Sample]) -> list[float]:
    """Return the weights of a logistic regression, by Newton's method. The constant is not shrunk."""
    import numpy as np

    x = np.array([one.inputs for one in found])
    y = np.array([one.is_needed for one in found], dtype=np.float64)
    middle, spread = x.mean(axis=0), x.std(axis=0)
    middle[0], spread[0] = 0.0, 1.0
    spread[spread == 0.0] = 1.0
    x = (x - middle) / spread
    shrink = np.array([1e-6, *[L2] * (x.shape[1] - 1)])
    beta = np.zeros(x.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-(x @ beta)))
        slope = x.T @ (chance - y) + shrink * beta
        bend = (x * (chance * (1 - chance))[:, None]).T @ x + np.diag(shrink)
        step = np.linalg.solve(bend, slope)
        beta -= step
        if abs(step).max() < 1e-7:
            break
    weights = beta / spread
    weights[0] -= float(middle @ weights)
    return [float(weight) for weight in weights]


def module(weights: Sequence[float]) -> str:
    """Return the text of `core/reduce/body_weights.py`."""
    rows = "\n".join(f"    {weight:.3f},  # {name}" for weight, name in zip(weights, INPUTS, strict=True))
    return f'"""{body_weights.__doc__}"""\n\nfrom __future__ import annotations\n\nWEIGHTS = (\n{rows}\n)\n'


def lost(found: Sequence[Sample], order: Callable[[Sample], float]) -> list[float]:
    """Return, for each of `SHARES`, the share of the uses that is left out if so much of the text is, the
    bodies with the smallest `order` first."""
    total, uses = sum(one.chars for one in found), sum(one.uses for one in found)
    result: list[float] = []
    for share in SHARES:
        room, gone = share * total, 0
        for one in sorted(found, key=order):
            room -= one.chars
            if room < 0:
                break
            gone += one.uses
        result.append(gone / max(1, uses))
    return result


def orders() -> dict[str, Callable[[Sample], float]]:
    """Return the orders that are compared, by name."""
    draw = random.Random(26)
    return {
        "model": lambda one: chances([one.inputs])[0] / one.chars,
        "random": lambda one: draw.random(),
        "longest first": lambda one: -one.chars,
        "largest file first": lambda one: -one.inputs[2],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    given = argparse.ArgumentParser(
        prog="python -m benchmarks.reduce.fit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    given.add_argument("--data", type=Path, help="folder with sessions/ and more/ (COMPACTD_TEST_DATA)")
    given.add_argument("--all", action="store_true", help="also learn from the held-out sessions")
    given.add_argument("--write", action="store_true")
    options = given.parse_args(arguments)
    sources = sessions.sources(options.data or sessions.shared_data())
    common = sessions.commonplace(
        [(source.name, sessions.atoms_in(sessions.read(source))) for source in sources]
    )
    known, aside = _split(sources, common)
    weights = learned([*known, *aside] if options.all else known)
    if options.write:
        Path(body_weights.__file__).write_text(module(weights), "utf-8")
        print(f"{len(known)} bodies: {body_weights.__file__} written")
        return 0
    print(module(weights))
    print(f"held out: {len(aside)} bodies, {sum(one.is_needed for one in aside)} needed")
    print(f"{'left out':20}", *(f"{share:6.0%}" for share in SHARES))
    for name, order in orders().items():
        print(f"{name:20}", *(f"{share:6.1%}" for share in lost(aside, order)))
    return 0


def _split(sources: Sequence[sessions.Source], common: frozenset[Atom]) -> tuple[list[Sample], list[Sample]]:
    """Return the samples of the sessions to learn from, and those of the held-out ones."""
    known: list[Sample] = []
    aside: list[Sample] = []
    for source in sources:
        reading = read(sessions.read(source), common)
        (aside if is_aside(source.name) else known).extend(samples(reading))
    return known, aside


if __name__ == "__main__":
    sys.exit(main())

"""Grades of the reading test, and what they add up to."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import mean
from string import ascii_uppercase
from typing import Final

import msgspec
from msgspec import Struct

from benchmarks.reading.questions import KINDS, Questions

SAMPLES: Final = 10_000
"""How often sessions are drawn for the intervals."""


class Answers(Struct, frozen=True):
    """What one reader answered from one text."""

    session: str
    answers: dict[str, str]
    """The answers by the question's id."""
    readability: float
    """How easy the text was to read, from 1 to 5."""
    remarks: str = ""


class Grades(Struct, frozen=True):
    """The grades of one session's answers, by the letters that stood for the methods."""

    session: str
    scores: dict[str, dict[str, list[float]]]
    """For each letter and question, 1, 0.5 or 0 for each point of the key."""
    wrong: dict[str, list[str]]
    """For each letter, the questions whose answer contradicts the key."""


class Row(Struct, frozen=True):
    """How one method did, in percent of the points."""

    method: str
    sessions: int
    tokens: float
    """The mean size of its texts."""
    overall: float
    low: float
    high: float
    """The bounds of the 95 % interval over sessions."""
    kinds: dict[str, float]
    worst: float
    """The share of points in its worst session."""
    wrong: int
    asked: int
    readability: float


def letters_of(run: str, session: str, methods: Sequence[str]) -> dict[str, str]:
    """Return the letter of each method. It differs from session to session, but not from call to call, and
    does not depend on the order of `methods`."""
    shuffled = sorted(methods)
    seed = int(sha256(f"{run} {session}".encode()).hexdigest(), 16)
    random.Random(seed).shuffle(shuffled)
    return dict(zip(shuffled, ascii_uppercase, strict=False))


def read_answers(file: Path) -> Answers:
    """Read the answers of one reader."""
    return msgspec.json.decode(file.read_bytes(), type=Answers)


def row_of(
    method: str,
    questions: Mapping[str, Questions],
    points: Mapping[str, Mapping[str, Sequence[float]]],
    wrong: Mapping[str, int],
    readability: Mapping[str, float],
    tokens: Mapping[str, int],
) -> Row:
    """Return the row of one method. `points` has the grades by session and question."""
    shares = {session: _share(points[session].values()) for session in points}
    low, high = _interval([points[session] for session in points])
    return Row(
        method=method,
        sessions=len(points),
        tokens=mean(tokens[session] for session in points),
        overall=100 * _share([each for one in points.values() for each in one.values()]),
        low=100 * low,
        high=100 * high,
        kinds={kind: 100 * _share(_of_kind(kind, questions, points)) for kind in KINDS},
        worst=100 * min(shares.values()),
        wrong=sum(wrong[session] for session in points),
        asked=sum(len(one) for one in points.values()),
        readability=mean(readability[session] for session in points),
    )


def _of_kind(
    kind: str, questions: Mapping[str, Questions], points: Mapping[str, Mapping[str, Sequence[float]]]
) -> list[Sequence[float]]:
    return [
        points[session][one.id]
        for session in points
        for one in questions[session].questions
        if one.kind == kind
    ]


def _share(grades: Iterable[Sequence[float]]) -> float:
    flat = [point for each in grades for point in each]
    return sum(flat) / len(flat) if flat else 0.0


def _interval(sessions: Sequence[Mapping[str, Sequence[float]]]) -> tuple[float, float]:
    """Return the bounds of the 95 % interval of the share of points, if other sessions had been drawn."""
    sums = [(sum(map(sum, one.values())), sum(map(len, one.values()))) for one in sessions]
    draw = random.Random(1)
    shares: list[float] = []
    for _ in range(SAMPLES):
        drawn = [sums[draw.randrange(len(sums))] for _ in sums]
        shares.append(sum(got for got, _ in drawn) / sum(most for _, most in drawn))
    shares.sort()
    return shares[SAMPLES // 40], shares[-SAMPLES // 40]

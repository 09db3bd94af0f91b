"""Predict, for each body of a file that is read, how likely it is that the agent needs its text later.

The model is a logistic regression. Its inputs are how large the body and its file are, what kind of text it
is, and how many of its names the agent's calls mention. Its weights are learned from recorded sessions
(`benchmarks/reduce/fit.py`, `body_weights.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from compactd.core.reduce.asked_words import Asked, AskedWords, is_change, words_in_call, words_of
from compactd.core.reduce.bodies import Body
from compactd.core.reduce.body_weights import WEIGHTS
from compactd.core.reduce.output import ToolOutput
from compactd.core.text.lazy_patterns import LazyPattern

INPUTS: Final = (
    "constant",
    "characters of the body",
    "characters of the file",
    "lines of the file",
    "is a test",
    "is at the top",
    "names asked for",
    "names asked for of late",
    "names in the newest change",
    "names",
    "share of comments",
    "is indented",
    "share of names asked for",
    "calls before",
    "no names asked for of late, after many calls",
)
"""What the inputs are, in the order of the weights. Counts are the logarithm of the count plus one."""

MAX_BODIES: Final = 2
"""A name that more bodies of the file have says nothing about one of them."""
RECENT: Final = 20
"""A call is recent if so many entries or fewer are between it and the output."""
TOP_LINES: Final = 60

_TEST: Final = LazyPattern(r"(?i)test|spec")
_COMMENT: Final = ("//", "#", "*", "/*", "--")


def chances(inputs: Sequence[Sequence[float]]) -> list[float]:
    """Return the chance that each body is needed, in the order of its inputs."""
    return [
        1 / (1 + math.exp(-sum(weight * value for weight, value in zip(WEIGHTS, row, strict=True))))
        for row in inputs
    ]


def body_inputs(
    bodies: Sequence[Body],
    lines: Sequence[str],
    free: Sequence[int],
    output: ToolOutput,
    file: str,
    asked: AskedWords,
    number: int,
) -> list[tuple[float, ...]]:
    """Return the inputs of each body. `number` is that of the output's entry. O(characters)."""
    texts = ["\n".join(lines[body.start : body.stop]) for body in bodies]
    words = [words_of(text) for text in texts]
    counts = Counter(word for each in words for word in each)
    known = {word: Asked(number, is_change(output)) for word in words_in_call(output)}
    file_lines = sum(map(bool, free))
    file_chars = sum(len(line) + 1 for line, is_free in zip(lines, free, strict=True) if is_free)
    is_test = _TEST.search(file.rsplit("/", 1)[-1]) is not None
    found: list[tuple[float, ...]] = []
    for body, text, mine in zip(bodies, texts, words, strict=True):
        names = [word for word in mine if counts[word] <= MAX_BODIES]
        calls = [call for word in names if (call := known.get(word) or asked.newest(word)) is not None]
        found.append(
            (
                1.0,
                math.log1p(len(text)),
                math.log1p(file_chars),
                math.log1p(file_lines),
                float(is_test),
                float(body.start < TOP_LINES),
                math.log1p(len(calls)),
                math.log1p(sum(number - call.number <= RECENT for call in calls)),
                math.log1p(sum(call.is_change for call in calls)),
                math.log1p(len(names)),
                *_looks(lines[body.start : body.stop]),
                len(calls) / max(1, len(names)),
                math.log1p(len(asked)),
                math.log1p(len(asked)) * (not any(number - call.number <= RECENT for call in calls)),
            )
        )
    return found


def _looks(lines: Sequence[str]) -> Iterator[float]:
    """Yield the share of comments, and whether all lines are indented."""
    yield sum(line.lstrip().startswith(_COMMENT) for line in lines) / len(lines)
    yield float(all(line[:1] in (" ", "\t") for line in lines if line.strip()))

"""The results of a comparison: for each row, the figures of the contenders, and why the others have none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from benchmarks.against.contenders import Kind

Better = Literal["less", "more"]


class Row(Struct, frozen=True, kw_only=True):
    """One thing that is measured."""

    key: str
    what: str
    unit: str
    better: Better = "less"
    grows: bool = False
    """Measured at every size, and drawn."""
    about: str = ""
    """What a reader must know to understand its figures."""


LIBRARY_ROWS = (
    Row(
        key="load",
        what="load a session",
        unit="ms",
        grows=True,
        about="Read the session from a file in the project's own format into the objects that the project "
        "works with. The operating system has the file in its cache.",
    ),
    Row(
        key="count",
        what="count fresh tokens, exactly",
        unit="ms",
        grows=True,
        about="Count every text of the session for the first time, with the vocabulary o200k_base. Only "
        "counters with the same total do the same work.",
    ),
    Row(
        key="estimate",
        what="estimate tokens",
        unit="ms",
        grows=True,
        about="Estimate the tokens of the whole session without a tokenizer. The percentage is the error "
        "against the exact number.",
    ),
    Row(
        key="cut",
        what="find the cut",
        unit="ms",
        grows=True,
        about="Find the message from which on the session is kept, so that its newest tokens stay: a fifth "
        "of them, at most 20,000.",
    ),
    Row(
        key="plan",
        what="plan a compaction",
        unit="ms",
        grows=True,
        about="Everything that is done before a summary is written or a model is asked for one.",
    ),
    Row(
        key="trim",
        what="drop the oldest",
        unit="ms",
        grows=True,
        about="Keep as many of the newest messages as the budget allows, and drop the others without a "
        "summary.",
    ),
    Row(
        key="compact",
        what="compact without a model",
        unit="ms",
        grows=True,
        about="Replace the older messages by a record of what they contain, or by shorter texts.",
    ),
)

MEMORY = Row(
    key="memory",
    what="memory of a session that is open",
    unit="MB",
    about="How much the memory of the process grew while it loaded the session for the first time.",
)
START = Row(
    key="start",
    what="start",
    unit="ms",
    about="From the start of the process: for a server until its first answer, for a library until its "
    "functions can be called.",
)


class Figure(Struct, frozen=True, kw_only=True):
    """One contender's median."""

    who: str
    kind: Kind
    value: float
    """The figure, in the row's unit."""
    core: float | None = None
    """CPU time in ms, of all threads together; None if it was not measured."""
    runs: int
    """How many runs were counted; 0 if the first run took so long that it alone is the figure."""
    how: str = ""
    note: str = ""
    """A remark on the result: the same total, an error, what is left."""


class Result(Struct, frozen=True, kw_only=True):
    """A row at one size."""

    row: Row
    tokens: int | None
    """The size of the session; None if the row needs no session."""
    workload: str
    figures: tuple[Figure, ...]
    cannot: Mapping[str, str]

    @property
    def ours(self) -> Figure | None:
        """compactd's figure; None if it has none."""
        return next((figure for figure in self.figures if figure.who == "compactd"), None)

    @property
    def best_peer(self) -> Figure | None:
        """The best figure of the other contenders that do the same work; None if there are none."""
        peers = [figure for figure in self.figures if figure.kind == "peer"]
        if not peers:
            return None
        return (min if self.row.better == "less" else max)(peers, key=lambda figure: figure.value)

    @property
    def is_first(self) -> bool | None:
        """Whether no peer is better than compactd; None if there is nothing to compare."""
        if self.ours is None or self.best_peer is None:
            return None
        return self.times(self.best_peer) >= 1

    def times(self, other: Figure) -> float:
        """Return how many times better compactd is than `other`; above 1 means that compactd is better."""
        if self.ours is None:
            return float("nan")
        one, two = other.value, self.ours.value
        return one / two if self.row.better == "less" else two / one


def number(value: float) -> str:
    """Three digits that matter, at least."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"

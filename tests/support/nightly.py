"""The tests in nightly.txt: `make test` leaves them to `make nightly`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

LIST = Path(__file__).parents[1] / "nightly.txt"


@cache
def rows() -> dict[str, frozenset[str]]:
    """Return the tests of nightly.txt (`file::test`, below tests/), each with the parameters that `make test`
    runs.
    """
    found = {}
    for line in LIST.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            test, _, kept = line.partition(": ")
            found[test.strip()] = frozenset(one.strip() for one in kept.split("; ") if one)
    return found


def is_nightly(node: str) -> bool:
    """Return whether only `make nightly` runs this test. `node` is pytest's name for it."""
    test, _, parameters = node.removeprefix("tests/").partition("[")
    kept = rows().get(test)
    return kept is not None and parameters.removesuffix("]") not in kept

"""`python -m benchmarks.fleet [PART...]`, with the parts append, open, many and growth. It starts a
PostgreSQL server of its own (Debian: `postgresql`). `growth` installs the frameworks' stores into
`~/.cache/compactd-tests`, and needs their environment (`sh tests/frameworks/setup.sh`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Row, machine, show
from benchmarks.fleet import appending, growing, many_open, opening_stored
from tests.support.postgres import Server, running_server

PARTS: dict[str, Callable[[Server, Path], list[Row]]] = {
    "append": appending.appends,
    "open": opening_stored.openings,
    "many": many_open.many,
    "growth": growing.growth,
}


def main() -> int:
    """Print the table. Return exit code 1 if a target is missed."""
    asked = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    asked.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = asked.parse_args().parts or list(PARTS)
    on = machine()
    rows: list[Row] = []
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder, running_server() as server:
            rows += PARTS[name](server, Path(folder))
    show(rows, ["Medians. The server keeps PostgreSQL's settings, on the same machine."], on)
    return 1 if any(row.is_met is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

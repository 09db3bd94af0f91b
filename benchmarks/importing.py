"""Import of recorded session files, by format: time until the session is parsed, counted and on disk.

The recordings are not part of the repository. They are searched in `COMPACTD_TEST_DATA`, then next to the
checkout.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter, process_time

import msgspec
from msgspec import Struct

from benchmarks.figures import Row, Target, median
from benchmarks.peers import COMPACTD, Peer
from compactd.formats.files.detect import read

RUNS = 5
LEAST_BYTES = 500_000
"""The smallest file that is measured: below it, costs of every session matter more than the bytes do."""

MISSING = "import: no recordings, COMPACTD_TEST_DATA names none, and none are beside the checkout"

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


class _Imported(Struct):
    session_id: str
    format: str


class _Taken(Struct, frozen=True):
    """The costs of importing one file."""

    format: str
    size: int
    """Bytes."""
    import_s: float
    core_s: float
    """CPU seconds of the daemon for one import."""
    read_s: float
    """CPU seconds in this process to parse the file into messages, and nothing else."""


def recordings() -> list[Path]:
    """The session files that are there."""
    folder = Path(os.environ.get("COMPACTD_TEST_DATA") or _BESIDE) / "sessions"
    return sorted(file for file in folder.glob("*") if file.name != "MANIFEST.json")


def imports(env: Mapping[str, str]) -> list[Row]:
    """Return the rows of the table; empty if there are no recordings. Takes about twenty seconds."""
    files = recordings()
    if not files:
        return []
    with Peer(COMPACTD, env) as peer:
        _import(peer, files[0])
        taken = [_measured(peer, file) for file in files]
        peer.end()
    formats = sorted({one.format for one in taken}, key=lambda name: -_size(taken, name))
    return [
        *(_row(name, [one for one in taken if one.format == name]) for name in formats),
        _row("all of them", taken),
    ]


def _size(taken: Sequence[_Taken], format: str) -> int:
    return sum(one.size for one in taken if one.format == format)


def _row(what: str, taken: Sequence[_Taken]) -> Row:
    size = sum(one.size for one in taken) / 1e6
    import_s = sum(one.import_s for one in taken)
    is_asked = size * 1e6 >= LEAST_BYTES
    beside = {
        "MB/s": size / import_s,
        "of a core": size / max(1e-9, sum(one.core_s for one in taken)),
        "parsing alone": size / max(1e-9, sum(one.read_s for one in taken)),
        "MB": size,
    }
    return Row(
        what=f"import, {what}: one megabyte" if is_asked else f"import, {what}: {1000 * size:.0f} KB",
        value=1000 * import_s / (size if is_asked else 1),
        unit="ms",
        beside=beside if is_asked else {"files": len(taken)},
        target=Target(most=40) if is_asked else Target(),
    )


def _measured(peer: Peer, file: Path) -> _Taken:
    data = file.read_bytes()
    times, reads = [], []
    format = ""
    before = _cores_s(peer.process.pid)
    for _ in range(RUNS):
        begun = perf_counter()
        imported = _import(peer, file)
        times.append(perf_counter() - begun)
        format = imported.format
        begun = process_time()
        read(data, None)
        reads.append(process_time() - begun)
    core_s = (_cores_s(peer.process.pid) - before) / RUNS
    return _Taken(format, len(data), median(times), core_s, median(reads))


def _import(peer: Peer, file: Path) -> _Imported:
    result = peer.call("session/import", {"path": str(file)})
    return msgspec.json.decode(result, type=_Imported)


def _cores_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

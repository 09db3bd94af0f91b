"""Journals with cut ends, flipped bits and zeroed blocks: each opens as a prefix of its records or fails."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from compactd.protocol.errors import CompactdError, SessionCorrupt, SessionNotFound
from compactd.storage.decode_journal import content_of, id_of
from compactd.storage.journal_records import as_appended, scan
from compactd.storage.migrate import FORMAT
from tests.support.client import Daemon, Refused

JOURNALS = Path(__file__).parents[2] / "support" / "journals"
BLOCK = 4096


class Journal:
    """A real journal and its records."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        first = scan(data).records[0]
        self.session_id = id_of(first) or ""
        self.records = self._records(data)
        self.ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]

    def _records(self, data: bytes) -> list[bytes]:
        content = content_of(data, self.session_id, FORMAT)
        return [as_appended(record) for record in content.records]

    def opened(self, data: bytes) -> list[bytes] | None:
        """Return the records of a damaged copy `data`; None if it is reported as damaged or as no session."""
        try:
            return self._records(data)
        except (SessionCorrupt, SessionNotFound):
            return None
        except CompactdError as error:
            raise AssertionError(f"told as {type(error).__name__}") from error


def cut(journal: Journal, places: list[int]) -> Counter[str]:
    """Cut the journal at each of these bytes. Check that exactly the records before the cut come back."""
    counts: Counter[str] = Counter()
    for place in places:
        found = journal.opened(journal.data[:place])
        whole = sum(end <= place for end in journal.ends)
        # A last record that lacks only its newline is whole.
        whole += whole < len(journal.ends) and journal.ends[whole] - 1 == place
        assert (found or []) == journal.records[:whole], f"cut at {place}"
        counts["cut"] += 1
    return counts


def every_byte(journal: Journal) -> list[int]:
    """Return the offset of each byte of the first three records and of the last."""
    last = journal.ends[-2] if len(journal.ends) > 1 else 0
    return [*range(journal.ends[min(2, len(journal.ends) - 1)] + 1), *range(last, len(journal.data) + 1)]


def flipped(journal: Journal, dice: random.Random, times: int) -> Counter[str]:
    """Flip a random bit, `times` times. Check that it is reported as damage, or that only the last record is
    gone."""
    counts: Counter[str] = Counter()
    for _ in range(times):
        data = bytearray(journal.data)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        _told_or_short(journal, bytes(data), len(journal.records) - 1)
        counts["flip"] += 1
    return counts


def zeroed(journal: Journal, dice: random.Random, times: int) -> Counter[str]:
    """Zero a random block, `times` times. Check that it is reported as damage, or that the records before the
    block come back unchanged."""
    counts: Counter[str] = Counter()
    for _ in range(times):
        data = bytearray(journal.data)
        start = dice.randrange(len(data)) // BLOCK * BLOCK
        stop = min(start + BLOCK, len(data))
        data[start:stop] = bytes(stop - start)
        before = sum(end <= start for end in journal.ends)
        _told_or_short(journal, bytes(data), before)
        counts["zeros"] += 1
    return counts


def _told_or_short(journal: Journal, data: bytes, least: int) -> None:
    found = journal.opened(data)
    if found is not None and found != journal.records:
        assert found == journal.records[: len(found)], "a record was changed"
        assert len(found) >= least, "records in the middle are gone, and nothing was told"


def journals() -> list[Journal]:
    """Return the stored journals of every released format version."""
    return [Journal(path.read_bytes()) for path in sorted(JOURNALS.glob("v*/*.jsonl"))]


def imported(files: Sequence[Path]) -> list[Journal]:
    """Import recorded sessions of other agents. Return their journals, the shortest first. Files that are not
    sessions are skipped."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Daemon(home) as daemon:
            for file in files:
                with contextlib.suppress(Refused):
                    daemon.call("session/import", path=str(file.resolve()))
            daemon.stop()
        found = [path.read_bytes() for path in (home / "sessions").glob("*.jsonl")]
    return [Journal(data) for data in sorted(found, key=len)]

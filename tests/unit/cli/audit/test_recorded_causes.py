"""The causes of the rebuilds in the recordings, compared with labels.

88 of the 97 labels in `rebuild_causes.tsv` come from reading the recordings before the code was run. The
others follow answers without tokens; they were labelled by reading too, but after the first comparison.
`none`: the request is the first of a sub-agent, so it rebuilds nothing although the request before it in the
file read more.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from compactd.cli.audit.bill import bill_of
from compactd.cli.audit.trail import read_trail
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.readers import agent_of
from compactd.cli.usage.requests import FileUsage
from tests.support.command_line import recordings

LABELS = Path(__file__).with_name("rebuild_causes.tsv")
AGENTS = ("claude-code", "pi")


def labels() -> dict[str, dict[int, str]]:
    """Return (first digits of a file's hash) -> line -> cause."""
    found: dict[str, dict[int, str]] = {}
    for row in LABELS.read_text().splitlines():
        if not row.startswith("#"):
            digest, line, cause = row.split("\t")
            found.setdefault(digest, {})[int(line)] = cause
    return found


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def labelled() -> list[Path]:
    return [path for path in recordings() if digest_of(path.read_bytes()) in labels()]


@pytest.mark.parametrize("path", labelled(), ids=lambda path: path.stem)
def test_the_causes_in_a_recording_are_those_that_a_reader_found(path: Path) -> None:
    data = path.read_bytes()
    agent = agent_of(data)
    assert agent in AGENTS

    bill = bill_of(read_trail(data, FileUsage(agent=agent, session_id="s")), PriceList())

    expected = {line: cause for line, cause in labels()[digest_of(data)].items() if cause != "none"}
    assert {one.line: one.cause for one in bill.rebuilds} == expected


def test_the_labels_are_many_and_of_several_causes() -> None:
    causes = [cause for rows in labels().values() for cause in rows.values()]

    assert len(causes) == 97
    assert set(causes) == {"compaction", "model", "expired", "unknown", "none"}

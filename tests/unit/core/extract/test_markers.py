"""Which lines tell a reader next to nothing, by who wrote them."""

from __future__ import annotations

import pytest

from compactd.core.extract.line_roles import ASSISTANT, COMMAND, RESULT
from compactd.core.extract.markers import EMPTY_TALK


def is_empty(role: int, line: str) -> bool:
    return EMPTY_TALK[role].match(line) is not None


@pytest.mark.parametrize(
    "line",
    [
        "Let me read the settings of the proxy.",
        "Now I'll write the migration of the ledger.",
        "Great, the schema is ready. Let me run the checks.",
        "All tests pass now. Next, I update the page.",
        "Okay — I'm going to look at the queue.",
        "Should I also rename the column?",
        "Let me know if you want the page in German.",
    ],
)
def test_a_line_that_only_announces_or_offers_is_empty(line: str) -> None:
    assert is_empty(ASSISTANT, line)


@pytest.mark.parametrize(
    "line",
    [
        "Let me use a queue, because the writers wait.",
        "I'll keep the old column: the report doesn't read the new one.",
        "Now I revert the migration of the ledger.",
        "Let me use the pool instead.",
        "The queue lets me skip the lock.",
        "Letters are sorted by their date.",
    ],
    ids=["because", "does not", "revert", "instead", "another subject", "another word"],
)
def test_a_line_with_a_reason_or_about_the_work_is_not(line: str) -> None:
    assert not is_empty(ASSISTANT, line)


@pytest.mark.parametrize(
    ("line", "is_report"),
    [
        ("The file /srv/ledger/queue.py has been updated. Here is the result:", True),
        ("File created successfully at: /srv/ledger/pool.py", True),
        ("Successfully replaced text in queue.py.", True),
        ("Todos have been modified successfully.", True),
        ("Updated task #3 status", True),
        ("The file queue.py has no line 40.", False),
        ("Successfully built ledger-2.1", False),
        ("Files differ: 3", False),
    ],
)
def test_a_report_of_a_written_file_is_empty(line: str, is_report: bool) -> None:
    assert is_empty(RESULT, line) is is_report


@pytest.mark.parametrize(
    ("line", "is_trailer"),
    [
        ("Co-Authored-By: Somebody <somebody@mill.example>", True),
        ("Signed-off-by: Somebody <somebody@mill.example>", True),
        ("🤖 Generated with a tool", True),
        ("git commit -m 'Sort the letters by date'", False),
        ("Generated files are left out", False),
    ],
)
def test_a_trailer_of_a_commits_message_is_empty(line: str, is_trailer: bool) -> None:
    assert is_empty(COMMAND, line) is is_trailer

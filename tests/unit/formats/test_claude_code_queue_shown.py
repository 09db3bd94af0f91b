"""What a person typed while Claude Code worked is in the history, in the output of `convert` and in search
results. A limit in it is in force after a compaction."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactd.client import Client
from compactd.core.authors.authors import is_typed
from compactd.formats.files.detect import read
from compactd.formats.files.write import write
from compactd.protocol.messages import Message, Text
from tests.support import recorded
from tests.support.command_line import run
from tests.unit.formats.test_claude_code_queue import (
    HUMAN,
    NOTICE,
    attachment,
    call,
    queue,
    result,
    row,
    says,
)
from tests.unit.formats.written import lines

DELIVERED: dict[str, tuple[str, ...]] = {
    "entire-4cff5845-0": (),
    "entire-5c5cb639-0": ("a92ea8b4",),
    "spotter-258c7280": ("858c1c4e", "7c9a2c3a"),
}
"""The recordings with rows of a queue, and how the SHA-256 of each delivered message begins. In the first one
a message waited, and was then sent as a prompt."""

DEMAND = "please don't amend commits"
MADE = lines(
    row("user", 1, "Mend the loader.", promptSource="typed", version="2.1.330"),
    call(2, 1, version="2.1.330"),
    queue("enqueue", 3, f"oh, {DEMAND} - it breaks the history"),
    queue("enqueue", 3.5, NOTICE),
    queue("enqueue", 4, "You must never use British spelling."),
    queue("popAll", 5, "You must never use British spelling."),
    queue("remove", 7, f"oh, {DEMAND} - it breaks the history", reason="absorbed_mid_turn"),
    queue("remove", 7, NOTICE, reason="absorbed_mid_turn"),
    result(6, 1, version="2.1.330"),
    attachment(3, f"oh, {DEMAND} - it breaks the history", attachment=HUMAN),
    attachment(3.5, NOTICE, attachment={"commandMode": "task-notification"}),
    *(
        one
        for n in range(2, 40)
        for one in (call(10 + n, n, version="2.1.330"), result(10.5 + n, n, version="2.1.330"))
    ),
    says(90, "The loader is mended. " * 900, version="2.1.330"),
    row("user", 91, "Now the docs.", promptSource="typed", version="2.1.330"),
    says(92, "Done.", version="2.1.330"),
)


def short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if isinstance(block, Text))


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = tmp_path_factory.mktemp("home")
    with Client(env={**os.environ, "COMPACTD_HOME": str(home)}) as client:
        yield client


def history(client: Client, session_id: str) -> list[str]:
    """The messages, as JSON."""
    told = client.call("session/history", {"session_id": session_id, "limit": 100_000})
    return [json.dumps(entry.get("message"), ensure_ascii=False) for entry in told["entries"]]


def found(client: Client, session_id: str, text: str) -> set[str]:
    """The roles of the messages that a search for these words finds."""
    told = client.call("session/search", {"query": text[:60], "session_id": session_id, "limit": 100})
    return {hit["role"] for hit in told["hits"]}


@pytest.fixture(params=DELIVERED)
def recording(request: pytest.FixtureRequest) -> Path:
    folder = recorded.folder()
    if folder is None:
        pytest.skip("the recorded sessions are not here")
    return folder / f"{request.param}.jsonl"


def delivered_in(path: Path) -> list[tuple[int, str]]:
    """(place, words) of the messages of a file that have no record of their own, and are a person's."""
    own = {row["uuid"] for row in rows_of(path) if row["type"] == "user"}
    return [
        (place, text_of(message))
        for place, (message, _) in enumerate(read(path).messages)
        if message.role == "user" and (message.id or "")[:36] not in own
    ]


def test_each_delivered_message_of_a_recording_is_in_its_place(recording: Path) -> None:
    messages = [message for message, _ in read(recording).messages]

    seen = []
    for place, text in delivered_in(recording):
        assert messages[place].meta is None
        assert messages[place - 1].role == "tool"
        assert messages[place + 1].role == "assistant"
        times = [messages[place + step].created_at or 0.0 for step in (-1, 0, 1)]
        assert times == sorted(times)
        seen.append(short(text))

    assert seen == list(DELIVERED[recording.stem])


def test_each_delivered_message_of_a_recording_is_shown_and_found(
    client: Client, recording: Path, tmp_path: Path
) -> None:
    session_id = str(client.call("session/import", {"path": str(recording)})["session_id"])
    neutral = tmp_path / "neutral.json"
    assert run(tmp_path, "convert", recording, neutral, "--to", "neutral").code == 0
    written = [message for message, _ in read(neutral).messages]
    entries = history(client, session_id)

    for _, text in delivered_in(recording):
        quoted = json.dumps(text, ensure_ascii=False)
        assert sum(quoted in entry and '"role": "user"' in entry for entry in entries) == 1
        assert [text_of(message) for message in written].count(text) == 1
        assert "user" in found(client, session_id, text)


def test_what_was_typed_while_it_worked_is_in_force_after_compactions_and_a_notice_is_not(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "made.jsonl"
    path.write_bytes(MADE)
    session_id = str(client.call("session/import", {"path": str(path)})["session_id"])

    for n in range(3):
        done = client.call(
            "session/compact", {"session_id": session_id, "strategy": "extract", "target_tokens": 2_500}
        )
        assert done["compacted"], done["reason"]
        said = [("assistant", f"Step {n}. " + "All went well. " * 900), ("user", f"Then {n}.")]
        more = [{"role": role, "content": text} for role, text in said]
        view = client.call("session/context", {"session_id": session_id})["messages"]
        summary = next(str(one) for one in view if "## Constraints" in str(one))
        constraints = summary.partition("## Constraints")[2].partition("## ")[0]
        assert f"oh, {DEMAND} - it breaks the history" in constraints
        assert "Never run the tests" not in constraints
        assert "British" not in summary
        client.call("session/append", {"session_id": session_id, "messages": more})

    entries = history(client, session_id)
    assert sum(DEMAND in entry for entry in entries) == 1
    assert not any("British" in entry for entry in entries)


@pytest.mark.parametrize("path", ["made", *DELIVERED])
def test_what_was_typed_while_it_worked_is_written_and_read_again_without_a_loss(path: str) -> None:
    folder = recorded.folder()
    if path != "made" and folder is None:
        pytest.skip("the recorded sessions are not here")
    first = read(MADE if path == "made" or folder is None else folder / f"{path}.jsonl")

    written = write(first, "claude-code")
    again = read(written.data)

    def said(message: Message) -> tuple[object, ...]:
        return message.role, message.content, is_typed(message), message.created_at

    assert [said(message) for message, _ in again.messages] == [said(m) for m, _ in first.messages]
    assert not [warning for warning in written.warnings if "wrote" in warning]
